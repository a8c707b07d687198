// SPDX-License-Identifier: MIT
// What one card was measured to do at best: the committed limits.json, as the program was built.
#pragma once

#include <string_view>

namespace fa::limits {

/// "NVIDIA H200".
std::string_view committed_card();
int committed_sms();

/// FLOP, exponentials or bytes of an SM in a clock, as the loop with this id reached them. A loop
/// that the file does not have is an error of the caller.
double committed_per_clock(std::string_view loop);

}  // namespace fa::limits
