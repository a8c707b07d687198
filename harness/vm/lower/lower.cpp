// SPDX-License-Identifier: MIT
// One program: an entry and the functions that it may call.
#include "lower/lower.h"

#include <algorithm>
#include <deque>
#include <set>

#include "lower/body.h"
#include "lower/calls.h"

namespace ptxvm {
namespace {

// Local memory of each thread for the frames of recursive calls and for alloca.
constexpr uint32_t kStackBytes = 16384;
constexpr uint32_t kReservedShared = 1024;
constexpr std::string_view kReservedName = "%reserved_smem_offset";

// Of all entries of a module. A function counts for each entry that may call it.
constexpr uint64_t kMostStatements = 3'000'000;
constexpr uint64_t kFunction = 20;  // what a function costs besides
// Every register of the text has a place of its own: half a million of 32 bits.
constexpr uint32_t kMostRegisterBytes = 64 << 20;

class ProgramLowering {
 public:
  ProgramLowering(const text::ModuleText& module, const text::Entry& entry, ModuleIndex& index,
                  const ModuleData& data, Program& program)
      : entry_(entry),
        index_(index),
        program_(program),
        errors_(*data.source),
        unsupported_(*data.source, "instruction", " that this machine does not run"),
        symbols_(index.symbols),
        context_{module, symbols_, data, program, errors_, unsupported_, index.explained, {}, {}} {
    program.name = std::string(entry.name);
    program.source = data.source.get();
    program.max_threads = entry.max_threads;
    program.min_blocks = entry.min_blocks;
    program.required_threads = entry.required_threads;
    program.required_cluster = entry.required_cluster;
  }

  void run() {
    if (!find_functions() || errors_in_text()) return;
    place_shared_variables();
    make_functions();
    bodies_.emplace_back(context_, entry_, nullptr);
    for (size_t i = 0; i < reached_.size(); ++i) {
      bodies_.emplace_back(context_, *reached_[i].body, &program_.functions[i]);
    }
    program_.dynamic_offset = align_up(program_.shared_bytes, index_.dynamic_alignment);
    for (BodyLowering& body : bodies_) body.read();
    if (program_.register_bytes > kMostRegisterBytes) {
      errors_.add(entry_.span, "the entry has " + std::to_string(program_.register_slots) +
                                   " registers, which is too many");
    }
    program_.unsupported = unsupported_.take();
    program_.errors = errors_.take();
    if (!program_.errors.empty() || !program_.unsupported.empty()) return;
    lay_out_frames();
    for (BodyLowering& body : bodies_) {
      body.find_blocks();
      body.find_unset();
    }
    if (context_.wgmma) {
      for (BodyLowering& body : bodies_) body.find_touches();
      program_.touch_begin.push_back(static_cast<uint32_t>(program_.touches.size()));
      program_.wgmma_lines = program_.register_bytes / kRegisterLine + 2;
    }
    for (size_t i = 1; i < bodies_.size(); ++i) bodies_[i].emit();
    bodies_.front().emit();
    link_operands();
  }

 private:
  // A text can make many entries of many functions that each has to be lowered for.
  bool find_functions() {
    index_.statements += entry_.statements.size();
    if (index_.statements <= kMostStatements) {
      reached_ = index_.calls.reached(entry_);
      for (const Reached& f : reached_) index_.statements += kFunction + f.body->statements.size();
    }
    if (index_.statements <= kMostStatements) return true;
    errors_.add(entry_.span, "this entry and those before it have more than " +
                                 std::to_string(kMostStatements) +
                                 " instructions, with those of the functions that each may call");
    program_.errors = errors_.take();
    return false;
  }

