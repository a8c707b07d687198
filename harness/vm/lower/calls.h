// SPDX-License-Identifier: MIT
// Which functions a kernel may call.
#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "program/program.h"
#include "text/ast.h"

namespace ptxvm {

/// A function that a kernel may reach.
struct Reached {
  const text::Entry* body = nullptr;
  uint32_t number = 0;     ///< In ModuleText::functions.
  bool recursive = false;  ///< A path of calls leads from it to itself.
};

/// The calls of a module, read once.
class CallGraph {
 public:
  explicit CallGraph(const text::ModuleText& module);

  /// All that `entry` may reach, callees before their callers where there is no recursion. An
  /// indirect call may reach every function whose address the module takes. Functions without a
  /// body are left out.
  std::vector<Reached> reached(const text::Entry& entry) const;

 private:
  std::vector<uint32_t> callees(const text::Entry& body) const;
  std::vector<uint32_t> pointed_at() const;
  void find_recursion();

  const text::ModuleText& module_;
  std::unordered_map<std::string_view, uint32_t> numbers_;
  // By function, and one more: what an indirect call may reach.
  std::vector<std::vector<uint32_t>> callees_;
  std::vector<bool> recursive_;
};

/// The function that the machine provides under a name; kNone where it provides none.
System provided(std::string_view name);

/// All names that operands of a body contain, those of calls included.
template <class F>
void for_names(const text::Entry& body, F f) {
  const auto visit = [&](const auto& self, const std::vector<text::Operand>& operands) -> void {
    for (const text::Operand& o : operands) {
      if (o.kind == text::Operand::Kind::kName) f(o.name);
      self(self, o.items);
    }
  };
  for (const text::Statement& s : body.statements) {
    visit(visit, s.operands);
    if (s.call) visit(visit, s.call->arguments);
  }
}

}  // namespace ptxvm
