// SPDX-License-Identifier: MIT
// Golden vectors recorded on hardware, run on the machine through an ordinary launch.
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "catch.h"
#include "tools/compare.h"
#include "tools/recorder.h"

using namespace ptxvm_vectors;
namespace isa = ptxvm::isa;

namespace {

std::vector<VectorFile> committed() {
  std::vector<std::filesystem::path> paths;
  for (const auto& e : std::filesystem::directory_iterator(PTXVM_VECTORS)) {
    // wgmma has a format of its own: wgmma_vectors_test.
    if (e.path().extension() == ".jsonl" && !e.path().stem().string().starts_with("wgmma"))
      paths.push_back(e.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<VectorFile> files;
  for (const auto& path : paths) files.push_back(read(path));
  return files;
}

const std::vector<VectorFile>& files() {
  static const std::vector<VectorFile> all = committed();
  return all;
}

std::string key(const std::string& op, const std::string& form, const std::string& set) {
  return op + " " + form + " " + set;
}

// The families that the table asks for, by key.
const std::map<std::string, Family>& known() {
  static const std::map<std::string, Family> all = [] {
    std::map<std::string, Family> m;
    for (Family& f : families()) m.emplace(key(f.op(), f.form, f.set), f);
    return m;
  }();
  return all;
}

void compare(const Record& hardware, const Record& machine, const Family& family,
             const InputSet& inputs) {
  INFO(hardware.op << " " << hardware.form << " on " << hardware.set);
  REQUIRE(machine.out.size() == hardware.out.size());
  for (size_t word = 0; word < hardware.out.size(); ++word) {
    REQUIRE(hardware.out[word].size() == inputs.rows.size());
    for (size_t row = 0; row < inputs.rows.size(); ++row) {
      const std::string wrong =
          difference(family, inputs, row, word, hardware.out[word][row], machine.out[word][row]);
      if (wrong.empty()) continue;
      std::string in;
      for (uint64_t v : inputs.rows[row].values) {
        char text[20];
        std::snprintf(text, sizeof text, "%llx ", static_cast<unsigned long long>(v));
        in += text;
      }
      UNSCOPED_INFO("row " << row << ", inputs " << in << "(" << inputs.rows[row].why
                           << "), result word " << word << ": " << wrong);
      CHECK(wrong.empty());
    }
  }
}

}  // namespace

TEST_CASE("the vectors come from hardware") {
  REQUIRE(files().size() >= 8);
  for (const VectorFile& f : files()) {
    INFO(f.group);
    CHECK(f.source.at("gpu").find("NVIDIA") == 0);
    for (const char* field : {"driver", "assembler", "date", "generator", "seed"})
      CHECK(!f.source.at(field).empty());
  }
}

TEST_CASE("the machine computes what the hardware does") {
  std::vector<Family> list;
  std::map<std::string, InputSet> sets;
  std::map<std::string, const Record*> records;
  for (const VectorFile& file : files()) {
    for (const auto& [name, set] : file.sets) sets[name] = set;
    for (const Record& r : file.records) {
      const std::string k = key(r.op, r.form, r.set);
      INFO(k);
      REQUIRE(known().count(k) == 1);
      list.push_back(known().at(k));
      records[k] = &r;
    }
  }
  const auto device = make_vm_device();
  const Recording result = record(*device, list, sets, 2);
  for (const std::string& error : result.errors) FAIL_CHECK(error);
  size_t compared = 0;
  for (const VectorFile& file : result.files) {
    for (const Record& r : file.records) {
      const std::string k = key(r.op, r.form, r.set);
      compare(*records.at(k), r, known().at(k), sets.at(r.set));
      ++compared;
    }
  }
  CHECK(compared == list.size());
}

TEST_CASE("every spelling that computes a value has vectors") {
  std::set<std::string> recorded;
  for (const VectorFile& file : files()) {
    for (const Record& r : file.records) recorded.insert(key(r.op, r.form, r.set));
  }
  for (const auto& [k, family] : known()) {
    INFO(k << " has no vectors: record them with the program `vectors` on a GPU");
    CHECK(recorded.count(k) == 1);
  }
  // What else runs either has no value, or a reason.
  for (const isa::Row& row : isa::rows()) {
    if (!has_value(row) || row.count == ptxvm::CountClass::kWgmma) continue;
    const bool has = std::any_of(known().begin(), known().end(), [&](const auto& entry) {
      return entry.second.spelling->row == &row;
    });
    INFO(row.pattern);
    CHECK(has == not_recorded(row).empty());
  }
}

TEST_CASE("the known errors of other simulators are cases by name") {
  for (const char* name : {"negated predicate in selp", "bfe with position 32 and more",
                           "directed rounding", "cvt.rz", "64-bit carry"}) {
    size_t found = 0;
    for (const VectorFile& file : files()) {
      for (const auto& [set_name, set] : file.sets) {
        for (const Row& row : set.rows)
          found += row.why.find(std::string("known error: ") + name) == 0;
      }
    }
    INFO(name);
    CHECK(found >= 2);
  }
}

TEST_CASE("the committed inputs are those that the generator makes") {
  for (const VectorFile& file : files()) {
    for (const auto& [name, set] : file.sets) {
      INFO(name);
      const InputSet made = make_inputs(name);
      REQUIRE(made.rows.size() == set.rows.size());
      for (size_t i = 0; i < made.rows.size(); ++i) {
        REQUIRE(made.rows[i].values == set.rows[i].values);
        REQUIRE(made.rows[i].why == set.rows[i].why);
      }
    }
  }
}

TEST_CASE("every approximation has a stated bound that asks for more than nothing") {
  for (const auto& [k, family] : known()) {
    const isa::Row& row = *family.spelling->row;
    if (row.check.kind != isa::CheckKind::kTensor || row.count == ptxvm::CountClass::kTensor)
      continue;
    const InputSet inputs{"", {{{0x3f800000}, ""}}};
    const Bound b = bound_of(family, inputs, 0);
    INFO(k);
    CHECK(b.ulps + b.absolute + b.relative > 0);
    CHECK((b.ulps <= 2 && b.absolute < 0x1p-19 && b.relative <= 0x1p-11));
  }
}
