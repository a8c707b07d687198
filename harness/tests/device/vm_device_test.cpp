// SPDX-License-Identifier: MIT
// The device itself: what it refuses, and in which words.
#include <malloc.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <utility>

#include "harness/device/gate.h"
#include "harness/device/host_memory.h"
#include "harness/device/make_device.h"
#include "harness/results/row.h"
#include "harness/tests/catch.h"
#include "harness/tests/device/support.h"
#include "harness/tests/helpers.h"

using namespace fa_test;

namespace {

namespace fs = std::filesystem;

/// A folder with one PTX file.
struct Kernels : Folder {
  explicit Kernels(const std::string& ptx) { write("kernel.ptx", ptx); }
};

/// An entry with the parameters of a rung; %o is the address of O.
std::string kernel(const std::string& body) {
  return ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry probe(\n"
         ".param .u64 q, .param .u64 k, .param .u64 v, .param .u64 o)\n{\n"
         ".reg .b64 %o, %x;\n.reg .b32 %r<4>;\nld.param.u64 %o, [o];\n" +
         body + "\nret;\n}\n";
}

LaunchPlan probe_plan() {
  Launch launch;
  launch.entry = "probe";
  launch.block = 32;
  launch.arguments = {Tensor::q, Tensor::k, Tensor::v, Tensor::o};
  return {{launch}};
}

void run_probe(const std::string& ptx, const LaunchPlan& plan = probe_plan(),
               VmOptions options = {}) {
  const Kernels folder(ptx);
  options.ptx = std::make_shared<PtxLibrary>(folder.path);
  VmDevice device(std::move(options));
  const Problem problem = square(16, 64);
  device.load(problem, make_inputs(problem, Distribution::normal, 1));
  device.launch(plan);
}

}  // namespace

TEST_CASE("make_device gives the virtual machine by name") {
  const auto device = make_device("vm");
  CHECK(device->kind() == "vm");
  CHECK(device->sm() == 90);
  for (const Rung& rung : catalogue()) CHECK_FALSE(device_refusal(rung, device->description()));
}

TEST_CASE("zeroed scratch starts as zeros and is not poisoned, other scratch is") {
  // The first word of O is what the counter held, the next what the other buffer held.
  const Kernels folder(
      ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry probe(\n"
      ".param .u64 o, .param .u64 counter, .param .u64 other)\n{\n"
      ".reg .b64 %o, %c, %p;\n.reg .b32 %n, %m, %t;\n.reg .pred %q;\n"
      "mov.u32 %t, %tid.x;\nsetp.ne.u32 %q, %t, 0;\n@%q ret;\n"
      "ld.param.u64 %o, [o];\nld.param.u64 %c, [counter];\nld.param.u64 %p, [other];\n"
      "ld.global.u32 %n, [%c];\nst.global.u32 [%o], %n;\n"
      "ld.global.u32 %m, [%p];\nst.global.u32 [%o+4], %m;\n"
      "add.u32 %n, %n, 1;\nst.global.u32 [%c], %n;\n"
      "st.global.u32 [%p], %n;\nret;\n}\n");
  // No checkers: the kernel reads what nobody has written.
  VmDevice device({.checkers = false, .ptx = std::make_shared<PtxLibrary>(folder.path)});
  const Problem problem = square(16, 64);
  device.load(problem, make_inputs(problem, Distribution::normal, 1));
  const auto found = [&](std::int64_t counter_bytes) {
    Launch launch;
    launch.entry = "probe";
    launch.block = 32;
    launch.arguments = {Tensor::o, ScratchRef{0}, ScratchRef{1}};
    device.launch(
        {{launch}, {{.name = "counter", .bytes = counter_bytes, .zeroed = true}, {"l", 64}}});
    std::array<std::uint32_t, 2> words{};
    const HostTensor output = device.download_output();
    std::memcpy(words.data(), output.bytes.data(), sizeof(words));
    return words;
  };
  using Words = std::array<std::uint32_t, 2>;
  constexpr std::uint32_t kPoison = 0xFFFF'FFFF;
  CHECK(found(4)[0] == 0u);
  CHECK(found(4) == Words{1, 1});  // the same buffers
  device.poison_output();
  CHECK(found(4) == Words{2, kPoison});
  CHECK(device.nonzero_scratch() == std::vector<std::string>{"counter"});
  CHECK(device.nonzero_scratch().empty());
  CHECK(found(4)[0] == 0u);  // repaired, so that the next rung is not called wrong
  CHECK(found(8)[0] == 0u);  // another plan's
  device.load(problem, make_inputs(problem, Distribution::normal, 1));
  CHECK(found(8)[0] == 0u);
}

TEST_CASE("an entry that the PTX lacks is answered with those that it has") {
  const auto refused = [](const std::string& entry) {
    std::string ptx = kernel("");
    ptx.replace(ptx.find("probe"), 5, entry);
    return message_of<DeviceError>([&] { run_probe(ptx); });
  };
  const std::string mistyped = refused("prbe");
  CHECK(contains(mistyped, "has the entry probe; all of its 1 entries: prbe"));
  CHECK(contains(mistyped, "extern \"C\""));
  const std::string mangled = refused("_Z5probePKfS0_S0_Pf");
  CHECK(
      contains(mangled, "kernel.ptx has probe(float const*, float const*, float const*, float*)"));
  CHECK(contains(mangled, "_Z5probePKfS0_S0_Pf: declare it extern \"C\""));
  CHECK_FALSE(contains(mistyped + mangled, "fa_ptx"));
}

TEST_CASE("a launch that no device takes is the plan's fault") {
  const auto fault = [](const std::function<void(Launch&)>& change) {
    LaunchPlan plan = probe_plan();
    change(plan.launches.front());
    return message_of<KernelFault>([&] { run_probe(kernel(""), plan); });
  };
  CHECK(fault([](Launch&) {}).empty());
  CHECK(fault([](Launch& launch) { launch.grid.x = 0; }) ==
        "probe: a grid extent of 0 is not between 1 and 2147483647");
  CHECK(contains(fault([](Launch& launch) { launch.dynamic_shared = 1 << 20; }),
                 "1048576 bytes of shared memory"));
  CHECK(contains(fault([](Launch& launch) { launch.block = 4096; }), "from 1 to 1024 are allowed"));
  CHECK(contains(fault([](Launch& launch) { launch.arguments.pop_back(); }), "takes 4 arguments"));
  CHECK(fault([](Launch& launch) { launch.arguments.back() = ScratchRef{0}; }) ==
        "probe: an argument is scratch buffer 0 of a plan with 0");
}

TEST_CASE("no committed launch comes near the limit of steps") {
  for (const char* file : {"counts.json", "counts_decode.json", "counts_backward.json"}) {
    std::ifstream in(fs::path(FA_COUNTS) / file);
    const Json document = Json::parse(in);
    std::size_t counted = 0;
    for (const Json& each : document.at("rows")) {
      const Row row = row_from_json(each);
      if (!row.counts) continue;
      const auto executed = std::find_if(row.counts->begin(), row.counts->end(),
                                         [](const auto& c) { return c.first == "instructions"; });
      REQUIRE(executed != row.counts->end());
      INFO(file << ": " << row.key.id << " at " << to_string(row.key.problem));
      CHECK(default_max_steps(row.key.problem) >
            100 * static_cast<std::uint64_t>(executed->second));
      ++counted;
    }
    CHECK(counted > 5);
  }
}

TEST_CASE("a problem that cannot fit is refused before anything is made") {
  VmDevice device;
  Problem huge = square(65536, 128, 60000, 60000);
  CHECK_THROWS_AS(device.require_memory(huge), OutOfMemory);
  CHECK(contains(message_of<OutOfMemory>([&] { device.require_memory(huge); }),
                 "bytes of host memory"));
}

#ifndef __SANITIZE_ADDRESS__  // it takes memory of its own
/// Kilobytes of a line of /proc/self/status.
double status(const std::string& name) {
  std::ifstream in("/proc/self/status");
  for (std::string word; in >> word;) {
    double value = 0;
    if (word == name && in >> value) return value;
  }
  return 0;
}

TEST_CASE("a check takes the host memory that is asked for, and no more") {
  const Kernels folder(kernel("st.global.b32 [%o], 0;"));
  VmDevice device({.ptx = std::make_shared<PtxLibrary>(folder.path)});
  const Problem problem = square(256, 128, 16, 32);  // 128 MiB of Q, K, V and O
  malloc_trim(0);  // what earlier test cases let go would be taken without being counted
  std::ofstream("/proc/self/clear_refs") << 5;  // the peak is what is held now
  const double before = status("VmRSS:");
  const Verifier verifier = [&] {
    const Inputs inputs = make_inputs(problem, Distribution::normal, 1);
    device.load(problem, inputs);
    return Verifier(problem, inputs);
  }();
  pass_gate(
      device, [&] { device.launch(probe_plan()); }, verifier, Repeat::bits);
  const double taken = 1024 * (status("VmHWM:") - before);
  const double asked = problem.bytes() + check_host_bytes(problem);
  INFO(taken / problem.bytes() << " of the problem taken, " << asked / problem.bytes()
                               << " asked for");
  CHECK(taken <= asked);
  CHECK(taken > 0.7 * asked);
}
#endif

TEST_CASE("what the host cannot give is refused in one sentence") {
  // On a GPU: three tensors of 32 GiB on the host, then two; the kernel ended a process that took
  // them without asking.
  const Problem large = square(131072, 128, 16, 64);
  const double needed = check_host_bytes(large);
  CHECK(needed > 3 * 0x1p35);
  CHECK(needed < 3.1 * 0x1p35);
  const std::uint64_t room = std::uint64_t{1} << 36;
  CHECK(message_of<OutOfMemory>([&] { require_host_bytes(needed, "it", "its inputs", room); }) ==
        "it needs " + std::to_string(static_cast<std::uint64_t>(needed)) +
            " bytes of host memory for its inputs, 68719476736 are available");
  CHECK_NOTHROW(require_host_bytes(needed, "it", "its inputs", std::uint64_t{1} << 37));
  CHECK_NOTHROW(require_host_bytes(needed, "it", "its inputs", std::nullopt));
}

TEST_CASE("O starts as NaN") {
  VmDevice device;
  const Problem problem = square(16, 64);
  device.load(problem, make_inputs(problem, Distribution::normal, 1));
  const HostTensor output = device.download_output();
  CHECK(count_non_finite(output) == output.size());
}

TEST_CASE("an access outside a tensor is the kernel's fault, with the buffer's name") {
  const std::string store = "st.global.b32 [%o+4096], 0;";
  CHECK(contains(message_of<KernelFault>([&] { run_probe(kernel(store)); }), "'O'"));
  try {
    run_probe(kernel(store));
  } catch (const KernelFault& fault) {
    CHECK(contains(text_of(fault.findings), "kernel.ptx:"));
  }
  CHECK_NOTHROW(run_probe(kernel("st.global.b32 [%o], 0;")));
}

TEST_CASE("a fault is a verdict of the gate") {
  const Kernels folder(kernel("st.global.b32 [%o+4096], 0;"));
  VmDevice device({.ptx = std::make_shared<PtxLibrary>(folder.path)});
  const Problem problem = square(16, 64);
  const Inputs inputs = make_inputs(problem, Distribution::normal, 1);
  device.load(problem, inputs);
  const Verifier verifier(problem, inputs);
  const Verdict verdict = pass_gate(
      device, [&] { device.launch(probe_plan()); }, verifier, Repeat::bits);
  CHECK_FALSE(verdict.ok);
  CHECK(contains(verdict.reason, "out of bounds"));
  REQUIRE(verdict.findings.size() == 1);
  CHECK(contains(verdict.findings[0].kind, "bounds"));
  CHECK(contains(verdict.findings[0].place, "kernel.ptx:"));
}
