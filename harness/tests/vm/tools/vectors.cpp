// vectors --device vm|gpu [--record DIR] [--dump DIR]
//
// Runs one kernel for each batch of spellings and writes inputs and results. Only hardware is
// recorded: vectors made by the machine that they judge would prove nothing.
#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>

#include "tools/recorder.h"
#include "tools/vector_kernel.h"

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
  if (group == "warp") out["members"] = "lanes outside the member mask do not take part: 5a5a";
  if (group == "matrix")
    out["matrix"] =
        "four words of the lane's 16 bytes in shared memory, offset of the row it names";
  return out;
}

void dump(const std::vector<Family>& families, const std::map<std::string, InputSet>& sets,
          const std::filesystem::path& folder) {
  std::map<std::string, std::vector<const Family*>> by_set;
  for (const Family& f : families) by_set[f.set].push_back(&f);
  int number = 0;
  for (const auto& [set, list] : by_set) {
    std::ofstream(folder / (std::to_string(number++) + ".ptx"))
        << make_module({&sets.at(set), list}, "vectors");
  }
}

int run(const std::string& device_name, const std::string& folder, const std::string& dump_to) {
  const auto start = std::chrono::steady_clock::now();
  const std::vector<Family> all = families();
  const auto sets = generate_sets(all);
  if (!dump_to.empty()) dump(all, sets, dump_to);
  const auto device = device_name == "gpu" ? make_gpu_device() : make_vm_device();
  if (!folder.empty() && !device->is_hardware()) {
    std::fputs("vectors: only a GPU is recorded\n", stderr);
    return 2;
  }
  const int threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const Recording r = record(*device, all, sets, threads);
  for (const std::string& e : r.errors) std::fprintf(stderr, "%s\n", e.c_str());
  const Source source = device->source();
  size_t count = 0;
  for (VectorFile file : r.files) {
    count += file.records.size();
    if (folder.empty()) continue;
    file.source = {
        {"gpu", source.gpu}, {"driver", source.driver},  {"assembler", source.assembler},
        {"date", today()},   {"generator", r.generator}, {"seed", std::to_string(kSeed)}};
    file.notes = notes(file.group);
    write(file, std::filesystem::path(folder) / (file.group + ".jsonl"));
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  std::printf("%zu of %zu families on %s, %zu refused, %.1f s\n", count, all.size(),
              source.gpu.c_str(), r.errors.size(), took.count());
  return r.errors.empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::string device = "vm", folder, dump_to;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    if (option == "--device")
      device = argv[i + 1];
    else if (option == "--record")
      folder = argv[i + 1];
    else if (option == "--dump")
      dump_to = argv[i + 1];
    else
      argc = 2;
  }
  if (argc % 2 == 0 || (device != "vm" && device != "gpu")) {
    std::fputs("usage: vectors --device vm|gpu [--record DIR] [--dump DIR]\n", stderr);
    return 2;
  }
  try {
    return run(device, folder, dump_to);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "vectors: %s\n", error.what());
    return 3;
  }
}
