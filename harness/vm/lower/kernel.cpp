// The public view of a program.
#include "lower/lower.h"
#include "ptxvm/module.h"

namespace ptxvm {

const std::string& Kernel::name() const {
  return program_->name;
}
std::span<const Parameter> Kernel::parameters() const {
  return program_->parameters;
}
uint32_t Kernel::parameter_bytes() const {
  return program_->parameter_bytes;
}
uint32_t Kernel::static_shared_bytes() const {
  return program_->shared_bytes;
}
bool Kernel::uses_dynamic_shared() const {
  return program_->dynamic_shared;
}
uint32_t Kernel::local_bytes() const {
  return program_->local_bytes;
}
uint32_t Kernel::register_slots() const {
  return program_->register_slots;
}
std::optional<Dim3> Kernel::max_threads() const {
  return program_->max_threads;
}
std::optional<Dim3> Kernel::required_threads() const {
  return program_->required_threads;
}
std::optional<Dim3> Kernel::required_cluster() const {
  return program_->required_cluster;
}
std::span<const InstructionInfo> Kernel::instructions() const {
  return program_->instructions;
}
uint32_t Kernel::block_count() const {
  return static_cast<uint32_t>(program_->blocks.size());
}
std::span<const uint32_t> Kernel::block_first() const {
  return program_->block_first;
}
std::span<const Diagnostic> Kernel::unsupported() const {
  return program_->unsupported;
}

std::span<const SourceLocation> Kernel::source(uint32_t instruction) const {
  const int location = program_->instructions[instruction].location;
  if (location < 0) return {};
  return program_->locations[static_cast<size_t>(location)];
}

Diagnostic Kernel::point_at(uint32_t instruction, std::string message) const {
  Diagnostic d = program_->source->point_at(program_->spans[instruction], std::move(message));
  const auto chain = source(instruction);
  if (!chain.empty()) d.notes.push_back(describe_chain({chain.begin(), chain.end()}));
  return d;
}

std::string_view name(CountClass c) {
  constexpr std::string_view kNames[] = {
      "integer",      "float",          "half",         "double",        "exp",
      "special",      "convert",        "compare",      "move",          "tensor",
      "wgmma",        "wgmma_sync",     "ldmatrix",     "stmatrix",      "load_shared",
      "store_shared", "load_global",    "store_global", "load_local",    "store_local",
      "load_param",   "load_const",     "load_generic", "store_generic", "atomic",
      "cp_async",     "cp_async_group", "bulk_copy",    "mbarrier",      "shuffle",
      "vote",         "barrier",        "fence",        "branch",        "control"};
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
  constexpr std::string_view kNames[] = {"load",     "store",     "atomic",    "ldmatrix",
                                         "stmatrix", "copy read", "copy write"};
  return kNames[static_cast<size_t>(kind)];
}

std::string_view name(FaultKind kind) {
  constexpr std::string_view kNames[] = {"out of bounds", "misaligned", "divergence", "deadlock",
                                         "trap",          "step limit", "invalid"};
  return kNames[static_cast<size_t>(kind)];
}

}  // namespace ptxvm
