// SPDX-License-Identifier: MIT
// From a spelling to the functions that execute it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "isa/table.h"
#include "program/program.h"

namespace ptxvm {

/// Reads the modifiers of a spelling. Everything that the row leaves open must be read: a modifier
/// that no binder looks at is an error of the binder, found when the spelling is bound.
class Modifiers {
 public:
  explicit Modifiers(const isa::Spelling& spelling)
      : spelling_(spelling), used_(spelling.tokens.size(), false) {}

  std::string_view base() const { return spelling_.tokens[0].text; }

  /// Whether the modifier is there.
  bool flag(std::string_view text) {
    bool found = false;
    for (size_t i = 1; i < used_.size(); ++i) {
      if (spelling_.tokens[i].text == text) found = used_[i] = true;
    }
    return found;
  }

  /// Index of the first of `options` that is there; -1 when none is.
  int choice(std::initializer_list<std::string_view> options) {
    int index = 0;
    for (std::string_view option : options) {
      if (flag(option)) return index;
      ++index;
    }
    return -1;
  }

  /// The next type, from left to right.
  Type type() {
    for (size_t i = 1; i < used_.size(); ++i) {
      if (used_[i]) continue;
      if (auto t = parse_type(spelling_.tokens[i].text)) {
        used_[i] = true;
        return *t;
      }
    }
    return Type::kNone;
  }

  /// Elements of the vector that .v2, .v4 or .v8 asks for; else 1.
  int vector() {
    constexpr int kCounts[] = {2, 4, 8};
    const int which = choice({"v2", "v4", "v8"});
    return which < 0 ? 1 : kCounts[which];
  }

  /// Modifiers that change speed on hardware and nothing here.
  void ignore_cache_hints() {
    for (size_t i = 1; i < used_.size(); ++i) {
      std::string_view t = spelling_.tokens[i].text;
      if (t.starts_with("L1::") || t.starts_with("L2::") || t == "ca" || t == "cg" || t == "cs" ||
          t == "cv" || t == "lu" || t == "wb" || t == "wt") {
        used_[i] = true;
      }
    }
  }

  /// First choice that was not read; empty when all were.
  std::string_view unread() const {
    for (size_t i = 1; i < used_.size(); ++i) {
      if (spelling_.tokens[i].chosen && !used_[i]) return spelling_.tokens[i].text;
    }
    return {};
  }

  const isa::Spelling& spelling() const { return spelling_; }

 private:
  const isa::Spelling& spelling_;
  std::vector<bool> used_;
};

/// What a binder chooses. `observed` is null for operations that report nothing.
struct Bound {
  ExecFn plain = nullptr;
  ExecFn observed = nullptr;
  Aux aux = {};
};

/// The code of a spelling that runs. Throws std::logic_error when the binder leaves a modifier
/// unread or finds no code: both are errors of this library, and a test binds every spelling.
Bound bind(const isa::Spelling& spelling);

/// mov with a vector on one side or both, which the mnemonic does not show (PTX ISA 9.7.9.2):
/// elements are joined, taken apart or copied.
Bound bind_pack(PackShape shape);

/// Operations that the lowering adds: enter a block, go on elsewhere, end, refresh a slot.
Bound bind_block_marker();
Bound bind_jump();
Bound bind_exit();
Bound bind_refresh(isa::Special special);

/// call, and ret in a function.
Bound bind_call();
Bound bind_return();
/// ld and st of what a call passes, in local memory.
Bound bind_frame_access(const isa::Spelling& spelling);

}  // namespace ptxvm
