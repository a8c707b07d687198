// SPDX-License-Identifier: MIT
// Golden vectors recorded on hardware, run on the machine through an ordinary launch.
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "catch.h"
#include "tools/compare.h"
#include "tools/replay.h"
#include "tools/tcgen05_case.h"

using namespace ptxvm_vectors;
namespace isa = ptxvm::isa;

namespace {

const std::vector<VectorFile>& files() {
  static const std::vector<VectorFile> all = read_vectors(PTXVM_VECTORS);
  return all;
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
  size_t records = 0;
  for (const VectorFile& file : files()) records += file.records.size();
  const Replay result = replay(*make_vm_device(), files());
  for (const std::string& difference : result.differences) FAIL_CHECK(difference);
  CHECK(result.compared == records);
}

TEST_CASE("the machine's tcgen05.mma computes what the hardware's does, once that is recorded") {
  const std::filesystem::path path = std::string(PTXVM_VECTORS) + "/tcgen05.jsonl";
  if (!std::filesystem::exists(path)) return;
  const WgmmaFile file = read_wgmma(path);
  CHECK(file.source.at("gpu").find("NVIDIA") == 0);
  const Replay result = replay_products(*make_vm_device(), file, tcgen05_cases());
  for (const std::string& difference : result.differences) FAIL_CHECK(difference);
}

TEST_CASE("every spelling that computes a value has vectors") {
  std::set<std::string> recorded, groups;
  for (const VectorFile& file : files()) {
    groups.insert(file.group);
    for (const Record& r : file.records) recorded.insert(key(r.op, r.form, r.set));
  }
  for (const auto& [k, family] : known_families()) {
    INFO(k
         << ": record it with the program `vectors` on a GPU, and say .vectors_pending until then");
    // Files of Blackwell are recorded as a whole; until then nothing is asked of the forms of rows
    // that others have recorded.
    const bool pending = !not_recorded(*family.spelling->row).empty() ||
                         (needs_blackwell(family) && groups.count(group(family)) == 0);
    CHECK(recorded.count(k) == (pending ? 0 : 1));
  }
  // What else runs either has no value, or a reason.
  for (const isa::Row& row : isa::rows()) {
    if (!has_value(row) || row.count == ptxvm::CountClass::kWgmma) continue;
    const bool has =
        std::any_of(known_families().begin(), known_families().end(),
                    [&](const auto& entry) { return entry.second.spelling->row == &row; });
    INFO(row.pattern);
    CHECK(has == (not_recorded(row).empty() || row.sm >= kBlackwell));
  }
}

TEST_CASE("results that are exact must be the same bits") {
  const auto differ = [](const char* op, const char* set, uint64_t x, uint64_t y) {
    const Family& family = known_families().at(key(op, "", set));
    return !difference(family, make_inputs(set), 0, 0, x, y).empty();
  };
  CHECK(differ("add.rn.f32", "f32 f32", 0x80000000, 0));
  CHECK(differ("add.s64", "i64 i64", 0x100000005, 5));
  CHECK(differ("add.rn.f32x2", "f32x2 f32x2", 0x8000000000000000, 0));
  CHECK(!differ("add.s64", "i64 i64", 5, 5));
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
  for (const auto& [k, family] : known_families()) {
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
