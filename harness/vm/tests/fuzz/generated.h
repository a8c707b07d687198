// SPDX-License-Identifier: MIT
// Kernels made from bytes: each statement is a spelling of the table with operands that fit, so
// that nearly all of them are accepted and what is fuzzed is how they run.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "isa/table.h"

namespace ptxvm_fuzz {

/// Takes bytes one by one; zeros after the last.
class Bytes {
 public:
  explicit Bytes(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  bool empty() const { return at_ >= bytes_.size(); }
  uint32_t next() { return empty() ? 0 : bytes_[at_++]; }
  uint32_t below(size_t n) {
    const uint32_t value = next();
    return static_cast<uint32_t>((n > 256 ? value << 8 | next() : value) % std::max<size_t>(n, 1));
  }

 private:
  std::span<const uint8_t> bytes_;
  size_t at_ = 0;
};

class Generator {
 public:
  explicit Generator(std::span<const uint8_t> bytes) : in_(bytes) {}

  std::string kernel() {
    while (!in_.empty() && body_.size() < kMostText) statement();
    std::string text = ".version 9.0\n.target sm_" + std::string(target_ == 100 ? "100a" : "90a") +
                       "\n.address_size 64\n"
                       ".func helper() { ret; }\n"
                       ".visible .entry k(.param .u64 buffer, .param .align 64 .b8 map[128])\n{\n"
                       "  .param .align 16 .b8 passed[16];\n"
                       "  .shared .align 1024 .b8 area[4096];\n  .local .align 16 .b8 stack[64];\n";
    for (const Kind& kind : kKinds) {
      text += "  .reg ." + std::string(kind.declared) + " %" + kind.name + "<" +
              std::to_string(kRegisters) + ">;\n";
    }
    text +=
        "  ld.param.u64 %d0, [buffer];\n  mov.u64 %d1, area;\n  cvta.shared.u64 %d2, %d1;\n"
        "  mov.u64 %d3, map;\n  cvta.param.u64 %d3, %d3;\n  add.u64 %d4, %d0, 64;\n"
        "  mov.u32 %r0, %tid.x;\n  mov.u32 %r1, area;\n  mov.u32 %r2, 16;\n"
        "  mad.lo.u32 %r3, %r0, 16, %r1;\n  mad.wide.u32 %d5, %r0, 16, %d0;\n"
        "  mov.u32 %r4, 0xffffffff;\n  setp.eq.u32 %p0, %r0, 0;\n"
        "  setp.lt.u32 %p1, %r0, 16;\n  setp.ne.u32 %p2, %r0, %r0;\n"
        "  @%p0 mbarrier.init.shared.b64 [area+2048], 4;\n"
        "  st.shared.v4.b32 [%r3], {%r0, %r2, %r4, %r0};\n  bar.sync 0;\n" +
        registers() + cluster_line_ + body_;
    for (int i = labels_; i < kLabels; ++i) text += "L" + std::to_string(i) + ":\n";
    return text + "T: .branchtargets L0, L1, L2, L3;\n  ret;\n}\n";
  }

 private:
  // Small numbers, and descriptors of matrices that begin where shared memory does.
  static std::string registers() {
    std::string text;
    for (uint32_t i = kKept; i < kRegisters; ++i) {
      const std::string n = std::to_string(i);
      text += "  mov.b32 %r" + n + ", " + std::to_string(i - kKept) + ";\n  mov.b64 %d" + n + ", " +
              (i % 2 ? "0x4000004000010040" : std::to_string(i - kKept)) + ";\n";
    }
    return text;
  }

  struct Kind {
    const char *name, *declared;
  };
  static constexpr Kind kKinds[] = {
      {"p", "pred"}, {"h", "b16"}, {"r", "b32"}, {"d", "b64"}, {"w", "b128"}};
  static constexpr uint32_t kRegisters = 14, kKept = 6;  // the first of each kind keep their values
  static constexpr int kLabels = 4;
  static constexpr size_t kMostText = 6000;

  static const Kind& kind_of(ptxvm::Type type) {
    const int n = ptxvm::bits(type);
    if (type == ptxvm::Type::kPred) return kKinds[0];
    return kKinds[n <= 16 ? 1 : n == 32 ? 2 : n == 64 ? 3 : 4];
  }
  std::string reg(ptxvm::Type type, bool written = false) {
    const uint32_t n = written ? kKept + in_.below(kRegisters - kKept) : in_.below(kRegisters);
    return "%" + std::string(kind_of(type).name) + std::to_string(n);
  }

  std::string value(const ptxvm::isa::OperandSpec& o) {
    if (o.sink_only) return "_";
    const bool integer = o.type != ptxvm::Type::kPred &&
                         ptxvm::kind(o.type) != ptxvm::TypeKind::kFloat &&
                         ptxvm::bits(o.type) < 128;
    std::string text;
    if (o.role == ptxvm::isa::Role::kRead && !o.register_only && integer && in_.below(4) == 0) {
      constexpr const char* kSome[] = {"0", "1", "-1", "31", "32", "16", "0x80000000", "3"};
      return kSome[in_.below(std::size(kSome))];
    }
    if (o.negatable && in_.below(4) == 0) text += "!";
    text += reg(o.type, o.role != ptxvm::isa::Role::kRead);
    if (o.pair && in_.below(2) != 0) text += "|" + reg(ptxvm::Type::kPred, true);
    if (o.parts != 0 && in_.below(2) != 0) text += o.parts == 2 ? ".h10" : ".b3210";
    return text;
  }

