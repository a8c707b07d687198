// SPDX-License-Identifier: MIT
#include "isa/sample.h"

#include <array>

namespace ptxvm::isa {
namespace {

constexpr int kRegistersPerType = 160;  // wgmma has up to 128 accumulators

constexpr std::array kTypes = {Type::kPred, Type::kB8,     Type::kB16,  Type::kB32, Type::kB64,
                               Type::kU8,   Type::kU16,    Type::kU32,  Type::kU64, Type::kS8,
                               Type::kS16,  Type::kS32,    Type::kS64,  Type::kF16, Type::kF16x2,
                               Type::kBf16, Type::kBf16x2, Type::kTf32, Type::kF32, Type::kF32x2,
                               Type::kF64,  Type::kB128};

// Types that `.reg` has no name for live in registers of bits.
std::string_view declared(Type t) {
  switch (t) {
    case Type::kBf16:
      return "b16";
    case Type::kBf16x2:
    case Type::kTf32:
      return "b32";
    case Type::kF32x2:
      return "b64";
    default:
      return name(t);
  }
}

std::string reg(Type t, int index) {
  return "%sample_" + std::string(name(t)) + "_" + std::to_string(index % kRegistersPerType);
}

std::string operand(const OperandSpec& spec, int& next, bool constants) {
  switch (spec.kind) {
    case OperandKind::kValue: {
      if (spec.sink_only) return "_";
      std::string text = reg(spec.type, next++);
      if (spec.pair) text += "|" + reg(Type::kPred, next++);
      return text;
    }
    case OperandKind::kVector: {
      std::string text = "{";
      const bool constant = constants && !spec.register_only && spec.count > 1;
      for (int i = 0; i < spec.count - constant; ++i) {
        text += (i ? ", " : "") + reg(spec.type, next++);
      }
      if (constant) text += kind(spec.type) == TypeKind::kFloat ? ", 0f3F800000" : ", 1";
      return text + "}";
    }
    case OperandKind::kMemory: {
      std::string text = "[" + (spec.passed ? "sample_passed"
                                            : reg(spec.tensor ? Type::kB32 : Type::kU64, next++));
      if (spec.coordinates > 0) {
        text += ", {";
        for (int i = 0; i < spec.coordinates; ++i)
          text += (i ? ", " : "") + reg(Type::kB32, next++);
        text += "}";
      }
      return text + "]";
    }
    case OperandKind::kImmediate:
      return std::to_string(spec.lo);
    case OperandKind::kLabel:
      return "$sample_label";
    case OperandKind::kTargets:
      return "$sample_targets";
    case OperandKind::kFunction:
      return "sample_function";
  }
  return {};
}

}  // namespace

std::string sample_statement(const Spelling& spelling, bool with_optional, bool constants) {
  std::string text = spelling.text;
  int next = 0;
  bool first = true;
  for (const OperandSpec& spec : spelling.operands) {
    if (spec.optional && (!with_optional || spec.sm > spelling.row->sm)) continue;
    text += first ? " " : ", ";
    text += operand(spec, next, constants);
    first = false;
  }
  return text + ";";
}

std::string sample_target(const Spelling& spelling) {
  if (spelling.row->runs_on(90, true)) return "90a";
  return spelling.exclusive_group() == 2 ? "100a.2" : "100a";
}

std::string target_name(const std::string& sample_target) {
  return sample_target.substr(0, sample_target.find('.'));
}

std::string sample_functions() {
  return ".func sample_function() { ret; }\n";
}

std::string sample_declarations() {
  std::string text = ".param .align 16 .b8 sample_passed[16];\n";
  for (Type t : kTypes) {
    text += ".reg ." + std::string(declared(t)) + " %sample_" + std::string(name(t)) + "_<" +
            std::to_string(kRegistersPerType) + ">;\n";
  }
  return text + "$sample_targets: .branchtargets $sample_label;\n";
}

}  // namespace ptxvm::isa
