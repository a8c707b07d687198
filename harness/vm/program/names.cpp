// SPDX-License-Identifier: MIT
// Names of public enumerations.
#include "ptxvm/launch.h"
#include "ptxvm/module.h"
#include "ptxvm/observer.h"

namespace ptxvm {

std::string_view name(CountClass c) {
  constexpr std::string_view kNames[] = {
      "integer",        "float",        "half",          "double",       "exp",
      "special",        "convert",      "compare",       "move",         "tensor",
      "wgmma",          "wgmma_sync",   "tcgen05",       "tcgen05_sync", "tensor_memory",
      "ldmatrix",       "stmatrix",     "movmatrix",     "load_shared",  "store_shared",
      "load_global",    "store_global", "load_local",    "store_local",  "load_param",
      "load_const",     "load_generic", "store_generic", "atomic",       "cp_async",
      "cp_async_group", "bulk_copy",    "mbarrier",      "shuffle",      "vote",
      "barrier",        "fence",        "branch",        "control"};
  static_assert(std::size(kNames) == static_cast<size_t>(CountClass::kCount));
  return kNames[static_cast<size_t>(c)];
}

bool carries_over(CountClass c) {
  switch (c) {
    case CountClass::kInteger:
    case CountClass::kFloat:
    case CountClass::kHalf:
    case CountClass::kDouble:
    case CountClass::kSpecial:
    case CountClass::kConvert:
    case CountClass::kCompare:
    case CountClass::kMove:
    case CountClass::kWgmmaSync:
    case CountClass::kTcgen05:
    case CountClass::kTcgen05Sync:
    case CountClass::kTensorMemory:
    case CountClass::kLoadParam:
    case CountClass::kLoadConst:
    case CountClass::kBranch:
    case CountClass::kControl:
    case CountClass::kCount:
      return false;
    default:
      return true;
  }
}

std::string_view name(Space space) {
  constexpr std::string_view kNames[] = {"global", "shared",  "local", "param",
                                         "const",  "generic", "shared"};
  return kNames[static_cast<size_t>(space)];
}

std::string_view name(AccessKind kind) {
  constexpr std::string_view kNames[] = {"load",     "store",     "atomic",     "ldmatrix",
                                         "stmatrix", "copy read", "copy write", "passed"};
  return kNames[static_cast<size_t>(kind)];
}

std::string_view name(FaultKind kind) {
  constexpr std::string_view kNames[] = {"out of bounds", "misaligned", "divergence", "deadlock",
                                         "trap",          "step limit", "invalid"};
  return kNames[static_cast<size_t>(kind)];
}

std::string_view name(Severity severity) {
  return severity == Severity::kError ? "error" : "advice";
}

}  // namespace ptxvm