  // Mostly in the space that the instruction names, and aligned.
  std::string memory(const ptxvm::isa::OperandSpec& o, const ptxvm::isa::Spelling& s, bool first) {
    if (o.passed) return "[passed]";
    if (o.tensor) return "[" + reg(ptxvm::Type::kU32) + "]";
    const auto has = [&](std::string_view word) {
      return std::any_of(s.tokens.begin(), s.tokens.end(),
                         [&](const auto& t) { return t.text == word; });
    };
    const bool copies = s.tokens[0].text == "cp" || s.tokens[0].text == "tensormap";
    const bool barrier = s.tokens[0].text == "mbarrier";
    const bool shared = has("shared") || has("shared::cta") || has("shared::cluster") || barrier;
    std::string text = o.coordinates > 0                          ? "%d3"
                       : copies && shared && has("global")        ? (first ? "area" : "%d0")
                       : shared                                   ? (in_.below(2) ? "%r3" : "area")
                       : has("local")                             ? "stack"
                       : has("param") && s.tokens[0].text == "ld" ? "buffer"
                       : has("global") || in_.below(2)            ? (in_.below(2) ? "%d5" : "%d0")
                                                                  : "%d2";
    if (in_.below(24) == 0) text = reg(ptxvm::Type::kU64);
    text = "[" + text;
    if (barrier) {
      text = "[area+2048";
    } else if (const uint32_t offset = in_.below(8); offset != 0 && !has("param")) {
      text += "+" + std::to_string(offset < 7 ? 8u << offset : offset);
    }
    if (o.coordinates > 0) {
      text += ", {";
      for (int i = 0; i < o.coordinates; ++i)
        text += (i ? ", " : "") + std::string(in_.below(2) ? "0" : "%r2");
      text += "}";
    }
    return text + "]";
  }

  std::string operand(const ptxvm::isa::OperandSpec& o, const ptxvm::isa::Spelling& s, bool first) {
    using ptxvm::isa::OperandKind;
    switch (o.kind) {
      case OperandKind::kValue:
        return value(o);
      case OperandKind::kVector: {
        std::string text = "{";
        const uint32_t begin = in_.next();
        for (int i = 0; i < o.count; ++i) {
          const uint32_t n = kKept + (begin + static_cast<uint32_t>(i)) % (kRegisters - kKept);
          text += (i ? ", %" : "%") + std::string(kind_of(o.type).name) + std::to_string(n);
        }
        return text + "}";
      }
      case OperandKind::kMemory:
        return memory(o, s, first);
      case OperandKind::kImmediate: {
        const int64_t most = std::min<int64_t>((o.hi - o.lo) / o.step, 255);
        return std::to_string(o.lo + o.step * in_.below(static_cast<size_t>(most) + 1));
      }
      case OperandKind::kLabel:
        return "L" + std::to_string(in_.below(kLabels));
      case OperandKind::kTargets:
        return "T";
      case OperandKind::kFunction:
        return "helper";
    }
    return {};
  }

  void statement() {
    const uint32_t what = in_.below(24);
    if (what == 0 && labels_ < kLabels) {
      body_ += "L" + std::to_string(labels_++) + ":\n";
      return;
    }
    if (what == 1) cluster_line_ = "  mov.u32 %r5, %cluster_ctarank;\n";
    if (what == 2) body_ += "  bar.sync 0;\n";
    const std::vector<const ptxvm::isa::Spelling*>& all = spellings_of(in_.below(rows()));
    const ptxvm::isa::Spelling& chosen = *all[in_.below(all.size())];
    for (const int other : {90, 100}) {  // what the target lacks cannot stand beside the others
      if (chosen.row->runs_on(190 - other, true)) continue;
      if (target_ == 190 - other) return;
      target_ = other;
    }
    const uint8_t group = chosen.exclusive_group();
    if (group != 0 && group_ != 0 && group != group_) return;
    if (group != 0) group_ = group;
    std::string text = "  ";
    const uint32_t guard = in_.below(8);
    if (guard < 3 && chosen.row->lanes == ptxvm::isa::Lanes::kAny)
      text += (guard == 2 ? "@!%p" : "@%p") + std::to_string(in_.below(3)) + " ";
    text += chosen.text;
    bool first = true;
    for (const ptxvm::isa::OperandSpec& o : chosen.operands) {
      if (o.optional && in_.below(2) == 0) continue;
      text += (first ? " " : ", ") + operand(o, chosen, first);
      first = false;
    }
    body_ += text + ";\n";
  }

  // Spellings that run, by rows.
  static const std::vector<std::vector<const ptxvm::isa::Spelling*>>& table() {
    static const auto all = [] {
      std::vector<std::vector<const ptxvm::isa::Spelling*>> rows(ptxvm::isa::rows().size());
      for (const ptxvm::isa::Spelling& s : ptxvm::isa::spellings()) {
        if (s.runs()) rows[s.row_index].push_back(&s);
      }
      return rows;
    }();
    return all;
  }
  static size_t rows() { return table().size(); }
  static const std::vector<const ptxvm::isa::Spelling*>& spellings_of(size_t row) {
    while (table()[row].empty())  // what does not run
      row = (row + 1) % table().size();
    return table()[row];
  }

  Bytes in_;
  std::string body_, cluster_line_;
  int labels_ = 0;
  int target_ = 0;  // that statements so far need
  uint8_t group_ = 0;
};

}  // namespace ptxvm_fuzz
