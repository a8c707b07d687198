// SPDX-License-Identifier: MIT
#include "harness/device/ptx_library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "harness/device/device.h"

namespace fa {
namespace {

namespace fs = std::filesystem;

constexpr const char* kAdvice =
    "build the target fa_ptx, or set FA_PTX_DIR to a folder with the rungs' PTX";

/// The program or shared library that this code is in.
fs::path own_file() {
  Dl_info info{};
  std::error_code error;
  if (dladdr(reinterpret_cast<const void*>(&own_file), &info) != 0 && info.dli_fname) {
    // Of a program it knows only the word that it was called by.
    const fs::path file(info.dli_fname);
    if (file.filename().string().find(".so") != std::string::npos) {
      return fs::canonical(file, error);
    }
  }
  return fs::read_symlink("/proc/self/exe", error);
}

fs::path default_folder() {
  const char* chosen = std::getenv("FA_PTX_DIR");
  if (chosen && *chosen) return chosen;
  const fs::path installed = own_file().parent_path() / FA_PTX_FROM_PROGRAMS;
  std::error_code error;
  return fs::is_directory(installed, error) ? installed.lexically_normal() : fs::path(FA_PTX_DIR);
}

bool is_name(char c) {
  return c == '_' || c == '$' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
         (c >= 'A' && c <= 'Z');
}

/// Names after ".entry" in a PTX text.
std::vector<std::string> entries_of(const fs::path& file) {
  std::error_code error;
  const std::uintmax_t bytes = fs::file_size(file, error);
  std::vector<std::string> names;
  if (error) return names;
  std::string text(bytes, '\0');
  std::ifstream(file).read(text.data(), static_cast<std::streamsize>(bytes));
  constexpr std::string_view kEntry = ".entry ";
  const char* at = text.data();
  const char* const end = at + text.size();
  // memmem() is many times as fast as find(), and the folder has 60 MB.
  while (const void* found =
             ::memmem(at, static_cast<std::size_t>(end - at), kEntry.data(), kEntry.size())) {
    const char* const begin = static_cast<const char*>(found) + kEntry.size();
    at = std::find_if_not(begin, end, is_name);
    names.emplace_back(begin, at);
  }
  return names;
}

/// Characters that two names share at their beginnings and at their ends.
std::size_t similarity(std::string_view a, std::string_view b) {
  if (a.size() > b.size()) std::swap(a, b);
  const auto front = std::mismatch(a.begin(), a.end(), b.begin()).first - a.begin();
  const auto back = std::mismatch(a.rbegin(), a.rend(), b.rbegin()).first - a.rbegin();
  return std::min(a.size(), static_cast<std::size_t>(front + back));
}

/// Why an entry is not among those that there are: its name is mangled, or mistyped.
std::string why_missing(const std::string& entry,
                        const std::map<std::string, fs::path>& files_by_entry) {
  std::vector<std::pair<std::size_t, std::string>> others;
  for (const auto& [name, file] : files_by_entry) {
    const std::string readable = ptxvm::demangle(name);
    if (readable != name && readable.substr(0, readable.find('(')) == entry) {
      return fmt::format("{} has {}, whose name in the PTX is {}: declare it extern \"C\"",
                         file.filename().string(), readable, name);
    }
    others.emplace_back(similarity(entry, readable), readable);
  }
  constexpr std::size_t kShown = 5;
  std::ranges::stable_sort(others, std::ranges::greater{},
                           [](const auto& each) { return each.first; });
  if (others.size() > kShown) others.resize(kShown);
  std::vector<std::string> names;
  for (const auto& [shared, name] : others) names.push_back(name);
  return fmt::format(
      "{} of its {} entries: {}; the name that a plan launches is that of an extern \"C\" kernel",
      names.size() < files_by_entry.size() ? "the most similar" : "all", files_by_entry.size(),
      fmt::join(names, ", "));
}

}  // namespace

PtxLibrary::PtxLibrary(fs::path folder)
    : folder_(folder.empty() ? default_folder() : std::move(folder)) {}

void PtxLibrary::read_folder() {
  std::error_code error;
  fs::directory_iterator files(folder_, error);
  if (error) {
    throw DeviceError(fmt::format("the PTX folder {} cannot be read ({}); {}", folder_.string(),
                                  error.message(), kAdvice));
  }
  for (const fs::directory_entry& file : files) {
    if (file.path().extension() != ".ptx") continue;
    ++files_;
    for (std::string& name : entries_of(file.path())) {
      const auto [other, is_new] = files_by_entry_.emplace(std::move(name), file.path());
      if (!is_new) {
        throw DeviceError(fmt::format("the entry {} is in {} and in {}; remove one of them",
                                      other->first, other->second.string(), file.path().string()));
      }
    }
  }
  read_ = true;
}

const ptxvm::Module& PtxLibrary::find(const std::string& entry) {
  const std::lock_guard lock(mutex_);
  if (!read_) read_folder();
  const auto file = files_by_entry_.find(entry);
  if (file == files_by_entry_.end()) {
    throw DeviceError(fmt::format(
        "none of the {} .ptx files in {} has the entry {}; {}", files_, folder_.string(), entry,
        files_by_entry_.empty() ? kAdvice : why_missing(entry, files_by_entry_)));
  }
  const auto loaded = modules_.find(file->second);
  if (loaded != modules_.end()) return loaded->second;
  try {
    return modules_.emplace(file->second, ptxvm::Module::load(file->second.string())).first->second;
  } catch (const ptxvm::Error& error) {
    throw DeviceError(error.what());
  }
}

}  // namespace fa
