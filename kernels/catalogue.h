// The list of rungs. Everything that names a rung reads it: CLI, tests, bench, charts, docs.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/attention/capabilities.h"
#include "kernels/launch_plan.h"

namespace fa {

/// `own` holds the reader's kernels (kernels/own), which stand outside the ladder.
enum class Family { fp32, ampere, hopper, decode, own };

/// What a rung's code is compiled for.
enum class Target {
  sm_80,  ///< runs on compute capability 8.0 and newer
  sm_90a  ///< runs on 9.0 and on nothing newer: 10.x has no wgmma
};

const char* to_string(Family family);
/// "sm_80", "sm_90a".
const char* to_string(Target target);
/// Whether a card of this compute capability (x 10) runs the code.
bool runs_on(Target target, int sm);

/// One row of the catalogue.
struct Rung {
  std::string_view id;      ///< "06"
  std::string_view name;    ///< "06_batched": file name and chapter name
  std::string_view parent;  ///< id of the parent, empty for the first of a family
  Family family;
  Target target;
  Dtype dtype;
  Capabilities capabilities;
  int diff_budget;        ///< lines of git diff allowed against the parent, added plus removed
  std::string_view idea;  ///< one sentence
  const RungKernels* kernels;

  /// Queries of a batch entry that it takes at most; those of the family `decode` take few.
  std::int64_t most_queries() const;
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
#define OWN_RUNG(name, target, dtype, capabilities, idea, instances, plan)   \
  static_assert(std::string_view(#name).find('_') != std::string_view::npos, \
                "a rung's name is its id, '_' and a word: my_first");        \
  static const fa::RungKernels own_kernels_##name{instances, plan};          \
  static const fa::OwnRung own_row_##name([] {                               \
    using enum fa::Capabilities;                                             \
    constexpr std::string_view kName = #name;                                \
    return fa::Rung{kName.substr(0, kName.find('_')),                        \
                    kName,                                                   \
                    "",                                                      \
                    fa::Family::own,                                         \
                    fa::Target::target,                                      \
                    fa::Dtype::dtype,                                        \
                    capabilities,                                            \
                    0,                                                       \
                    idea,                                                    \
                    &own_kernels_##name};                                    \
  }())

/// Gives the problem the rung's types: of Q and O, of K and V.
void set_types(const Rung& rung, Problem& problem);

/// Whether the problem has the rung's types.
bool types_match(const Rung& rung, const Problem& problem);

/// Whether this build has the tiles of kernels/tune_tiles.h (CMake option FA_TUNE).
bool has_tuned_tiles();

/// The rung with this id ("06"), nullptr when there is none.
const Rung* find_rung(std::string_view id);

/// Whether a list of several rungs leaves this one out of the problem: those of the family `decode`
/// out of many queries, if there are others that are not.
bool left_out(const Rung& rung, const std::vector<const Rung*>& of, const Problem& problem);

/// Rungs that a command-line word means: "06", "6", "06_batched", "batched", a family, or "all" of
/// the ladder. Empty when it means none.
std::vector<const Rung*> match_rungs(std::string_view word);

/// Why the device cannot run the rung, or this instance of it: code for another architecture, more
/// shared memory than a block may have. One sentence; nothing when it can.
std::optional<std::string> device_refusal(const Rung& rung, const DeviceDescription& device,
                                          const Instance* instance = nullptr);

/// Checks device and problem against the catalogue row, then asks the rung. The instance has the
/// problem's head_dim. This decides what runs where, in every command.
PlanResult make_plan(const Rung& rung, const Instance& instance, const Problem& problem,
                     const DeviceDescription& device);

/// The same for the instance with this tile; empty means the rung's own.
PlanResult make_plan(const Rung& rung, const Problem& problem, const DeviceDescription& device,
                     std::string_view tile = {});

}  // namespace fa
