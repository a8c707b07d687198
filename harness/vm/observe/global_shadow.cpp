// SPDX-License-Identifier: MIT
#include "observe/global_shadow.h"

namespace ptxvm::observe {

void GlobalShadow::refine(Page& page) {
  std::vector<GlobalCell> bytes(kPage);
  if (!page.cells.empty()) {
    for (size_t i = 0; i < kPage; ++i) bytes[i] = page.cells[i / 4];
  }
  page.cells = std::move(bytes);
}

}  // namespace ptxvm::observe
