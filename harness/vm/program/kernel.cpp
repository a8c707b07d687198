// SPDX-License-Identifier: MIT
// The public views of a program and a module.
#include "program/program.h"

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
std::span<const Diagnostic> Kernel::errors() const {
  return program_->errors;
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
  if (!chain.empty()) d.notes.push_back(describe_chain(chain));
  return d;
}

std::string describe_chain(std::span<const SourceLocation> chain) {
  if (chain.empty()) return {};
  auto place = [](const SourceLocation& l) {
    return to_string({l.file.substr(l.file.find_last_of('/') + 1), l.line, 0});
  };
  std::string text = "from " + place(chain[0]);
  for (size_t i = 1; i < chain.size(); ++i) {
    text += i == 1 ? " (inlined at " : ", inlined at ";
    text += place(chain[i]);
  }
  if (chain.size() > 1) text += ")";
  return text;
}

const std::string& Module::file_name() const {
  return data_->source->file_name();
}
const std::string& Module::target() const {
  return data_->target;
}
int Module::isa_version() const {
  return data_->version;
}
std::span<const Kernel> Module::kernels() const {
  return data_->kernels;
}

const Kernel& Module::kernel(std::string_view name) const {
  std::string names;
  for (const Kernel& k : data_->kernels) {
    if (k.name() == name) return k;
    names += (names.empty() ? "" : ", ") + k.name();
  }
  throw Error(file_name() + ": there is no entry '" + std::string(name) + "'" +
              (names.empty() ? "; the file has none" : "; there are: " + names));
}

}  // namespace ptxvm
