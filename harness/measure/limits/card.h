// SPDX-License-Identifier: MIT
// What one card was measured to do at best: a limits.json, read when it is first asked for. The
// variable FA_LIMITS names it; else it is that of the H200, from where the program is installed or
// from the source tree. All throw io::FileError where it cannot be read.
#pragma once

#include <string>
#include <string_view>

namespace fa::limits {

/// "NVIDIA H200".
const std::string& card_name();
int card_sms();

/// FLOP, exponentials or bytes of an SM in a clock, as the loop with this id reached them.
double card_per_clock(std::string_view loop);

}  // namespace fa::limits
