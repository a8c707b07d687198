// SPDX-License-Identifier: MIT
// The PTX that the build made of the rungs, by entry name.
#pragma once

#include <filesystem>
#include <map>
#include <mutex>
#include <string>

#include "ptxvm/module.h"

namespace fa {

/// A folder of .ptx files. Read when the first entry is asked for; modules are kept.
class PtxLibrary {
 public:
  /// `folder` empty: the environment's FA_PTX_DIR, else the folder that is installed with this
  /// program, else that of this build.
  explicit PtxLibrary(std::filesystem::path folder = {});

  /// The module with this entry. Throws DeviceError that names the folder, and entries that it has,
  /// when there is none, or when the file is not PTX that the machine knows. May be called from
  /// several threads.
  const ptxvm::Module& find(const std::string& entry);

 private:
  void read_folder();

  std::filesystem::path folder_;
  std::mutex mutex_;
  bool read_ = false;
  std::size_t files_ = 0;
  std::map<std::string, std::filesystem::path> files_by_entry_;
  std::map<std::filesystem::path, ptxvm::Module> modules_;
};

}  // namespace fa
