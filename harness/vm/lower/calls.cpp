// SPDX-License-Identifier: MIT
#include "lower/calls.h"

#include <algorithm>
#include <array>
#include <unordered_set>
#include <utility>

namespace ptxvm {

CallGraph::CallGraph(const text::ModuleText& module) : module_(module) {
  for (uint32_t i = 0; i < module.functions.size(); ++i) {
    numbers_.emplace(module.functions[i].name, i);
  }
  for (const text::Entry& f : module.functions) callees_.push_back(callees(f));
  callees_.push_back(pointed_at());
  find_recursion();
}

// Functions that a body names as targets of its calls; last, where it calls through a pointer, what
// that may reach.
std::vector<uint32_t> CallGraph::callees(const text::Entry& body) const {
  std::vector<uint32_t> out;
  bool indirect = false;
  for (const text::Statement& s : body.statements) {
    if (!s.call) continue;
    const auto found = numbers_.find(s.call->target.name);
    if (found == numbers_.end()) {
      indirect = true;
    } else if (module_.functions[found->second].defined) {
      out.push_back(found->second);
    }
  }
  if (indirect) out.push_back(static_cast<uint32_t>(module_.functions.size()));
  return out;
}

// Functions whose address is taken anywhere in the module.
std::vector<uint32_t> CallGraph::pointed_at() const {
  std::vector<uint32_t> out;
  std::unordered_set<uint32_t> found;
  const auto look = [&](std::string_view name) {
    const auto it = numbers_.find(name);
    if (it != numbers_.end() && module_.functions[it->second].defined &&
        found.insert(it->second).second) {
      out.push_back(it->second);
    }
  };
  for (const text::Entry& e : module_.entries) for_names(e, look);
  for (const text::Entry& f : module_.functions) for_names(f, look);
  for (const text::Declaration& d : module_.variables) {
    for (const text::Operand& o : d.initial) look(o.name);
  }
  return out;
}

// Strongly connected components with more than one member, and functions that call themselves.
void CallGraph::find_recursion() {
  struct Visit {
    uint32_t number;
    size_t next = 0;
  };
  const size_t count = callees_.size();
  recursive_.assign(count, false);
  std::vector<uint32_t> index(count, 0), low(count, 0), stack;
  std::vector<bool> on_stack(count, false);
  std::vector<Visit> visits;
  uint32_t counter = 0;
  const auto open = [&](uint32_t n) {
    index[n] = low[n] = ++counter;
    stack.push_back(n);
    on_stack[n] = true;
    visits.push_back({n});
  };
  for (uint32_t root = 0; root < count; ++root) {
    if (index[root] != 0) continue;
    open(root);
    while (!visits.empty()) {
      Visit& v = visits.back();
      if (v.next < callees_[v.number].size()) {
        const uint32_t to = callees_[v.number][v.next++];
        if (to == v.number) recursive_[to] = true;
        if (index[to] == 0) {
          open(to);
        } else if (on_stack[to]) {
          low[v.number] = std::min(low[v.number], index[to]);
        }
        continue;
      }
      const uint32_t done = v.number;
      visits.pop_back();
      if (!visits.empty())
        low[visits.back().number] = std::min(low[visits.back().number], low[done]);
      if (low[done] != index[done]) continue;
      const bool alone = stack.back() == done;
      uint32_t member;
      do {
        member = stack.back();
        stack.pop_back();
        on_stack[member] = false;
        if (!alone) recursive_[member] = true;
      } while (member != done);
    }
  }
}

std::vector<Reached> CallGraph::reached(const text::Entry& entry) const {
  struct Visit {
    const std::vector<uint32_t>* callees;
    uint32_t number;
    size_t next = 0;
  };
  std::vector<Reached> out;
  std::unordered_set<uint32_t> seen;
  const std::vector<uint32_t> first = callees(entry);
  std::vector<Visit> stack{{&first, 0}};
  while (!stack.empty()) {
    Visit& top = stack.back();
    if (top.next < top.callees->size()) {
      const uint32_t callee = (*top.callees)[top.next++];
      if (seen.insert(callee).second) stack.push_back({&callees_[callee], callee});
      continue;
    }
    const uint32_t number = top.number;
    stack.pop_back();
    if (!stack.empty() && number < module_.functions.size()) {
      out.push_back({&module_.functions[number], number, recursive_[number]});
    }
  }
  return out;
}

System provided(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, System>, 4> kProvided = {
      {{"vprintf", System::kPrintf},
       {"__assertfail", System::kAssert},
       {"malloc", System::kMalloc},
       {"free", System::kFree}}};
  for (const auto& [known, system] : kProvided) {
    if (known == name) return system;
  }
  return System::kNone;
}

}  // namespace ptxvm
