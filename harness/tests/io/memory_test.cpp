// SPDX-License-Identifier: MIT
#include "harness/io/memory.h"

#include "harness/tests/catch.h"
#include "harness/tests/helpers.h"

namespace fa::io {
namespace {

/// A system with 1000 KiB available.
struct System : Folder {
  System() { write("proc/meminfo", "MemTotal:  2000 kB\nMemAvailable:  1000 kB\n"); }

  void group2(const std::string& at, const std::string& max, const std::string& current) const {
    const std::string folder = "sys/fs/cgroup" + at;
    write(folder + "/memory.max", max + "\n");
    write(folder + "/memory.current", current + "\n");
  }
  void group1(const std::string& at, const std::string& limit, const std::string& usage) const {
    const std::string folder = "sys/fs/cgroup/memory" + at;
    write(folder + "/memory.limit_in_bytes", limit + "\n");
    write(folder + "/memory.usage_in_bytes", usage + "\n");
  }
};

constexpr std::uint64_t kWithoutLimit = 1000 * 1024;

TEST_CASE("the kernel's own number where nothing limits the process") {
  const System system;
  CHECK(available_memory(system.path) == kWithoutLimit);
  CHECK_FALSE(available_memory(system / "nowhere"));
  CHECK(available_memory().value_or(1) > 0);
}

TEST_CASE("control groups of version 2, and those above") {
  const System system;
  system.write("proc/self/cgroup", "0::/a/b\n");
  system.group2("/a/b", "max", "500");
  system.group2("/a", "9000", "2000");
  CHECK(available_memory(system.path) == 7000u);
  system.group2("/a/b", "6000", "500");
  CHECK(available_memory(system.path) == 5500u);
  system.write("sys/fs/cgroup/a/b/memory.stat", "anon 100\ninactive_file 300\n");
  CHECK(available_memory(system.path) == 5800u);
  system.group2("/a/b", "100", "500");  // the limit was lowered
  CHECK(available_memory(system.path) == 0u);
}

TEST_CASE("control groups of version 1, and those above") {
  const System system;
  system.write("proc/self/cgroup", "5:cpu,cpuacct:/other\n4:memory:/a/b\n0::/\n");
  system.group1("", "9223372036854771712", "5000");
  CHECK(available_memory(system.path) == kWithoutLimit);
  system.group1("/a", "8000", "1000");
  CHECK(available_memory(system.path) == 7000u);
  system.group1("/a/b", "4000", "3000");
  system.write("sys/fs/cgroup/memory/a/b/memory.stat",
               "inactive_file 1\ntotal_inactive_file 200\n");
  CHECK(available_memory(system.path) == 1200u);
}

TEST_CASE("limits of the process, less what it holds") {
  const System system;
  system.write("proc/self/status", "VmPeak:  900 kB\nVmSize:  300 kB\nVmData:  100 kB\n");
  const auto limits = [&](const std::string& data, const std::string& space) {
    const std::string names[] = {"Max data size             ", "Max address space         "};
    system.write("proc/self/limits", "Limit  Soft Limit  Hard Limit  Units\n" + names[0] + data +
                                         " unlimited bytes\n" + names[1] + space +
                                         " unlimited bytes\n");
    return available_memory(system.path);
  };
  CHECK(limits("unlimited", "unlimited") == kWithoutLimit);
  CHECK(limits("unlimited", "512000") == 200u * 1024);
  CHECK(limits("204800", "512000") == 100u * 1024);
  CHECK(limits("unlimited", "1024") == 0u);
}

TEST_CASE("in a container the limits are at the mount, whatever the path") {
  const System system;
  system.write("proc/self/cgroup", "0::/system.slice/run-1\n");
  system.group2("", "2000", "500");
  CHECK(available_memory(system.path) == 1500u);
}

}  // namespace
}  // namespace fa::io
