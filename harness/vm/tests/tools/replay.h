// SPDX-License-Identifier: MIT
// Runs what files of vectors hold on a device, and compares.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tools/recorder.h"
#include "tools/wgmma_recorder.h"

namespace ptxvm_vectors {

struct Replay {
  size_t compared = 0;                   ///< Records.
  std::vector<std::string> differences;  ///< In words, with their inputs.
};

/// Names a family among all.
std::string key(const std::string& op, const std::string& form, const std::string& set);

/// The families that the table asks for, those of Blackwell among them, by key.
const std::map<std::string, Family>& known_families();

/// The files of a folder, but those of wgmma and tcgen05.mma, which have a format of their own.
std::vector<VectorFile> read_vectors(const std::filesystem::path& folder);
Replay replay(Device& device, const std::vector<VectorFile>& files);

/// A file of wgmma or tcgen05.mma, which must have all of these cases and no other.
Replay replay_products(Device& device, const WgmmaFile& file, const std::vector<WgmmaCase>& cases);

}  // namespace ptxvm_vectors
