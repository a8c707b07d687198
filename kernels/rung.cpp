#include "kernels/rung.h"

#include <algorithm>
#include <numbers>
#include <utility>

namespace fa {

namespace {

// {64 columns, sequence, panels, batch and heads}: one copy brings all panels of a tile.
TensorMap tile_map(Tensor tensor, const Problem& problem, std::int64_t seq, int rows) {
  const std::int64_t D = problem.head_dim;
  return {.tensor = tensor,
          .rank = 4,
          .extents = {64, seq, D / 64, problem.batch * problem.heads},
          .strides = {1, D, 64, seq * D},
          .box = {64, rows, problem.head_dim / 64, 1},
          .swizzle = Swizzle::b128};
}

std::int32_t int32(std::int64_t value) {
  return static_cast<std::int32_t>(value);
}

float scale_log2(const Problem& problem) {
  return static_cast<float>(problem.scale() * std::numbers::log2e);
}

LaunchPlan plan_rows(const Problem& problem, const Instance& instance,
                     std::vector<Argument> arguments) {
  return {{launch_of(instance, row_tile_grid(problem, instance.tile), std::move(arguments))}};
}

}  // namespace

Launch launch_of(const Instance& instance, Dim3 grid, std::vector<Argument> arguments) {
  Launch launch;
  launch.entry = instance.entry;
  launch.kernel = instance.kernel;
  launch.grid = grid;
  launch.block = instance.tile.warps * 32;
  launch.dynamic_shared = instance.shared_bytes;
  launch.arguments = std::move(arguments);
  return launch;
}

const Instance& instance_for(std::span<const Instance> instances, int head_dim) {
  return *std::find_if(instances.begin(), instances.end(),
                       [&](const Instance& i) { return i.head_dim == head_dim; });
}

std::vector<Argument> float_arguments(const Problem& problem, Argument scratch) {
  // The last key that query 0 sees; without a mask, one past the end.
  const std::int64_t diagonal = problem.seq_kv - (problem.causal ? problem.seq_q : 0);
  return {Tensor::q,
          Tensor::k,
          Tensor::v,
          Tensor::o,
          scratch,
          int32(problem.seq_q),
          int32(problem.seq_kv),
          static_cast<float>(problem.scale()),
          int32(diagonal)};
}

std::vector<Argument> half_arguments(const Problem& problem) {
  return {Tensor::q,
          Tensor::k,
          Tensor::v,
          Tensor::o,
          Tensor::lse,
          int32(problem.seq_q),
          int32(problem.seq_kv),
          int32(problem.causal),
          scale_log2(problem)};
}

std::vector<Argument> tma_arguments(const Problem& problem, const Tile& tile,
                                    const TmaOptions& options) {
  const std::int64_t heads = problem.batch * problem.heads;
  return {tile_map(Tensor::q, problem, problem.seq_q, options.query_rows),
          tile_map(Tensor::k, problem, problem.seq_kv, tile.Bc),
          tile_map(Tensor::v, problem, problem.seq_kv, tile.Bc),
          tile_map(Tensor::o, problem, problem.seq_q, 16),
          Tensor::o,
          Tensor::lse,
          Tensor::k,
          options.counter,
          int32(heads),
          int32(options.group),
          int32(problem.seq_q),
          int32(problem.seq_kv),
          int32(problem.causal),
          scale_log2(problem)};
}

Dim3 row_tile_grid(const Problem& problem, const Tile& tile) {
  return {(problem.seq_q + tile.Br - 1) / tile.Br, problem.heads, problem.batch};
}

Dim3 persistent_grid(const Problem& problem, const Tile& tile, const DeviceDescription& device) {
  const Dim3 tiles = row_tile_grid(problem, tile);
  return {std::min<std::int64_t>(tiles.x * tiles.y * tiles.z, device.sms)};
}

int heads_in_l2(const Problem& problem, const DeviceDescription& device) {
  const auto head_bytes =
      2 * problem.seq_kv * problem.head_dim * static_cast<std::int64_t>(size_of(problem.dtype));
  const std::int64_t heads = problem.batch * problem.heads;
  return static_cast<int>(std::clamp<std::int64_t>(device.l2_bytes / 2 / head_bytes, 1, heads));
}

PlanResult plan_float_tiles(const Problem& problem, const Instance& instance,
                            const DeviceDescription&) {
  if (auto refused = refuse_partial_tiles(problem, instance.tile)) return *refused;
  return plan_rows(problem, instance, float_arguments(problem));
}

PlanResult plan_half_tiles(const Problem& problem, const Instance& instance,
                           const DeviceDescription&) {
  if (auto refused = refuse_partial_tiles(problem, instance.tile)) return *refused;
  return plan_rows(problem, instance, half_arguments(problem));
}

PlanResult plan_half_rows(const Problem& problem, const Instance& instance,
                          const DeviceDescription&) {
  return plan_rows(problem, instance, half_arguments(problem));
}

PlanResult plan_tma_tiles(const Problem& problem, const Instance& instance,
                          const DeviceDescription&) {
  if (auto refused = refuse_partial_tiles(problem, instance.tile)) return *refused;
  return plan_rows(problem, instance, tma_arguments(problem, instance.tile));
}

PlanResult plan_tma_persistent(const Problem& problem, const Instance& instance,
                               const DeviceDescription& device) {
  if (auto refused = refuse_partial_tiles(problem, instance.tile)) return *refused;
  return plan_tma_persistent_rows(problem, instance, device);
}

PlanResult plan_tma_persistent_rows(const Problem& problem, const Instance& instance,
                                    const DeviceDescription& device) {
  return LaunchPlan{{launch_of(instance, persistent_grid(problem, instance.tile, device),
                               tma_arguments(problem, instance.tile))}};
}

PlanResult plan_tma_dynamic(const Problem& problem, const Instance& instance,
                            const DeviceDescription& device) {
  const TmaOptions options{.group = problem.causal ? heads_in_l2(problem, device) : 1,
                           .counter = ScratchRef{0}};
  return LaunchPlan{{launch_of(instance, persistent_grid(problem, instance.tile, device),
                               tma_arguments(problem, instance.tile, options))},
                    {{.name = "tile counter", .bytes = 8, .zeroed = true}}};
}

PlanResult plan_float_steps(const Problem& problem, const Tile& tile,
                            std::initializer_list<Step> steps, Scratch scratch) {
  if (auto refused = refuse_partial_tiles(problem, tile)) return *refused;
  LaunchPlan plan;
  plan.scratch = {scratch};
  for (const Step& step : steps)
    plan.launches.push_back(launch_of(step.instance, {step.blocks, problem.heads, problem.batch},
                                      float_arguments(problem, ScratchRef{0})));
  return plan;
}

}  // namespace fa
