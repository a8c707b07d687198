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

std::vector<Argument> float_arguments(const Problem& problem) {
  // The last key that query 0 sees; without a mask, one past the end.
  const std::int64_t diagonal = problem.seq_kv - (problem.causal ? problem.seq_q : 0);
  return {Tensor::q,
          Tensor::k,
          Tensor::v,
          Tensor::o,
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

}  // namespace fa
