// SPDX-License-Identifier: MIT
#include "harness/measure/identity.h"

#include <fmt/format.h>

#include "harness/device/gpu_stopwatch.h"
#include "harness/environment/nvml.h"

namespace fa {
namespace {

constexpr const char* kFlops =
    "4*B*H*Nq*Nkv*D, of gradients 10; half when causal; with a window the keys that are seen";

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

}  // namespace

Json generator_json(const SourceState& source, const std::vector<std::string>& argv) {
  return {{"version", project_version()},  {"git_sha", source.git_sha},
          {"git_dirty", source.git_dirty}, {"nvcc", build_nvcc()},
          {"flags", build_flags()},        {"argv", argv}};
}

Json device_json(const Device& device, const Nvml* nvml) {
  const DeviceFacts facts = device.facts();
  Json json{
      {"kind", device.kind()},     {"name", device.name()},           {"sm", device.sm()},
      {"sms", or_null(facts.sms)}, {"memory", or_null(facts.memory)}, {"l2", or_null(facts.l2)}};
  json["driver"] = nvml ? or_null(nvml->driver_version()) : Json();
  json["power_limit"] = nvml ? or_null(nvml->power_limit()) : Json();
  if (const auto cuda = facts.cuda_driver) {
    json["cuda_driver"] = fmt::format("{}.{}", *cuda / 1000, *cuda % 1000 / 10);
  }
  return json;
}

Json policy_json(const std::optional<TimingPolicy>& timing, std::uint64_t seed,
                 const Device& device, const Nvml* nvml, bool cold) {
  if (!timing) return {{"seed", seed}, {"flops", kFlops}};
  const TimingPolicy& policy = *timing;
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
          {"l2_flush_bytes", flush ? Json(flush_bytes(device.facts().l2.value_or(0))) : Json()},
          {"l2_back_to_back", cold ? "copies of K and V in turn, so that none is found"
                                   : "as the launch before left it"},
          {"timer", "CUDA event pairs around launches queued behind a hold on the stream"},
          {"clock", "NVML, mean over the back-to-back windows"},
          {"power", nvml ? Json(fmt::format("NVML, {}", nvml->power_kind())) : Json()},
          {"seed", seed},
          {"flops", kFlops},
          {"bytes", "inputs and outputs once"}};
}

}  // namespace fa
