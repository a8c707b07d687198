// SPDX-License-Identifier: MIT
// Loading a module: text to programs, programs to code.
#include "ptxvm/module.h"

#include <filesystem>
#include <fstream>

#include "exec/link.h"
#include "lower/lower.h"

namespace ptxvm {

Module Module::parse(std::string text, std::string file_name) {
  text::require_length(text.size(), file_name);
  // A C string's end is not part of it; NVRTC's length and files written by it count it.
  while (text.ends_with('\0')) text.pop_back();
  const std::shared_ptr<ModuleData> data = load_text(std::move(text), std::move(file_name));
  for (const auto& program : data->programs) link(*program);
  Module m;
  m.data_ = data;
  return m;
}

Module Module::load(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code problem;
  const fs::file_status status = fs::status(path, problem);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    throw Error(path + ": is not a regular file; a PTX text is");
  }
  std::ifstream in(path, std::ios::binary);
  const uintmax_t bytes = fs::file_size(path, problem);
  if (!in || problem) throw Error(path + ": cannot be read");
  text::require_length(bytes, path);
  std::string text(static_cast<size_t>(bytes), '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!in) throw Error(path + ": cannot be read");
  // What people give most often in place of PTX.
  const bool begins = text.empty() || text.find(".version") != std::string::npos;
  const size_t zero = text.find('\0');
  if (zero != std::string::npos && (!begins || text.find_first_not_of('\0', zero) != text.npos)) {
    throw Error(path +
                ": is a binary file; PTX is text, and cuobjdump -ptx shows that of a binary");
  }
  if (!begins) {
    throw Error(path + ": is no PTX, which begins with .version; of CUDA C++ nvcc -ptx makes it");
  }
  return parse(std::move(text), path);
}

}  // namespace ptxvm
