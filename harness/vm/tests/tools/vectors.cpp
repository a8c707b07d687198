// SPDX-License-Identifier: MIT
// vectors --device vm|gpu [--record DIR] [--dump DIR] [--groups NAME,...] [--self-check]
// vectors --blackwell --device gpu [--record DIR] [--dump DIR] [--groups NAME,...]
//
// Runs one kernel for each batch of spellings, and for each case of wgmma, and writes inputs and
// results; with --blackwell for what needs sm_100a, and for each case of tcgen05.mma. Only hardware
// is recorded: vectors made by the machine that they judge would prove nothing. --self-check takes
// the virtual machine through everything but the recording.
#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>

#include "tools/recorder.h"
#include "tools/tcgen05_case.h"
#include "tools/vector_kernel.h"
#include "tools/wgmma_recorder.h"

using namespace ptxvm_vectors;

namespace {

std::string today() {
  const std::time_t now = std::time(nullptr);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", std::gmtime(&now));
  return text;
}

std::map<std::string, std::string> notes(const std::string& group) {
  std::map<std::string, std::string> out = {
      {"layout", "a lane takes a row; rows of whole-warp instructions come in groups of 32"}};
  if (group == "integer")
    out["carry"] =
        "the last column sets the carry flag before; the last result is the flag after "
        "(subc of 0 and 0 for borrows: 0 or ffffffff)";
  if (group == "mbarrier")
    out["mbarrier"] =
        "arrivals of a phase, arrivals at once, bytes; what states and waits say, in order "
        "(vector_kernel.cpp)";
  if (group.ends_with("warp"))
    out["members"] = "lanes outside the member mask do not take part: 5a5a";
  if (group == "matrix")
    out["matrix"] =
        "four words of the lane's 16 bytes in shared memory, offset of the row it names";
  return out;
}

struct Request {
  std::string device = "vm", folder, dump_to, groups;
  bool self_check = false, blackwell = false;

  bool wants(const std::string& group) const {
    return groups.empty() || ("," + groups + ",").find("," + group + ",") != std::string::npos;
  }

  // Says which one is not, and what there is.
  bool groups_are_of(const std::set<std::string>& known) const {
    std::istringstream words(groups);
    for (std::string word; std::getline(words, word, ',');) {
      if (known.count(word) != 0) continue;
      std::string allowed;
      for (const std::string& name : known) allowed += (allowed.empty() ? "" : ", ") + name;
      std::fprintf(stderr, "vectors: --groups '%s' is unknown; allowed: %s\n", word.c_str(),
                   allowed.c_str());
      return false;
    }
    return true;
  }
};

std::map<std::string, std::string> origin(const Source& source, const std::string& generator) {
  return {{"gpu", source.gpu}, {"driver", source.driver}, {"assembler", source.assembler},
          {"date", today()},   {"generator", generator},  {"seed", std::to_string(kSeed)}};
}

// What is wrong with a product that is known exactly; hardware and the machine alike.
int check_products(const WgmmaRecording& r, const std::vector<WgmmaCase>& cases,
                   const std::map<std::string, Matrix>& matrices) {
  std::map<std::string, const WgmmaRecord*> records;
  for (const WgmmaRecord& record : r.file.records) records[record.key()] = &record;
  int wrong = 0;
  for (const WgmmaCase& c : cases) {
    const auto found = records.find(c.spelling->text + ": " + c.name);
    if (c.data != Data::kSmall || found == records.end()) continue;
    size_t equal = 0;
    const std::string text =
        wgmma_difference(c, matrices, found->second->columns, exact_product(c, matrices), equal);
    if (text.empty()) continue;
    ++wrong;
    std::fprintf(stderr, "%s is not the product: %s\n", found->first.c_str(), text.c_str());
  }
  return wrong;
}

// A file of products: its name, what is in it, and what a device made of it.
struct ProductGroup {
  std::string name;
  std::vector<WgmmaCase> cases;
  std::map<std::string, Matrix> matrices;
  WgmmaRecording recording;
};

std::vector<ProductGroup> product_groups(bool blackwell) {
  if (blackwell) return {{"tcgen05", tcgen05_cases(), make_tcgen05_matrices(), {}}};
  return {{"wgmma", wgmma_cases(), make_matrices(), {}},
          {"wgmma_narrow", wgmma_narrow_cases(), make_narrow_matrices(), {}}};
}

void dump(const std::vector<Family>& families, const std::map<std::string, InputSet>& sets,
          const std::vector<ProductGroup>& groups, const std::filesystem::path& folder) {
  std::map<std::string, std::vector<const Family*>> by_set;
  for (const Family& f : families) by_set[f.set].push_back(&f);
  int number = 0;
  for (const auto& [set, list] : by_set) {
    std::ofstream(folder / (std::to_string(number++) + ".ptx"))
        << make_module({&sets.at(set), list}, "vectors");
  }
  for (const ProductGroup& group : groups) {
    for (const WgmmaCase& c : group.cases)
      std::ofstream(folder / (std::to_string(number++) + ".ptx")) << product_module(c, "vectors");
  }
}

// Files that were written must be read back as they were.
void check_files(const std::vector<VectorFile>& files, const std::vector<ProductGroup>& groups) {
  const auto folder = std::filesystem::temp_directory_path() /
                      ("ptxvm-self-check-" + std::to_string(std::random_device{}()));
  std::filesystem::create_directory(folder);
  std::uintmax_t bytes = 0;
  bool same = true;
  for (const VectorFile& file : files) {
    const auto path = folder / file.group;
    write(file, path);
    bytes += std::filesystem::file_size(path);
    const VectorFile back = read(path);
    same &= back.records.size() == file.records.size();
    for (size_t i = 0; same && i < file.records.size(); ++i)
      same = back.records[i].out == file.records[i].out && back.records[i].op == file.records[i].op;
  }
  std::uintmax_t wgmma_bytes = 0;
  for (const ProductGroup& group : groups) {
    const WgmmaFile& wgmma = group.recording.file;
    const auto path = folder / group.name;
    write_wgmma(wgmma, path);
    wgmma_bytes += std::filesystem::file_size(path);
    const WgmmaFile back = read_wgmma(path);
    same &= back.records.size() == wgmma.records.size();
    for (size_t i = 0; same && i < wgmma.records.size(); ++i)
      same = back.records[i].columns == wgmma.records[i].columns &&
             back.records[i].key() == wgmma.records[i].key();
  }
  std::filesystem::remove_all(folder);
  if (!same) throw std::runtime_error("a file is not read back as it was written");
  std::printf("self-check: files of %ju and (wgmma) %ju bytes are read back as written\n", bytes,
              wgmma_bytes);
}

int run(const Request& request) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<Family> all = request.blackwell ? blackwell_families() : families();
  std::vector<ProductGroup> groups = product_groups(request.blackwell);
  std::set<std::string> known;
  for (const Family& f : all) known.insert(group(f));
  for (const ProductGroup& g : groups) known.insert(g.name);
  if (!request.groups_are_of(known)) return 2;
  std::erase_if(all, [&](const Family& f) { return !request.wants(group(f)); });
  std::erase_if(groups, [&](const ProductGroup& g) { return !request.wants(g.name); });
  const auto sets = generate_sets(all);
  if (!request.dump_to.empty()) dump(all, sets, groups, request.dump_to);
  const auto device = request.device == "gpu" ? make_gpu_device() : make_vm_device();
  std::string refusal;
  if (request.blackwell) refusal = blackwell_refusal(*device);
  if (refusal.empty() && !request.folder.empty() && !device->is_hardware())
    refusal = "only a GPU is recorded";
  if (!refusal.empty()) {
    std::fprintf(stderr, "vectors: %s\n", refusal.c_str());
    return 2;
  }
  const int threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  Recording r = record(*device, all, sets, threads);
  size_t refused = r.errors.size(), cases = 0, recorded = 0;
  int wrong = 0;
  for (const std::string& e : r.errors) std::fprintf(stderr, "%s\n", e.c_str());
  for (ProductGroup& g : groups) {
    g.recording = record_wgmma(*device, g.cases, g.matrices, threads);
    for (const std::string& e : g.recording.errors) std::fprintf(stderr, "%s\n", e.c_str());
    wrong += check_products(g.recording, g.cases, g.matrices);
    refused += g.recording.errors.size();
    cases += g.cases.size();
    recorded += g.recording.file.records.size();
  }

