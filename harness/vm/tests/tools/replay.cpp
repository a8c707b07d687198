// SPDX-License-Identifier: MIT
#include "tools/replay.h"

#include <algorithm>

#include "tools/compare.h"
#include "tools/json_lines.h"

namespace ptxvm_vectors {
namespace {

constexpr int kThreads = 2;

void compare(const Record& hardware, const Record& machine, const InputSet& inputs, Replay& out) {
  const std::string name = hardware.op + " " + hardware.form + " on " + hardware.set;
  const Family& family = known_families().at(key(hardware.op, hardware.form, hardware.set));
  ++out.compared;
  if (machine.out.size() != hardware.out.size())
    out.differences.push_back(name + ": another number of result words");
  for (size_t word = 0; word < std::min(machine.out.size(), hardware.out.size()); ++word) {
    if (hardware.out[word].size() != inputs.rows.size()) {
      out.differences.push_back(name + ": another number of rows");
      return;
    }
    for (size_t row = 0; row < inputs.rows.size(); ++row) {
      const std::string wrong =
          difference(family, inputs, row, word, hardware.out[word][row], machine.out[word][row]);
      if (wrong.empty()) continue;
      out.differences.push_back(name + ", row " + std::to_string(row) + ", inputs " +
                                join(inputs.rows[row].values) + " (" + inputs.rows[row].why +
                                "), result word " + std::to_string(word) + ": " + wrong);
    }
  }
}

}  // namespace

std::string key(const std::string& op, const std::string& form, const std::string& set) {
  return op + " " + form + " " + set;
}

const std::map<std::string, Family>& known_families() {
  static const std::map<std::string, Family> all = [] {
    std::map<std::string, Family> m;
    for (const auto& list : {families(), blackwell_families()}) {
      for (const Family& f : list) m.emplace(key(f.op(), f.form, f.set), f);
    }
    return m;
  }();
  return all;
}

std::vector<VectorFile> read_vectors(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& e : std::filesystem::directory_iterator(folder)) {
    const std::string stem = e.path().stem().string();
    const bool products = stem.starts_with("wgmma") || stem.starts_with("tcgen05");
    if (e.path().extension() == ".jsonl" && !products) paths.push_back(e.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<VectorFile> files;
  for (const auto& path : paths) files.push_back(read(path));
  return files;
}

Replay replay(Device& device, const std::vector<VectorFile>& files) {
  Replay out;
  std::vector<Family> list;
  std::map<std::string, InputSet> sets;
  std::map<std::string, const Record*> records;
  for (const VectorFile& file : files) {
    for (const auto& [name, set] : file.sets) sets[name] = set;
    for (const Record& r : file.records) {
      const std::string k = key(r.op, r.form, r.set);
      const auto found = known_families().find(k);
      if (found == known_families().end()) {
        out.differences.push_back(k + ": the table asks for no such family");
        continue;
      }
      list.push_back(found->second);
      records[k] = &r;
    }
  }
  const Recording machine = record(device, list, sets, kThreads);
  out.differences.insert(out.differences.end(), machine.errors.begin(), machine.errors.end());
  for (const VectorFile& file : machine.files) {
    for (const Record& r : file.records)
      compare(*records.at(key(r.op, r.form, r.set)), r, sets.at(r.set), out);
  }
  return out;
}

Replay replay_products(Device& device, const WgmmaFile& file, const std::vector<WgmmaCase>& cases) {
  Replay out;
  const WgmmaRecording machine = record_wgmma(device, cases, file.matrices, kThreads);
  out.differences = machine.errors;
  std::map<std::string, const WgmmaRecord*> recorded, computed;
  for (const WgmmaRecord& r : file.records) recorded[r.key()] = &r;
  for (const WgmmaRecord& r : machine.file.records) computed[r.key()] = &r;
  if (file.records.size() != cases.size()) out.differences.push_back("another number of cases");
  for (const WgmmaCase& c : cases) {
    const std::string k = c.spelling->text + ": " + c.name;
    if (!recorded.contains(k)) out.differences.push_back(k + ": has no record");
    if (!recorded.contains(k) || !computed.contains(k)) continue;
    size_t equal = 0;
    const std::string wrong =
        wgmma_difference(c, file.matrices, recorded.at(k)->columns, computed.at(k)->columns, equal);
    ++out.compared;
    if (!wrong.empty()) out.differences.push_back(k + " (" + c.why + "): " + wrong);
  }
  return out;
}

}  // namespace ptxvm_vectors
