// SPDX-License-Identifier: MIT
// Names of kernels for people.
#include <cxxabi.h>

#include <cstdlib>
#include <memory>

#include "program/program.h"

namespace ptxvm {
namespace {

constexpr size_t kMostListed = 20;

/// Compilers add tags such as [abi:v1] that no source has.
void drop_abi_tags(std::string& name) {
  size_t at = 0;
  while ((at = name.find("[abi:", at)) != std::string::npos) {
    const size_t end = name.find(']', at);
    if (end == std::string::npos) return;
    name.erase(at, end - at + 1);
  }
}

/// Where the parameters begin: the last parenthesis of the outermost level.
size_t parameters_of(std::string_view name) {
  int depth = 0;
  for (size_t i = name.size(); i-- > 0;) {
    if (name[i] == ')') ++depth;
    if (name[i] == '(' && --depth == 0) return i;
  }
  return name.size();
}

/// "void a::b<int>(float*)" as people say it: the function's own name, with its scope or without.
bool is_called(std::string_view readable, std::string_view wanted) {
  std::string_view name = readable.substr(0, parameters_of(readable));
  if (name.starts_with("void ")) name.remove_prefix(5);
  if (name == wanted) return true;
  if (name.ends_with(">")) name = name.substr(0, name.find('<'));
  if (name == wanted) return true;
  const size_t scope = name.rfind("::");
  return scope != std::string_view::npos && name.substr(scope + 2) == wanted;
}

std::string list(const std::vector<const Kernel*>& kernels) {
  std::string text;
  for (size_t i = 0; i < kernels.size() && i < kMostListed; ++i) {
    text += (i == 0 ? "" : ", ") + kernels[i]->readable_name();
  }
  if (kernels.size() > kMostListed) {
    text += " and " + std::to_string(kernels.size() - kMostListed) + " more";
  }
  return text;
}

template <class Accept>
std::vector<const Kernel*> select(std::span<const Kernel> kernels, const Accept& accept) {
  std::vector<const Kernel*> found;
  for (const Kernel& k : kernels) {
    if (accept(k.name(), k.readable_name())) found.push_back(&k);
  }
  return found;
}

}  // namespace

std::string demangle(std::string_view name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(std::string(name).c_str(), nullptr, nullptr, &status), &std::free);
  if (status != 0 || !text || !name.starts_with("_Z")) return std::string(name);
  std::string readable = text.get();
  drop_abi_tags(readable);
  return readable;
}

std::string Kernel::readable_name() const {
  return demangle(name());
}

const Kernel& Module::find(std::string_view wanted) const {
  using View = std::string_view;
  const auto exactly = [&](View name, View readable) {
    return name == wanted || readable == wanted;
  };
  const auto called = [&](View, View readable) { return is_called(readable, wanted); };
  const auto holds = [&](View name, View readable) {
    return name.find(wanted) != View::npos || readable.find(wanted) != View::npos;
  };
  const auto all = select(kernels(), [](View, View) { return true; });
  std::vector<const Kernel*> found = select(kernels(), exactly);
  if (found.empty()) found = select(kernels(), called);
  if (found.empty()) found = select(kernels(), holds);
  if (found.size() == 1) return *found.front();
  if (all.empty()) throw Error(file_name() + ": the file has no entry");
  if (found.empty()) {
    throw Error(file_name() + ": there is no entry '" + std::string(wanted) +
                "'; there are: " + list(all));
  }
  const std::string which = wanted.empty() ? "" : "that '" + std::string(wanted) + "' may mean";
  throw Error(file_name() + ": " + std::to_string(found.size()) + " entries" +
              (which.empty() ? "" : " " + which) + ": " + list(found) + "; name one");
}

}  // namespace ptxvm
