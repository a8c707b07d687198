// The list of rungs. Everything that names a rung reads it: CLI, tests, bench, charts, docs.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/launch_plan.h"
#include "kernels/types.h"

namespace fa {

const char* to_string(Family family);
/// "sm_80", "sm_90a", "sm_100a".
const char* to_string(Target target);
/// Whether a card of this compute capability (x 10) runs the code.
bool runs_on(Target target, int sm);

/// All rungs in the order of ladder.def, then those of kernels/own. Throws when two share an id.
std::span<const Rung> catalogue();

/// Gives the problem the rung's type of K and V, and of Q and O if the problem has float16, the
/// default, and the rung does not take it. A problem of any other type keeps it, to be refused.
void set_types(const Rung& rung, Problem& problem);

/// Whether the problem has the rung's types.
bool types_match(const Rung& rung, const Problem& problem);

/// Whether this build has the tiles of kernels/tune_tiles.h (CMake option FA_TUNE).
bool has_tuned_tiles();

/// The rung with this id ("06"), nullptr when there is none.
const Rung* find_rung(std::string_view id);

/// Whether a list of several rungs leaves this one out of the problem: those that compute
/// gradients, and those of the family `decode` out of many queries, if there are others that are
/// not.
bool left_out(const Rung& rung, const std::vector<const Rung*>& of, const Problem& problem);

/// What to say where a list leaves out all of its rungs.
inline constexpr const char* kAllLeftOut =
    "gradients, and new queries against a cache, are other problems; name one family at a time";

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
