// SPDX-License-Identifier: MIT
// What a kernel file says of itself: element type, target, capabilities, instances, its row of the
// catalogue. Every kernel file reads this, so it includes little.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace fa {

/// Element type of Q, K, V and O. Accumulation is always FP32. A cache may be e4m3: 8 bits, 3 of
/// them mantissa, the largest 448, no infinity (Micikevicius et al. 2022, "FP8 Formats for Deep
/// Learning").
enum class Dtype { f16, f32, e4m3, bf16 };

/// Bytes per element.
constexpr std::size_t size_of(Dtype dtype) {
  return dtype == Dtype::e4m3 ? 1 : dtype == Dtype::f32 ? 4 : 2;
}

/// Name used on the command line and in result files.
constexpr const char* to_string(Dtype dtype) {
  constexpr const char* kNames[] = {"float16", "float32", "float8_e4m3", "bfloat16"};
  return kNames[static_cast<int>(dtype)];
}

/// What a rung's code is compiled for.
enum class Target {
  sm_80,   ///< runs on compute capability 8.0 and newer
  sm_90a,  ///< runs on 9.0 and on nothing newer: 10.x has no wgmma
  sm_100a  ///< runs on 10.0 and on nothing newer
};

/// What a problem may need of a kernel beyond whole tiles of plain attention: a set, `causal |
/// lse`.
enum class Capabilities : unsigned {
  none = 0,
  causal = 1,           ///< the causal mask
  ragged = 2,           ///< any seq_len, not only whole tiles
  lse = 4,              ///< the log-sum-exp of every row
  grouped = 8,          ///< fewer heads of K and V than of Q
  lengths = 16,         ///< a number of keys for each batch entry
  paged = 32,           ///< K and V in pages
  few_queries = 64,     ///< of a rung for new queries against a cache: up to kFewQueries of them
  e4m3 = 128,           ///< K and V are e4m3 with scales, never anything else
  strided = 256,        ///< rows of Q, K, V and O at any strides
  windowed = 512,       ///< bounds on how far a key lies before and after its query
  sinks = 1024,         ///< a score of each query head that has no value
  packed = 2048,        ///< sequences of different lengths one behind another
  backward = 4096,      ///< gradients, never anything else
  deterministic = 8192  ///< of gradients: the same bits in each launch, of dQ as well
};

/// New queries that a batch entry may have, at most, where a rung computes them against a cache.
inline constexpr std::int64_t kFewQueries = 16;

constexpr Capabilities operator|(Capabilities a, Capabilities b) {
  return static_cast<Capabilities>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}

/// Whether the set has all of these.
constexpr bool has(Capabilities set, Capabilities wanted) {
  return (set | wanted) == set;
}

/// Those that there are, each by the name that `fa list` gives it.
struct NamedCapability {
  Capabilities capability;
  const char* name;
};
inline constexpr std::array kCapabilities{
    NamedCapability{Capabilities::causal, "causal"},
    NamedCapability{Capabilities::ragged, "ragged"},
    NamedCapability{Capabilities::lse, "lse"},
    NamedCapability{Capabilities::grouped, "grouped"},
    NamedCapability{Capabilities::lengths, "lengths"},
    NamedCapability{Capabilities::paged, "paged"},
    NamedCapability{Capabilities::few_queries, "few_queries"},
    NamedCapability{Capabilities::e4m3, "e4m3"},
    NamedCapability{Capabilities::strided, "strided"},
    NamedCapability{Capabilities::windowed, "windowed"},
    NamedCapability{Capabilities::sinks, "sinks"},
    NamedCapability{Capabilities::packed, "packed"},
    NamedCapability{Capabilities::backward, "backward"},
    NamedCapability{Capabilities::deterministic, "deterministic"},
};

struct DeviceDescription;  // kernels/launch_plan.h
struct PlanResult;         // kernels/launch_plan.h
struct Problem;            // kernels/problem.h

/// Tile of one block: Br query rows, Bc keys per iteration, warps.
struct Tile {
  int Br = 0, Bc = 0, warps = 0;
  bool operator==(const Tile&) const = default;
};

/// One compiled instantiation of a rung.
struct Instance {
  const char* entry = nullptr;
  const void* kernel = nullptr;
  int head_dim = 0;
  Tile tile;
  std::size_t shared_bytes = 0;  ///< dynamic shared memory per block
  bool bf16 = false;             ///< takes bfloat16 in place of the rung's element type
};

/// Folders of kernels/; `own` holds the reader's kernels, which are outside the ladder.
enum class Family { fp32, ampere, hopper, decode, backward, blackwell, own };

/// One row of the catalogue, made by FA_RUNG of kernels/rung.h in the kernel's own file.
struct Rung {
  std::string_view id;      ///< "06"
  std::string_view name;    ///< "06_batched": file name and chapter name
  std::string_view parent;  ///< id of the parent, empty for the first of a family
  Family family = Family::own;
  Target target = {};
  Dtype dtype = {};
  Capabilities capabilities = {};
  std::string_view idea;  ///< one sentence
  /// The first instance of a head_dim is the rung itself; further ones are ablations (the same code
  /// at another tile).
  std::span<const Instance> instances;
  PlanResult (*plan)(const Problem& problem, const Instance& instance,
                     const DeviceDescription& device) = nullptr;
  /// For `fa tune` alone; only a build with FA_TUNE has any.
  std::span<const Instance> tuned = {};
  /// Why the difference to the parent has more lines than scripts/diff_budget.py allows.
  std::string_view why_large = {};

  /// Queries of a batch entry that it takes at most; those of the family `decode` take few.
  std::int64_t most_queries() const;
  /// head_dims with an instance, ascending.
  std::vector<int> head_dims() const;
  /// Whether it takes Q of this element type: its own, or that of other instances.
  bool takes(Dtype wanted) const;
  /// The instance for this head_dim and element type with this tile ("64x32w2"), or for an empty
  /// name the rung's own one (ablations come after it); nullptr when there is none.
  const Instance* find_instance(int head_dim, Dtype wanted, std::string_view tile = {}) const;
  /// All for this head_dim and element type: its own one, the ablations, and those of `tuned` if
  /// asked for.
  std::vector<const Instance*> find_instances(int head_dim, Dtype wanted, bool with_tuned) const;
  /// The element type of one of its instances.
  Dtype dtype_of(const Instance& instance) const { return instance.bf16 ? Dtype::bf16 : dtype; }
};

/// Every FA_RUNG makes one, so that the catalogue finds rungs that are not on the ladder.
class Registration {
 public:
  explicit Registration(const Rung& rung);
};

}  // namespace fa
