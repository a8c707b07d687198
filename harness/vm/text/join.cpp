// SPDX-License-Identifier: MIT
#include "text/join.h"

#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace ptxvm::text {
namespace {

using Names = std::unordered_map<std::string_view, std::string_view>;

template <class F>
void for_declared(const Part& part, F f) {
  for (const Declaration& d : part.variables) f(d.name, d.own);
  for (const Entry& e : part.functions) f(e.name, e.own);
  for (const Entry& e : part.entries) f(e.name, false);
}

// New names, but for those that a body declares itself.
struct Renaming {
  const Names& names;
  std::unordered_set<std::string_view> hidden;

  void apply(std::string_view& name) const {
    const auto found = names.find(name);
    if (found != names.end() && !hidden.contains(name)) name = found->second;
  }

  void apply(std::vector<Operand>& operands) const {
    for (Operand& o : operands) {
      if (o.kind == Operand::Kind::kName) apply(o.name);
      apply(o.items);
    }
  }
};

void rename_body(Entry& body, const Names& names) {
  Renaming r{names, {}};
  for (const Scope& scope : body.scopes) {
    for (const Declaration& d : scope.declarations) {
      if (names.contains(d.name)) r.hidden.insert(d.name);
    }
  }
  for (Statement& s : body.statements) {
    r.apply(s.operands);
    if (!s.call) continue;
    r.apply(s.call->arguments);
    r.apply(s.call->target.name);
  }
}

void rename(Part& part, const Names& names) {
  const Renaming r{names, {}};
  for (Declaration& d : part.variables) {
    r.apply(d.name);
    r.apply(d.initial);
  }
  for (Entry& e : part.entries) rename_body(e, names);
  for (Entry& e : part.functions) {
    r.apply(e.name);
    rename_body(e, names);
  }
}

void keep_apart(std::vector<Part>& parts, ModuleText& module) {
  std::unordered_set<std::string_view> common;           // known outside of its module
  std::unordered_map<std::string_view, size_t> modules;  // that have a name
  for (const Part& part : parts) {
    std::unordered_set<std::string_view> seen;
    for_declared(part, [&](std::string_view name, bool own) {
      if (!own) common.insert(name);
      if (seen.insert(name).second) ++modules[name];
    });
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    Names names;
    for_declared(parts[i], [&](std::string_view name, bool own) {
      if (!own || modules[name] < 2 || names.contains(name)) return;
      if (i == 0 && !common.contains(name)) return;
      module.names.push_back(std::string(name) + "@" + std::to_string(i + 1));
      names.emplace(name, module.names.back());
    });
    if (!names.empty()) rename(parts[i], names);
  }
}

template <class T>
void append(std::vector<T>& to, std::vector<T>& from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

}  // namespace

void join(std::vector<Part> parts, ModuleText& module) {
  keep_apart(parts, module);
  std::unordered_map<std::string_view, size_t> functions;
  std::unordered_set<std::string_view> entries;
  for (Part& part : parts) {
    append(module.variables, part.variables);
    for (Entry& e : part.entries) {
      if (entries.insert(e.name).second || !e.weak) module.entries.push_back(std::move(e));
    }
    for (Entry& f : part.functions) {
      const auto [at, fresh] = functions.emplace(f.name, module.functions.size());
      if (fresh) {
        module.functions.push_back(std::move(f));
        continue;
      }
      Entry& before = module.functions[at->second];
      if (!f.defined && f.errors.empty()) continue;
      if (!f.weak || !before.defined) before = std::move(f);
    }
  }
}

}  // namespace ptxvm::text
