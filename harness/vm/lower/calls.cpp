// SPDX-License-Identifier: MIT
#include "lower/calls.h"

#include <array>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace ptxvm {
namespace {

class CallGraph {
 public:
  explicit CallGraph(const text::ModuleText& module) : module_(module) {
    for (uint32_t i = 0; i < module.functions.size(); ++i) {
      numbers_.emplace(module.functions[i].name, i);
    }
  }

  // Functions that a body names as targets of its calls, or may call through a pointer.
  std::vector<uint32_t> callees(const text::Entry& body) {
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
    if (indirect) out.insert(out.end(), pointed_at().begin(), pointed_at().end());
    return out;
  }

 private:
  // Functions whose address is taken anywhere in the module.
  const std::vector<uint32_t>& pointed_at() {
    if (!pointers_known_) {
      pointers_known_ = true;
      std::unordered_set<uint32_t> found;
      const auto look = [&](std::string_view name) {
        const auto it = numbers_.find(name);
        if (it != numbers_.end() && module_.functions[it->second].defined &&
            found.insert(it->second).second) {
          pointers_.push_back(it->second);
        }
      };
      for (const text::Entry& e : module_.entries) for_names(e, look);
      for (const text::Entry& f : module_.functions) for_names(f, look);
      for (const text::Declaration& d : module_.variables) {
        for (const text::Operand& o : d.initial) look(o.name);
      }
    }
    return pointers_;
  }

  const text::ModuleText& module_;
  std::unordered_map<std::string_view, uint32_t> numbers_;
  std::vector<uint32_t> pointers_;
  bool pointers_known_ = false;
};

}  // namespace

std::vector<Reached> reached_functions(const text::ModuleText& module, const text::Entry& entry) {
  CallGraph graph(module);
  struct Visit {
    std::vector<uint32_t> callees;
    size_t next = 0;
    uint32_t number = 0;
  };
  std::vector<Reached> out;
  std::unordered_map<uint32_t, std::vector<uint32_t>> edges;
  std::vector<Visit> stack{{graph.callees(entry), 0, 0}};
  while (!stack.empty()) {
    Visit& top = stack.back();
    if (top.next < top.callees.size()) {
      const uint32_t callee = top.callees[top.next++];
      if (edges.contains(callee)) continue;
      const auto& known = edges[callee] = graph.callees(module.functions[callee]);
      stack.push_back({known, 0, callee});
      continue;
    }
    if (stack.size() > 1) out.push_back({&module.functions[top.number], top.number, false});
    stack.pop_back();
  }
  for (Reached& f : out) {
    std::unordered_set<uint32_t> seen;
    std::vector<uint32_t> work = edges[f.number];
    while (!work.empty() && !f.recursive) {
      const uint32_t n = work.back();
      work.pop_back();
      f.recursive |= n == f.number;
      if (seen.insert(n).second) work.insert(work.end(), edges[n].begin(), edges[n].end());
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
