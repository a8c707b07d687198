// SPDX-License-Identifier: MIT
#include "harness/device/device.h"

#include <fmt/format.h>

#include <limits>
#include <variant>

namespace fa {

std::string text_of(const std::vector<KernelFinding>& findings) {
  std::string text;
  for (const KernelFinding& finding : findings) text += finding.text;
  return text;
}

void require_launchable(const Launch& launch, std::size_t scratch_buffers) {
  constexpr int kMost = std::numeric_limits<int>::max();
  for (const Dim3& extents : {launch.grid, launch.cluster}) {
    for (const std::int64_t extent : {extents.x, extents.y, extents.z}) {
      if (extent >= 1 && extent <= kMost) continue;
      throw KernelFault(fmt::format("{}: a grid extent of {} is not between 1 and {}", launch.entry,
                                    extent, kMost));
    }
  }
  for (const Argument& argument : launch.arguments) {
    const auto* scratch = std::get_if<ScratchRef>(&argument);
    if (!scratch || static_cast<std::size_t>(scratch->index) < scratch_buffers) continue;
    throw KernelFault(fmt::format("{}: an argument is scratch buffer {} of a plan with {}",
                                  launch.entry, scratch->index, scratch_buffers));
  }
}

}  // namespace fa
