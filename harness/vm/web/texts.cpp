// SPDX-License-Identifier: MIT
#include "web/texts.h"

#include <map>
#include <stdexcept>

namespace ptxvm::web {
namespace {

std::map<std::string, Module>& modules() {
  static std::map<std::string, Module> loaded;
  return loaded;
}

}  // namespace

Json load(const Json& request) {
  const auto module = Module::parse(request.at("text"), request.at("name"));
  Json entries = Json::array();
  for (const Kernel& kernel : module.kernels()) {
    modules().insert_or_assign(kernel.name(), module);
    entries.push_back(entry_json(kernel));
  }
  return {{"target", module.target()}, {"entries", std::move(entries)}};
}

const Module& module_of(const std::string& entry) {
  const auto found = modules().find(entry);
  if (found == modules().end()) {
    throw std::invalid_argument("no text with the entry " + entry + " is loaded");
  }
  return found->second;
}

}  // namespace ptxvm::web
