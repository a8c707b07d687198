// SPDX-License-Identifier: MIT
// What a page has in place of folders, signals and /proc.
#include <atomic>
#include <optional>
#include <stdexcept>

#include "harness/device/device.h"
#include "harness/device/ptx_library.h"
#include "harness/io/interrupt.h"
#include "harness/io/memory.h"
#include "harness/web/texts.h"

namespace fa {

namespace web {

std::map<std::string, ptxvm::Module>& modules() {
  static std::map<std::string, ptxvm::Module> loaded;
  return loaded;
}

const ptxvm::Module& module_of(const std::string& entry) {
  const auto found = modules().find(entry);
  if (found == modules().end()) throw DeviceError("no text with the entry " + entry + " is loaded");
  return found->second;
}

}  // namespace web

PtxLibrary::PtxLibrary(std::filesystem::path folder) : folder_(std::move(folder)) {}

const ptxvm::Module& PtxLibrary::find(const std::string& entry) {
  return web::module_of(entry);
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
