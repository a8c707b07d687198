// SPDX-License-Identifier: MIT
// The gate every kernel passes before it counts: run on any device, nothing of its own is trusted.
#pragma once

#include <functional>
#include <string>

#include "harness/attention/check.h"
#include "harness/device/device.h"

namespace fa {

/// What a launch did besides writing its results, by the names of the buffers.
struct Leftovers {
  std::vector<std::string> damaged;  ///< red zones were overwritten
  std::vector<std::string> nonzero;  ///< a zeroed scratch buffer was not zeroed again

  bool empty() const { return damaged.empty() && nonzero.empty(); }
  /// One line; empty when there is nothing.
  std::string reason() const;
};

/// Finds what the last launch did besides writing its results, and repairs it, so that the next
/// kernel is not blamed.
Leftovers repair(Device& device);

struct Verdict {
  bool ok = false;
  std::string reason;       ///< empty when ok; else one line, the first thing that is wrong
  CheckReport check;        ///< of the first launch
  LseReport lse;            ///< the same for the LSE; empty for a problem that does not ask for it
  bool repeatable = false;  ///< the second launch gave the same bits
  std::vector<KernelFinding> findings;  ///< of a KernelFault
  Leftovers left;                       ///< of the first launch that had any
};

/// What a second launch must give: the same bits; in `other_d_q`, gradients whose dQ may be added
/// up in another order, while dK and dV have the same bits; or, for kernels of others, which may
/// add up all parts in the order in which they arrive, a result that passes the check as well.
enum class Repeat { bits, other_d_q, correct };

/// What a rung promises.
inline Repeat promised(const LaunchPlan& plan) {
  return plan.deterministic ? Repeat::bits : Repeat::other_d_q;
}

/// Poisons O, launches, checks O against the reference, looks at the red zones; poisons O again,
/// launches again, in the opposite order where the device decides the order, and compares bit for
/// bit; the same for the LSE if the problem asks for it, or for the gradients of a backward pass.
/// The problem must be loaded. `launch` enqueues one pass. A KernelFault is a verdict, other errors
/// are thrown. The first O is moved to *output when that is given.
Verdict pass_gate(Device& device, const std::function<void()>& launch, const Verifier& verifier,
                  Repeat repeat, HostTensor* output = nullptr);

}  // namespace fa
