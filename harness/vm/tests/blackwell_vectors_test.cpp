// SPDX-License-Identifier: MIT
// The recorder for Blackwell, without one: its texts run on the machine, which may not be recorded,
// and files that it would write are replayed.
#include <filesystem>
#include <random>
#include <set>

#include "blackwell_texts.h"
#include "catch.h"
#include "tools/replay.h"

using namespace ptxvm_vectors;
namespace isa = ptxvm::isa;

namespace {

// What a recording writes, with the machine in place of hardware, under the checkers of races.
const Recording& plain() {
  static const Recording made = [] {
    const std::vector<Family> families = blackwell_families();
    return record(*make_vm_device(true), families, generate_sets(families), 2);
  }();
  return made;
}

const WgmmaRecording& products() {
  static const WgmmaRecording made =
      record_wgmma(*make_vm_device(true), tcgen05_cases(), make_tcgen05_matrices(), 2);
  return made;
}

// A folder of the test's own.
class Folder {
 public:
  Folder() { std::filesystem::create_directory(path); }
  ~Folder() { std::filesystem::remove_all(path); }
  const std::filesystem::path path = std::filesystem::temp_directory_path() /
                                     ("ptxvm-blackwell-" + std::to_string(std::random_device{}()));
};

}  // namespace

TEST_CASE("every spelling that computes a value on Blackwell alone has a family") {
  std::set<const isa::Spelling*> covered;
  for (const Family& f : blackwell_families()) {
    INFO(f.op());
    CHECK(group(f).starts_with("blackwell_"));
    covered.insert(f.spelling);
  }
  for (const Family& f : families()) CHECK(!needs_blackwell(f));
  for (const isa::Spelling& s : isa::spellings()) {
    if (has_value(*s.row) && s.row->sm >= kBlackwell) CHECK(covered.count(&s) == 1);
  }
  for (const char* text : {"fma.rn.f32x2", "add.rz.sat.f32.bf16", "redux.sync.max.abs.NaN.f32",
                           "min.f32", "max.ftz.NaN.f32", "max.abs.f32"}) {
    INFO(text);
    CHECK(covered.count(isa::find(text)) == 1);
  }
}

TEST_CASE("the plain texts for Blackwell run on the machine without a finding") {
  for (const std::string& error : plain().errors) FAIL_CHECK(error);
  size_t records = 0;
  for (const VectorFile& file : plain().files) records += file.records.size();
  CHECK(records == blackwell_families().size());
}

TEST_CASE("tcgen05.mma runs on the machine without a finding, exact on small integers") {
  const std::vector<WgmmaCase> cases = tcgen05_cases();
  const auto matrices = make_tcgen05_matrices();
  for (const std::string& error : products().errors) FAIL_CHECK(error);
  REQUIRE(products().file.records.size() == cases.size());
  std::set<std::string> names;
  size_t exact = 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    INFO(cases[i].name << " (" << cases[i].why << ")");
    CHECK(names.insert(cases[i].spelling->text + cases[i].name).second);
    if (cases[i].data != Data::kSmall) continue;
    CHECK(products().file.records[i].columns == exact_product(cases[i], matrices));
    ++exact;
  }
  CHECK(exact > 100);
}

TEST_CASE("files of plain vectors for Blackwell are replayed, and an error in one is found") {
  const Folder folder;
  size_t records = 0;
  for (const VectorFile& file : plain().files) {
    write(file, folder.path / (file.group + ".jsonl"));
    records += file.records.size();
  }
  std::vector<VectorFile> files = read_vectors(folder.path);
  const auto device = make_vm_device();
  const Replay same = replay(*device, files);
  for (const std::string& difference : same.differences) FAIL_CHECK(difference);
  CHECK(same.compared == records);

  // One bit of each record, in the upper half where there is one.
  size_t wrong = 0;
  for (VectorFile& file : files) {
    for (Record& r : file.records) {
      r.out[0][7] ^= r.op.ends_with("f32x2") ? uint64_t{1} << 40 : uint64_t{1} << 31;
      ++wrong;
    }
  }
  CHECK(replay(*device, files).differences.size() == wrong);
}

TEST_CASE("a file of tcgen05.mma is replayed, and an error in it is found") {
  // Some of the cases, of each kind.
  std::vector<WgmmaCase> cases;
  WgmmaFile some{{}, make_tcgen05_matrices(), {}};
  const std::vector<WgmmaCase> all = tcgen05_cases();
  REQUIRE(products().file.records.size() == all.size());
  for (size_t i = 0; i < all.size(); i += 9) {
    cases.push_back(all[i]);
    some.records.push_back(products().file.records[i]);
  }
  const Folder folder;
  write_wgmma(some, folder.path / "tcgen05.jsonl");
  CHECK(read_vectors(folder.path).empty());
  WgmmaFile file = read_wgmma(folder.path / "tcgen05.jsonl");
  const auto device = make_vm_device();
  const Replay same = replay_products(*device, file, cases);
  for (const std::string& difference : same.differences) FAIL_CHECK(difference);
  CHECK(same.compared == cases.size());

  WgmmaRecord& changed = file.records[5];
  changed.columns[3][17] ^= 0x4000;
  file.records.pop_back();
  const Replay other = replay_products(*device, file, cases);
  CHECK(other.compared == cases.size() - 1);
  CHECK(other.differences.size() ==
        3);  // of that number, of the case that is missing, and of the sum
}

TEST_CASE("only compute capability 10.0 is recorded, and never the machine") {
  const auto says = [](const Device& device, const std::string& text) {
    return blackwell_refusal(device).find(text) != std::string::npos;
  };
  CHECK(blackwell_refusal(FakeGpu("NVIDIA B200", 100)).empty());
  CHECK(says(FakeGpu("NVIDIA H200", 90), "'NVIDIA H200' is a GPU of compute capability 9.0"));
  CHECK(says(FakeGpu("NVIDIA B300", 103), "'NVIDIA B300' is a GPU of compute capability 10.3"));
  CHECK(says(FakeGpu("NVIDIA RTX 5090", 120), "is a GPU of compute capability 12.0"));
  CHECK(says(FakeGpu("NVIDIA H200", 90), "only a GPU of compute capability 10.0 (sm_100a"));
  CHECK(says(*make_vm_device(), "is no GPU: a vector must come from hardware"));
}
