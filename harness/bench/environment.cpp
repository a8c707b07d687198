#include "harness/bench/environment.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>

#include "fa_build_config.h"
#include "fa_git_version.h"
#include "harness/bench/nvml.h"
#include "harness/bench/timing.h"
#include "harness/device/gpu.h"
#include "harness/device/vm.h"

namespace fa {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFlops = "4*B*H*Nq*Nkv*D, half when causal";

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

/// Standard output of a git command in the source tree; nothing when it fails.
std::optional<std::string> git(const std::string& arguments) {
  const std::string command = "git -C " + quoted(FA_SOURCE_DIR) + " " + arguments + " 2>/dev/null";
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (!pipe) return std::nullopt;
  std::string text;
  std::array<char, 4096> block{};
  while (const std::size_t n = std::fread(block.data(), 1, block.size(), pipe)) {
    text.append(block.data(), n);
  }
  if (::pclose(pipe) != 0) return std::nullopt;
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

std::string short_sha(const std::string& sha) {
  return sha.substr(0, 10);
}

}  // namespace

const char* project_version() {
  return FA_VERSION;
}

SourceState source_state() {
  SourceState state{
      .git_sha = FA_BUILD_GIT_SHA, .git_dirty = FA_BUILD_GIT_DIRTY != 0, .warning = {}};
  std::error_code error;
  if (!fs::exists(fs::path(FA_SOURCE_DIR) / ".git", error)) return state;
  const auto head = git("rev-parse HEAD");
  if (!head) return state;
  if (*head != state.git_sha) {
    state.warning = fmt::format("built from commit {}, the source tree is at {}: build again",
                                short_sha(state.git_sha), short_sha(*head));
    state.git_dirty = true;
    return state;
  }
  const auto changes = git("status --porcelain -- . ':!docs' ':!plots' ':!*.md'");
  if (!changes || !changes->empty()) state.git_dirty = true;
  return state;
}

Json generator_json(const SourceState& source, const std::vector<std::string>& argv) {
  return {{"version", FA_VERSION},   {"git_sha", source.git_sha}, {"git_dirty", source.git_dirty},
          {"nvcc", FA_NVCC_VERSION}, {"flags", FA_CUDA_FLAGS},    {"argv", argv}};
}

Json device_json(const GpuDevice& device, const Nvml* nvml) {
  const GpuProperties& gpu = device.properties();
  Json json{{"kind", device.kind()}, {"name", gpu.name},     {"sm", gpu.sm},
            {"sms", gpu.sms},        {"memory", gpu.memory}, {"l2", gpu.l2}};
  json["driver"] = nvml ? or_null(nvml->driver_version()) : Json();
  json["power_limit"] = nvml ? or_null(nvml->power_limit()) : Json();
  json["cuda_driver"] = fmt::format("{}.{}", gpu.cuda_driver / 1000, gpu.cuda_driver % 1000 / 10);
  return json;
}

Json device_json(const VmDevice& device) {
  Json json{{"kind", device.kind()}, {"name", device.name()}, {"sm", device.sm()}};
  for (const char* unknown : {"sms", "memory", "l2", "driver", "power_limit"}) {
    json[unknown] = nullptr;
  }
  return json;
}

Json vm_policy_json(std::uint64_t seed) {
  return {{"seed", seed}, {"flops", kFlops}};
}

fs::path source_path(const std::string& relative) {
  return fs::path(FA_SOURCE_DIR) / relative;
}

Json policy_json(const TimingPolicy& policy, std::uint64_t seed, const GpuDevice& device,
                 const Nvml* nvml) {
  const bool flush = policy.l2 == L2Policy::flush;
  return {{"rounds", policy.rounds},
          {"warmup_ms", policy.warmup_ms},
          {"spaced_ms", policy.spaced_ms},
          {"spaced_max", policy.spaced_max},
          {"gap_ms", {policy.gap_min_ms, policy.gap_max_ms}},
          {"lead_ms", policy.lead_ms},
          {"back_to_back_ms", policy.back_to_back_ms},
          {"back_to_back_min", policy.back_to_back_min},
          {"l2", to_string(policy.l2)},
          {"l2_flush_bytes", flush ? Json(flush_bytes(device.properties().l2)) : Json()},
          {"l2_back_to_back", "as the launch before left it"},
          {"timer", "CUDA event pairs around launches queued behind a hold on the stream"},
          {"clock", "NVML, mean over the back-to-back windows"},
          {"power", nvml ? Json(fmt::format("NVML, {}", nvml->power_kind())) : Json()},
          {"seed", seed},
          {"flops", kFlops},
          {"bytes", "Q+K+V+O once"}};
}

std::optional<PtxasEntry> find_ptxas_entry(const Json& report, const std::string& entry, int sm) {
  if (!report.is_array()) return std::nullopt;
  // Code for sm_90a runs on 9.0 alone; code for sm_80 on every 8.x from there up.
  const auto serves = [&](const std::string& arch) {
    int built = 0;
    const char* end = arch.data() + arch.size();
    if (!arch.starts_with("sm_")) return -1;
    const auto parsed = std::from_chars(arch.data() + 3, end, built);
    if (parsed.ec != std::errc{}) return -1;
    if (parsed.ptr != end) return built == sm ? built + 1 : -1;
    return built / 10 == sm / 10 && built <= sm ? built : -1;
  };
  const Json* best = nullptr;
  int best_rank = -1;
  for (const Json& item : report) {
    if (!item.is_object() || item.value("entry", "") != entry) continue;
    const int rank = serves(item.value("arch", ""));
    if (rank > best_rank) best = &item, best_rank = rank;
  }
  if (!best) return std::nullopt;
  return PtxasEntry{.registers = best->value("registers", 0),
                    .spill_stores = best->value("spill_stores", 0),
                    .spill_loads = best->value("spill_loads", 0),
                    .stack = best->value("stack", 0),
                    .static_shared = best->value("static_shared", 0)};
}

std::optional<PtxasEntry> ptxas_entry(const std::string& entry, int sm) {
  static const Json report = [] {
    std::ifstream in(FA_PTXAS_REPORT);
    return in ? Json::parse(in, nullptr, /*allow_exceptions=*/false) : Json();
  }();
  return find_ptxas_entry(report, entry, sm);
}

}  // namespace fa