  bool errors_in_text() {
    program_.errors = entry_.errors;
    for (const Reached& f : reached_) {
      program_.errors.insert(program_.errors.end(), f.body->errors.begin(), f.body->errors.end());
      if (f.body->errors.empty() && f.body->statements.empty()) {
        errors_.add(f.body->span, "the function has no instructions");
      }
    }
    if (program_.errors.empty() && entry_.statements.empty()) {
      errors_.add(entry_.span, "the entry has no instructions");
    }
    const std::vector<Diagnostic> more = errors_.take();
    program_.errors.insert(program_.errors.end(), more.begin(), more.end());
    return !program_.errors.empty();
  }

  // Static shared variables that several kernels name stand at module level; each program has only
  // those that it uses. So has it the part of shared memory that the system reserves.
  void place_shared_variables() {
    std::set<uint32_t> used;
    bool reserved = false;
    const auto collect = [&](std::string_view name) {
      reserved |= name.starts_with(kReservedName);
      const auto found = index_.shared.find(name);
      if (found != index_.shared.end()) used.insert(found->second);
    };
    for_names(entry_, collect);
    for (const Reached& f : reached_) for_names(*f.body, collect);
    for (uint32_t number : used) {
      symbols_.place(place_shared(context_.module.variables[number], program_, errors_));
    }
    if (!reserved) return;
    text::Declaration d;
    d.name = kReservedName;
    d.type = Type::kB8;
    d.count = kReservedShared;
    d.align = 128;
    symbols_.place(place_shared(d, program_, errors_));
  }

  void make_functions() {
    program_.functions.resize(reached_.size());
    for (uint32_t i = 0; i < reached_.size(); ++i) {
      Function& f = program_.functions[i];
      f.name = std::string(reached_[i].body->name);
      f.address = symbols_.find(reached_[i].body->name)->address;
      f.recursive = reached_[i].recursive;
      context_.functions.emplace(reached_[i].body->name, i);
    }
  }

  // No function that is not recursive is active twice, so that the sum of their frames is enough,
  // but for what alloca takes.
  void lay_out_frames() {
    constexpr uint32_t kAlign = 16;
    bool grows = context_.allocates;
    if (program_.functions.empty() && !grows) return;
    program_.local_bytes = program_.frame_bytes = align_up(program_.local_bytes, kAlign);
    for (Function& f : program_.functions) {
      f.frame_bytes = std::max(kAlign, align_up(f.frame_bytes, kAlign));
      program_.local_bytes += f.frame_bytes;
      grows |= f.recursive;
      if (!f.recursive) f.registers.clear();
    }
    if (grows) program_.local_bytes += kStackBytes;
  }

  void link_operands() {
    for (auto* code : {&program_.plain, &program_.observed}) {
      for (size_t i = 0; i < code->size(); ++i) {
        Op& op = (*code)[i];
        const size_t begin = context_.list_begin[i];
        op.list = program_.operands.data() + begin;
        const size_t have =
            (i + 1 < code->size() ? context_.list_begin[i + 1] : program_.operands.size()) - begin;
        std::copy_n(op.list, std::min<size_t>(have, std::size(op.r)), op.r);
      }
    }
  }

  const text::Entry& entry_;
  ModuleIndex& index_;
  Program& program_;
  text::Errors errors_, unsupported_;
  std::vector<Reached> reached_;
  ProgramSymbols symbols_;
  ProgramContext context_;
  std::deque<BodyLowering> bodies_;  // the entry first
};

}  // namespace

ModuleIndex::ModuleIndex(const text::ModuleText& module) : calls(module) {
  for (uint32_t i = 0; i < module.variables.size(); ++i) {
    const text::Declaration& d = module.variables[i];
    if (d.space != "shared") continue;
    if (d.external) {
      dynamic_alignment = std::max(dynamic_alignment, d.align);
    } else {
      shared.emplace(d.name, i);
    }
  }
}

void lower_entry(const text::ModuleText& module, const text::Entry& entry, ModuleIndex& index,
                 const ModuleData& data, Program& program) {
  ProgramLowering(module, entry, index, data, program).run();
}

}  // namespace ptxvm
