// The list of rungs. Everything that names a rung reads it: CLI, tests, bench, charts, docs.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/launch_plan.h"

namespace fa {

/// `own` holds the reader's kernels (kernels/own), which stand outside the ladder.
enum class Family { fp32, ampere, hopper, own };

const char* to_string(Family family);

/// One row of the catalogue.
struct Rung {
  std::string_view id;      ///< "06"
  std::string_view name;    ///< "06_batched": file name and chapter name
  std::string_view parent;  ///< id of the parent, empty for the first of a family
  Family family;
  int min_sm;  ///< compute capability x 10: 80, 90
  Dtype dtype;
  bool causal;            ///< takes causal problems
  bool ragged;            ///< takes any seq_len
  bool lse;               ///< can also write the log-sum-exp
  int diff_budget;        ///< changed code lines allowed against the parent (a test counts them)
  std::string_view idea;  ///< one sentence
  const RungKernels* kernels;

  /// head_dims with an instance, ascending.
  std::vector<int> head_dims() const;
  /// The instance for this head_dim with this tile ("64x32w2"), or for an empty name the rung's own
  /// one (ablations come after it); nullptr when there is none.
  const Instance* find_instance(int head_dim, std::string_view tile = {}) const;
  /// All for this head_dim: its own one, the ablations, and with `tuned` the further tiles of a
  /// build with FA_TUNE.
  std::vector<const Instance*> find_instances(int head_dim, bool tuned) const;
};

/// All rungs in ladder order, then those of kernels/own. Throws when two of them share an id.
std::span<const Rung> catalogue();

/// The catalogue row of a kernel outside the ladder; made by OWN_RUNG.
class OwnRung {
 public:
  explicit OwnRung(const Rung& row);
};

// The row of a kernel in kernels/own, in the file itself: arguments as in catalogue.def, then the
// file's instances and its planner.
#define OWN_RUNG(name, min_sm, dtype, causal, ragged, lse, idea, instances, plan)       \
  static_assert(std::string_view(#name).find('_') != std::string_view::npos,            \
                "a rung's name is its id, '_' and a word: my_first");                   \
  static const fa::RungKernels own_kernels_##name{instances, plan};                     \
  static const fa::OwnRung own_row_##name(                                              \
      {std::string_view(#name).substr(0, std::string_view(#name).find('_')), #name, "", \
       fa::Family::own, min_sm, fa::Dtype::dtype, causal, ragged, lse, 0, idea,         \
       &own_kernels_##name})

/// Whether this build has the tiles of kernels/tune_tiles.h (CMake option FA_TUNE).
bool has_tuned_tiles();

/// The rung with this id ("06"), nullptr when there is none.
const Rung* find_rung(std::string_view id);

/// Rungs that a command-line word means: "06", "6", "06_batched", "batched", a family, or "all" of
/// the ladder. Empty when it means none.
std::vector<const Rung*> match_rungs(std::string_view word);

/// Checks the problem against the catalogue row (head_dim, causal, dtype, sizes), then asks the
/// rung. `tile` selects an ablation instance; empty means the rung's own tile.
PlanResult make_plan(const Rung& rung, const Problem& problem, const DeviceDescription& device,
                     std::string_view tile = {});

}  // namespace fa
