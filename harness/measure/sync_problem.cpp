// SPDX-License-Identifier: MIT
#include "harness/measure/sync_problem.h"

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <variant>

#include "harness/device/vm.h"

namespace fa {
namespace {

LaunchPlan planned(const Rung& rung, const Problem& problem, const DeviceDescription& device,
                   std::string_view tile = {}) {
  PlanResult result = make_plan(rung, problem, device, tile);
  if (const auto* refused = std::get_if<Unsupported>(&result))
    throw std::invalid_argument(refused->reason);
  return std::get<LaunchPlan>(std::move(result));
}

LaunchPlan planned(const Rung& rung, const Problem& problem, std::string_view tile = {}) {
  return planned(rung, problem, vm_description(), tile);
}

Problem square(std::int64_t seq, int head_dim, std::int64_t heads) {
  return {.heads = heads, .seq_q = seq, .seq_kv = seq, .head_dim = head_dim};
}

/// Two or three parts of one head's keys, each long enough for the ring to go round, and ending in
/// its first stage; of a grid that does not follow the heads, blocks with more than one.
std::pair<Problem, LaunchPlan> of_cache(const Rung& rung) {
  Problem p{.heads = 6,
            .seq_q = std::min<std::int64_t>(8, rung.most_queries()),
            .seq_kv = 860,
            .head_dim = rung.head_dims().back(),
            .causal = has(rung.capabilities, Capabilities::causal),
            .lse = true,
            .own_kv_heads = 3};
  DeviceDescription small = h200_description();
  small.sms = 1;
  set_types(rung, p);
  LaunchPlan plan = planned(rung, p, small);
  if (plan.launches.front().grid.x == 1) {  // a block an SM would cut no head
    small.sms = 2;
    plan = planned(rung, p, small);
  }
  if (plan.launches.front().grid.y > 1) {
    p.heads = 4;
    p.own_kv_heads = 1;
    plan = planned(rung, p, small);
  }
  return {p, std::move(plan)};
}

/// Three blocks of keys, the first with as many tiles of queries as make every ring go round more
/// than once, and the last with a single one.
std::pair<Problem, LaunchPlan> of_gradients(const Rung& rung) {
  Problem p = square(128, rung.head_dims().back(), 2);
  set_types(rung, p);
  p.causal = true;
  if (has(rung.capabilities, Capabilities::ragged)) p.seq_q = p.seq_kv = 300;
  if (has(rung.capabilities, Capabilities::windowed)) p.window_left = 100;
  // Two additions give the same sum in either order, three do not.
  if (has(rung.capabilities, Capabilities::deterministic)) p.window_left = 200;
  // Both sequences end within a tile.
  if (has(rung.capabilities, Capabilities::packed))
    p.batch = 2, p.query_lengths = {40, 300}, p.lengths = {70, 300};
  return {p, planned(rung, p)};
}

/// One block, or one cluster, with a long way: nvcc unrolls loops by four, and the longest ring has
/// ten slots.
std::pair<Problem, LaunchPlan> of_blackwell(const Rung& rung) {
  Problem p = square(1280, rung.head_dims().back(), 1);
  p.seq_q = rung.find_instance(p.head_dim, rung.dtype)->tile.Br;
  p.lse = has(rung.capabilities, Capabilities::lse);
  p.seq_q *= planned(rung, p).launches.front().cluster.x;
  return {p, planned(rung, p)};
}

std::pair<Problem, LaunchPlan> of_attention(const Rung& rung) {
  Problem p = square(rung.dtype == Dtype::f16 ? 256 : 128, rung.head_dims().back(), 1);
  set_types(rung, p);
  p.causal = has(rung.capabilities, Capabilities::causal);
  p.lse = has(rung.capabilities, Capabilities::lse);
  if (rung.family != Family::hopper) return {p, planned(rung, p)};
  p.heads = 2;
  p.seq_q = p.seq_kv = 640;
  // 39 has thread blocks alone at these lengths; in clusters they have more to wait for.
  const std::string_view tile = rung.id == "39" ? "256x128w12" : "";
  LaunchPlan plan = planned(rung, p, tile);
  if (plan.launches.front().grid.y == 1 && plan.launches.front().grid.z == 1) {
    // Persistent: few blocks, so that each takes several tiles, and its ring goes round. With these
    // keys all causal tiles begin left of the diagonal, and it crosses two blocks of most.
    if (has(rung.capabilities, Capabilities::ragged)) p.seq_kv = 1290;
    // The first rows of a cluster see two key blocks that the last ones pass over.
    if (has(rung.capabilities, Capabilities::windowed)) p.window_left = 300;
    p.sinks = has(rung.capabilities, Capabilities::sinks);
    plan = planned(rung, p, tile);
    plan.launches.front().grid.x = 2;
    return {p, std::move(plan)};
  }
  // One block with a long way: nvcc unrolls the producer's loop by four, and the ring has six
  // slots.
  p.heads = 1;
  p.seq_q = 128;
  p.seq_kv = 1280;
  return {p, planned(rung, p)};
}

}  // namespace

SyncProblem sync_problem(const Rung& rung) {
  const bool cache = rung.family == Family::decode, gradients = rung.family == Family::backward;
  auto [problem, plan] = cache                              ? of_cache(rung)
                         : gradients                        ? of_gradients(rung)
                         : rung.family == Family::blackwell ? of_blackwell(rung)
                                                            : of_attention(rung);
  // A spike has repairs in the last key block, too.
  const Distribution last = cache || gradients ? Distribution::needle : Distribution::spike;
  return {problem, std::move(plan), {Distribution::normal, Distribution::large, last}};
}

}  // namespace fa
