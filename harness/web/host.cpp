// SPDX-License-Identifier: MIT
// What a page has in place of folders, signals and /proc.
#include <atomic>
#include <optional>

#include "harness/device/ptx_library.h"
#include "harness/io/interrupt.h"
#include "harness/io/memory.h"
#include "harness/vm/web/texts.h"

namespace fa {

PtxLibrary::PtxLibrary(std::filesystem::path folder) : folder_(std::move(folder)) {}

const ptxvm::Module& PtxLibrary::find(const std::string& entry) {
  return ptxvm::web::module_of(entry);
}

namespace io {

// The page stops a run by ending its worker.
const std::atomic<bool>& interrupt_flag() {
  static const std::atomic<bool> never{false};
  return never;
}

void stop_if_interrupted() {}

}  // namespace io
}  // namespace fa

std::optional<std::uint64_t> ptxvm::io::available_memory(const std::filesystem::path& /*root*/) {
  return std::nullopt;
}
