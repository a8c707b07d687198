// SPDX-License-Identifier: MIT
#include "harness/measure/limits/committed.h"

#include <committed_limits.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#include <utility>

namespace fa::limits {
namespace {

constexpr auto kLoops = std::to_array<std::pair<std::string_view, double>>({FA_LIMITS_LOOPS});

}  // namespace

std::string_view committed_card() {
  return FA_LIMITS_CARD;
}

int committed_sms() {
  return FA_LIMITS_SMS;
}

double committed_per_clock(std::string_view loop) {
  const auto* const found = std::find_if(kLoops.begin(), kLoops.end(),
                                         [&](const auto& each) { return each.first == loop; });
  if (found == kLoops.end()) {
    throw std::logic_error("no committed limit of the loop " + std::string(loop));
  }
  return found->second;
}

}  // namespace fa::limits