  const Source source = device->source();
  const std::filesystem::path folder = request.folder;
  size_t count = 0;
  for (VectorFile& file : r.files) {
    count += file.records.size();
    file.source = origin(source, r.generator);
    file.notes = notes(file.group);
    if (!request.folder.empty()) write(file, folder / (file.group + ".jsonl"));
  }
  for (ProductGroup& g : groups) {
    WgmmaFile& file = g.recording.file;
    file.source = origin(source, g.recording.generator);
    if (!request.folder.empty() && !file.records.empty())
      write_wgmma(file, folder / (g.name + ".jsonl"));
  }
  if (request.self_check) check_files(r.files, groups);

  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  std::printf(
      "%zu of %zu families and %zu of %zu matrix products on %s, %zu refused, %d wrong, "
      "%.1f s; %s\n",
      count, all.size(), recorded, cases, source.gpu.c_str(), refused, wrong, took.count(),
      request.folder.empty() ? "nothing is recorded" : "recorded");
  return refused + static_cast<size_t>(wrong) == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Request request;
  bool good = true;
  for (int i = 1; good && i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--self-check" || option == "--blackwell") {
      (option == "--blackwell" ? request.blackwell : request.self_check) = true;
      continue;
    }
    std::string* value = option == "--device"   ? &request.device
                         : option == "--record" ? &request.folder
                         : option == "--dump"   ? &request.dump_to
                         : option == "--groups" ? &request.groups
                                                : nullptr;
    good = value && i + 1 < argc;
    if (good) *value = argv[++i];
  }
  if (!good || (request.device != "vm" && request.device != "gpu") ||
      (request.self_check && (request.device != "vm" || !request.folder.empty()))) {
    std::fputs(
        "usage: vectors --device vm|gpu [--record DIR] [--dump DIR] [--groups NAME,...]\n"
        "       vectors --blackwell --device gpu [--record DIR] [--dump DIR] [--groups NAME,...]\n"
        "       vectors --device vm --self-check [--groups NAME,...]\n",
        stderr);
    return 2;
  }
  try {
    return run(request);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "vectors: %s\n", error.what());
    return 3;
  }
}
