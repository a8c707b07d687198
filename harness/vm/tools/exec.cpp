// SPDX-License-Identifier: MIT
// ptxvm exec: a CUDA program with its own host code, whose kernels run on the machine.
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "tools/commands.h"
#include "tools/machine_options.h"

namespace ptxvm::tools {
namespace {

namespace fs = std::filesystem;

/// Where CUDA's runtime is: beside the tool where it was built, or installed with it.
fs::path runtime_folder() {
  const fs::path here = fs::read_symlink("/proc/self/exe").parent_path();
  for (const fs::path& each : {here / "cuda", here / ".." / PTXVM_LIBDIR / "ptxvm"}) {
    if (fs::exists(each / "libcudart.so.13")) return fs::canonical(each);
  }
  throw UsageError("this ptxvm was built without exec, where there were no headers of CUDA 13");
}

/// Puts a path in front of those of a variable of the environment.
void prepend(const char* variable, const std::string& path) {
  const char* const old = std::getenv(variable);
  setenv(variable, (old && *old ? path + ":" + old : path).c_str(), 1);
}

}  // namespace

int exec_program(const std::vector<std::string>& words) {
  MachineOptions wanted;
  std::string options;  // as the runtime reads them again
  size_t at = 0;
  for (; at < words.size() && words[at].starts_with("-"); ++at) {
    const size_t first = at;
    if (words[at] != "--counts" && !take_machine_option(words, at, "exec", wanted)) {
      throw UsageError("'" + words[at] + "' is not understood; see ptxvm exec --help");
    }
    for (size_t i = first; i <= at; ++i) options += words[i] + "\n";
  }
  if (at == words.size() || words[at].empty()) throw UsageError("exec needs a program");
  wanted.launch_options();                        // refuses unknown cards
  filter({}, Kernel(nullptr), {wanted.ignored});  // refuses the names of no checkers

  const fs::path folder = runtime_folder();
  prepend("LD_PRELOAD", folder / "libcudart.so.13");
  prepend("LD_LIBRARY_PATH", folder);
  setenv("PTXVM_EXEC", options.c_str(), 1);
  std::vector<char*> arguments;
  for (size_t i = at; i < words.size(); ++i) {
    arguments.push_back(const_cast<char*>(words[i].c_str()));
  }
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  throw FileError(words[at] + ": " + std::strerror(errno));
}

}  // namespace ptxvm::tools
