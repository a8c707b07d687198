// SPDX-License-Identifier: MIT
// wgmma as recorded on hardware, run on the machine through an ordinary launch.
#include <map>
#include <set>

#include "catch.h"
#include "tools/wgmma_recorder.h"

using namespace ptxvm_vectors;
namespace isa = ptxvm::isa;

namespace {

// Throws where nothing has been recorded yet: `vectors --device gpu --record ...` makes the file.
const WgmmaFile& committed() {
  static const WgmmaFile file = read_wgmma(std::string(PTXVM_VECTORS) + "/wgmma.jsonl");
  return file;
}

const std::map<std::string, WgmmaRecord>& recorded() {
  static const std::map<std::string, WgmmaRecord> all = [] {
    std::map<std::string, WgmmaRecord> m;
    for (const WgmmaRecord& r : committed().records) m.emplace(r.key(), r);
    return m;
  }();
  return all;
}

std::string key(const WgmmaCase& c) {
  return c.spelling->text + ": " + c.name;
}

}  // namespace

TEST_CASE("the wgmma vectors come from hardware") {
  CHECK(committed().source.at("gpu").find("NVIDIA") == 0);
  for (const char* field : {"driver", "assembler", "date", "generator", "seed"})
    CHECK(!committed().source.at(field).empty());
}

TEST_CASE("the machine's wgmma with tf32 and 8 bits computes what the hardware's does") {
  const std::string path = std::string(PTXVM_VECTORS) + "/wgmma_narrow.jsonl";
  const WgmmaFile file = read_wgmma(path);
  CHECK(file.source.at("gpu").find("NVIDIA") == 0);
  const std::vector<WgmmaCase> cases = wgmma_narrow_cases();
  const auto made = make_narrow_matrices();
  REQUIRE(file.matrices.size() == made.size());
  for (const auto& [name, matrix] : made) CHECK(file.matrices.at(name).bits == matrix.bits);
  const WgmmaRecording machine = record_wgmma(*make_vm_device(), cases, made, 2);
  for (const std::string& error : machine.errors) FAIL_CHECK(error);
  REQUIRE(machine.file.records.size() == cases.size());
  REQUIRE(file.records.size() == cases.size());
  std::set<const isa::Spelling*> covered;
  std::set<std::string> names;
  for (size_t i = 0; i < cases.size(); ++i) {
    INFO(key(cases[i]) << " (" << cases[i].why << ")");
    REQUIRE(cases[i].spelling);
    covered.insert(cases[i].spelling);
    CHECK(names.insert(key(cases[i])).second);
    REQUIRE(file.records[i].key() == key(cases[i]));
    size_t equal = 0;
    CHECK(wgmma_difference(cases[i], made, file.records[i].columns, machine.file.records[i].columns,
                           equal) == "");
    if (cases[i].data != Data::kSmall) continue;
    CHECK(file.records[i].columns == exact_product(cases[i], made));
  }
  for (const isa::Spelling& s : isa::spellings()) {
    const bool multiplies = s.runs() && !s.traits().vectors_pending && s.row->binder == "wgmma_any";
    INFO(s.text);
    CHECK(multiplies == (covered.count(&s) == 1));
  }
}

TEST_CASE("the machine's wgmma computes what the hardware's does") {
  const std::vector<WgmmaCase> cases = wgmma_cases();
  const auto device = make_vm_device();
  const WgmmaRecording machine = record_wgmma(*device, cases, committed().matrices, 2);
  for (const std::string& error : machine.errors) FAIL_CHECK(error);
  REQUIRE(machine.file.records.size() == cases.size());
  REQUIRE(recorded().size() == cases.size());
  for (size_t i = 0; i < cases.size(); ++i) {
    INFO(key(cases[i]) << " (" << cases[i].why << ")");
    REQUIRE(recorded().count(key(cases[i])) == 1);
    size_t equal = 0;
    CHECK(wgmma_difference(cases[i], committed().matrices, recorded().at(key(cases[i])).columns,
                           machine.file.records[i].columns, equal) == "");
  }
}

TEST_CASE("on small integers the hardware's wgmma is the product, to the bit") {
  size_t exact = 0;
  for (const WgmmaCase& c : wgmma_cases()) {
    if (c.data != Data::kSmall) continue;
    INFO(key(c) << " (" << c.why << ")");
    REQUIRE(recorded().count(key(c)) == 1);
    CHECK(recorded().at(key(c)).columns == exact_product(c, committed().matrices));
    ++exact;
  }
  CHECK(exact > 400);
}

TEST_CASE("every spelling of wgmma.mma_async has a case, and every case a reason") {
  std::set<const isa::Spelling*> covered;
  std::set<std::string> names;
  for (const WgmmaCase& c : wgmma_cases()) {
    REQUIRE(c.spelling != nullptr);
    covered.insert(c.spelling);
    INFO(key(c));
    CHECK(!c.why.empty());
    CHECK(names.insert(key(c)).second);
  }
  for (const isa::Spelling& s : isa::spellings()) {
    const bool multiplies = s.runs() && !s.traits().vectors_pending && s.row->binder == "wgmma";
    INFO(s.text);
    CHECK(multiplies == (covered.count(&s) == 1));
  }
}

TEST_CASE("the committed matrices are those that the generator makes") {
  const auto made = make_matrices();
  REQUIRE(committed().matrices.size() == made.size());
  for (const auto& [name, matrix] : made) {
    INFO(name);
    REQUIRE(committed().matrices.count(name) == 1);
    CHECK(committed().matrices.at(name).bits == matrix.bits);
  }
}

TEST_CASE("a product that differs is found") {
  const auto matrices = make_matrices();
  for (const WgmmaCase& c : wgmma_cases()) {
    if (c.n != 8 || c.a_registers || c.data == Data::kSpecial) continue;
    const auto exact = exact_product(c, matrices);
    auto other = exact;
    size_t equal = 0;
    INFO(key(c));
    CHECK(wgmma_difference(c, matrices, exact, other, equal) == "");
    CHECK(equal == static_cast<size_t>(c.n) * kRows);
    other[3][17] ^= c.half_sums ? 0x0100 : 0x00200000;
    CHECK(wgmma_difference(c, matrices, exact, other, equal) != "");
  }
}
