#include "kernels/planners.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numbers>
#include <utility>

#include "kernels/reserved_shared.h"

namespace fa {

namespace {

// {64 columns, sequence, panels, batch and heads}: one copy brings all panels of a tile.
TensorMap tile_map(Tensor tensor, const Problem& problem, std::int64_t seq, int rows) {
  const std::int64_t D = problem.head_dim;
  const bool of_keys = tensor == Tensor::k || tensor == Tensor::v;
  const std::int64_t heads = problem.batch * (of_keys ? problem.kv_heads() : problem.heads);
  return {.tensor = tensor,
          .rank = 4,
          .extents = {64, seq, D / 64, heads},
          .strides = {1, D, 64, seq * D},
          .box = {64, rows, problem.head_dim / 64, 1},
          .swizzle = Swizzle::b128};
}

// The same with a dimension for the batch, at the problem's strides.
//
// Of a packed batch this is a second dimension of rows: its coordinate is one past the last row of
// a sequence. The first one counts the rows of a sequence up to its end, which is always at `seq`,
// the extent, so that no box has a row behind the end. Both together are `seq` rows too far.
TensorMap view_map(Tensor tensor, const Problem& problem, int rows) {
  const bool of_keys = tensor == Tensor::k || tensor == Tensor::v;
  const Strides strides = strides_of(problem, static_cast<int>(tensor));
  const std::int64_t seq = of_keys ? problem.seq_kv : problem.seq_q;
  TensorMap map{.tensor = tensor,
                .rank = 5,
                .extents = {64, seq, problem.head_dim / 64,
                            of_keys ? problem.kv_heads() : problem.heads, problem.batch},
                .strides = {1, strides.row, 64, strides.head, strides.batch},
                .box = {64, rows, problem.head_dim / 64, 1, 1},
                .swizzle = Swizzle::b128};
  if (!problem.packed()) return map;
  map.extents[4] = (of_keys ? problem.stored_keys() : problem.stored_queries()) + 1;
  map.strides[4] = strides.row;
  map.offset = -seq * strides.row;
  return map;
}

std::int32_t int32(std::int64_t value) {
  return static_cast<std::int32_t>(value);
}

float scale_log2(const Problem& problem) {
  return static_cast<float>(problem.scale() * std::numbers::log2e);
}

// Keys on a side of a query's own that it sees. No bound is one that excludes no key; kernels add
// it to a number of keys, and the sum must fit 32 bits.
std::int32_t window_side(std::int64_t keys) {
  constexpr std::int64_t kAll = kMostKeys - 1;
  return int32(keys < 0 ? kAll : std::min(keys, kAll));
}
std::int32_t left_side(const Problem& problem) {
  return window_side(problem.window_left);
}
std::int32_t right_side(const Problem& problem) {
  return window_side(problem.causal ? 0 : problem.window_right);
}

Unsupported refuse_group(const Problem& problem, int most) {
  const std::string queries =
      problem.seq_q == 1 ? "" : " with " + std::to_string(problem.seq_q) + " queries each";
  return {std::to_string(problem.group()) + " query heads" + queries +
          " share a head of K and V, at most " + std::to_string(most) +
          (problem.seq_q == 1 ? "" : " rows") + " are allowed"};
}

// Of a thread block: one for each query head where the tile has as many, else the tile's.
std::int64_t warps_of(const Problem& problem, const Tile& tile) {
  return tile.warps == tile.Br ? problem.group() : tile.warps;
}

// Thread blocks that run on an SM at the same time, 16 warps at most: a thread may then have 128
// registers.
std::int64_t blocks_per_sm(const Problem& problem, const Instance& instance,
                           const DeviceDescription& device) {
  constexpr std::int64_t kWarps = 16, kReserved = kReservedShared;
  const auto shared = static_cast<std::int64_t>(instance.shared_bytes) + kReserved;
  const std::int64_t by_warps = kWarps / warps_of(problem, instance.tile);
  const std::int64_t by_memory =
      (static_cast<std::int64_t>(device.shared_bytes) + kReserved) / shared;
  return std::max<std::int64_t>(1, std::min(by_warps, by_memory));
}

std::int64_t tiles_of(std::int64_t keys, const Instance& instance) {
  return (keys + instance.tile.Bc - 1) / instance.tile.Bc;
}

// Those that a batch entry's queries see: from the first of its first query on.
std::int64_t seen_keys(const Problem& problem, std::int64_t length) {
  return problem.window_left < 0 ? length : std::min(length, problem.seq_q + problem.window_left);
}

// As many parts of a head's keys as fill the SMs, at least a tile each.
std::int64_t splits_of(const Problem& problem, const Instance& instance,
                       const DeviceDescription& device) {
  const std::int64_t heads = problem.kv_heads() * problem.batch;
  const std::int64_t fill = device.sms * blocks_per_sm(problem, instance, device) / heads;
  return std::clamp<std::int64_t>(fill, 1, tiles_of(seen_keys(problem, problem.seq_kv), instance));
}

// Of places for parts: O, and a line for its log-sum-exp.
std::int64_t part_bytes(const Problem& problem, int places, std::int64_t blocks) {
  return blocks * places * (problem.head_dim + 32) * 4;
}

LaunchPlan plan_rows(const Problem& problem, const Instance& instance,
                     std::vector<Argument> arguments) {
  return {{launch_of(instance, row_tile_grid(problem, instance.tile), std::move(arguments))}};
}

// How many splits of a head take the least time with a thread block per SM: those that follow each
// other on an SM read their keys one after the other, and each takes a while to start.
std::int64_t fastest_splits(const Problem& problem, const Instance& instance,
                            const DeviceDescription& device) {
  constexpr std::int64_t kMerged = 16;      // splits that a merge reads at a time
  constexpr std::int64_t kStartKeys = 128;  // that are read in the time of a start
  constexpr std::int64_t kLongSplit = 768;  // of a split, before further reads of the merge pay off
  const std::int64_t heads = problem.kv_heads() * problem.batch;
  const std::int64_t keys = seen_keys(problem, problem.seq_kv);
  const std::int64_t tiles = tiles_of(keys, instance);
  const std::int64_t fill = device.sms / heads / kMerged * kMerged;
  if (fill > kMerged && keys > kMerged * kLongSplit) return std::min(fill, tiles);
  const auto time = [&](std::int64_t splits) {
    return (heads * splits + device.sms - 1) / device.sms * (keys / splits + kStartKeys);
  };
  std::int64_t fastest = 1;
  for (std::int64_t splits = 2; splits <= std::min(kMerged, tiles); ++splits)
    if (time(splits) < time(fastest)) fastest = splits;
  return fastest;
}

LaunchPlan plan_splits(const Problem& problem, const Instance& instance, std::int64_t splits) {
  const std::int64_t heads = problem.kv_heads() * problem.batch;
  const DecodeOptions options{.splits = splits, .parts = ScratchRef{0}, .counter = ScratchRef{1}};
  return {{launch_of(instance, {splits, problem.kv_heads(), problem.batch},
                     decode_arguments(problem, options))},
          {{"parts of O", problem.q_rows() * splits * (problem.head_dim + 1) * 4},
           {"counters of parts", heads * 4, /*zeroed=*/true}}};
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

const Instance& instance_for(std::span<const Instance> instances, int head_dim, bool bf16) {
  return *std::find_if(instances.begin(), instances.end(),
                       [&](const Instance& i) { return i.head_dim == head_dim && i.bf16 == bf16; });
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
          int32(problem.group()),
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
          int32(problem.group()),
          int32(options.section),
          int32(problem.seq_q),
          int32(problem.seq_kv),
          int32(problem.causal),
          scale_log2(problem)};
}

std::vector<Argument> decode_arguments(const Problem& problem, const DecodeOptions& options) {
  std::vector<Argument> arguments = {
      Tensor::q,
      Tensor::k,
      Tensor::v,
      Tensor::o,
      Tensor::lse,
      Tensor::lengths,
      Tensor::page_table,
      Tensor::kv_scales,
      Tensor::sinks,
      options.parts,
      options.counter,
      int32(problem.batch),
      int32(problem.heads * problem.seq_q),
      int32(problem.group() * problem.seq_q),
      int32(problem.seq_q),
      int32(problem.seq_kv),
      left_side(problem),
      right_side(problem),
      int32(problem.page > 0 ? problem.page : problem.seq_kv),
      problem.page > 0 ? std::countr_zero(static_cast<std::uint64_t>(problem.page)) : 31,
      int32(options.splits),
      scale_log2(problem)};
  for (const Tensor tensor : {Tensor::q, Tensor::k, Tensor::v, Tensor::o}) {
    const Strides strides = strides_of(problem, static_cast<int>(tensor));
    arguments.insert(arguments.end(), {strides.batch, strides.head, strides.row});
  }
  return arguments;
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
  return static_cast<int>(
      std::clamp<std::int64_t>(device.l2_bytes / 2 / head_bytes * problem.group(), 1, heads));
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

PlanResult plan_tma_whole_queries(const Problem& problem, const Instance& instance,
                                  const DeviceDescription&) {
  if (auto refused = refuse_partial_tiles(problem, instance.tile)) return *refused;
  return plan_rows(problem, instance,
                   tma_arguments(problem, instance.tile, {.query_rows = instance.tile.Br}));
}

PlanResult plan_tma_pairs(const Problem& problem, const Instance& instance,
                          const DeviceDescription& device) {
  constexpr int kBlocks = 2;
  PlanResult plan = plan_tma_whole_queries(problem, instance, device);
  if (auto* made = std::get_if<LaunchPlan>(&plan)) {
    const std::int64_t D = problem.head_dim;
    TensorMap values = tile_map(Tensor::v, problem, problem.seq_kv, instance.tile.Bc);
    values.extents = {D, problem.seq_kv, 1, values.extents[3]};
    values.strides[2] = D;
    values.box = {problem.head_dim / kBlocks, instance.tile.Bc, 1, 1};
    values.swizzle = D == 128 ? Swizzle::b128 : Swizzle::b64;  // a row of the box
    Launch& launch = made->launches.front();
    launch.arguments[1] = tile_map(Tensor::k, problem, problem.seq_kv, instance.tile.Bc / kBlocks);
    launch.arguments[2] = values;
    launch.grid.x = (launch.grid.x + kBlocks - 1) / kBlocks * kBlocks;
    launch.cluster = {kBlocks};
  }
  return plan;
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
  const TmaOptions options{.section = problem.causal ? heads_in_l2(problem, device) : 1,
                           .counter = ScratchRef{0}};
  return LaunchPlan{{launch_of(instance, persistent_grid(problem, instance.tile, device),
                               tma_arguments(problem, instance.tile, options))},
                    {{.name = "tile counter", .bytes = 8, .zeroed = true}}};
}

// For clusters of two thread blocks, with `rows` rows of Q a cluster.
static PlanResult plan_pairs(const Problem& problem, const Instance& instance, int rows,
                             const DeviceDescription& device) {
  constexpr std::int64_t kBlocks = 2;
  PlanResult plan = plan_tma_dynamic(problem, instance, device);
  const Dim3 tiles = row_tile_grid(problem, {.Br = rows});
  const std::int64_t clusters =
      std::clamp<std::int64_t>(device.sms / kBlocks, 1, tiles.x * tiles.y * tiles.z);
  Launch& launch = std::get<LaunchPlan>(plan).launches.front();
  launch.grid = {clusters * kBlocks};
  launch.cluster = {kBlocks};
  return plan;
}

PlanResult plan_tma_clusters(const Problem& problem, const Instance& instance,
                             const DeviceDescription& device) {
  return plan_pairs(problem, instance, 2 * instance.tile.Br, device);
}

// `plan` with the arguments of FA_MODEL_ENTRY.
static PlanResult with_views(const Problem& problem, const Instance& instance, std::int64_t section,
                             PlanResult plan) {
  const Strides keys = strides_of(problem, static_cast<int>(Tensor::k));
  std::get<LaunchPlan>(plan).launches.front().arguments = {
      view_map(Tensor::q, problem, 64),
      view_map(Tensor::k, problem, instance.tile.Bc),
      view_map(Tensor::v, problem, instance.tile.Bc),
      view_map(Tensor::o, problem, 16),
      Tensor::lse,
      Tensor::k,
      ScratchRef{0},
      Tensor::sinks,
      Tensor::cu_seqlens_q,
      Tensor::cu_seqlens_k,
      keys.batch,
      keys.head,
      keys.row,
      int32(problem.batch),
      int32(problem.heads),
      int32(problem.group()),
      int32(section),
      int32(problem.seq_q),
      int32(problem.seq_kv),
      int32(problem.stored_queries()),
      int32(problem.causal),
      left_side(problem),
      right_side(problem),
      scale_log2(problem)};
  return plan;
}

PlanResult plan_tma_views(const Problem& problem, const Instance& instance,
                          const DeviceDescription& device) {
  return with_views(problem, instance, problem.causal ? heads_in_l2(problem, device) : 1,
                    plan_tma_clusters(problem, instance, device));
}

PlanResult plan_tma_varlen(const Problem& problem, const Instance& instance,
                           std::span<const Instance> pairs, const DeviceDescription& device) {
  const std::int64_t key_bytes =
      2 * problem.head_dim * static_cast<std::int64_t>(size_of(problem.dtype));
  // Of as many query heads as share them, K and V of these keys fill half of the L2.
  const std::int64_t keys = device.l2_bytes / 2 / key_bytes * problem.group();
  const std::int64_t section = problem.causal ? std::min<std::int64_t>(keys, INT32_MAX) : 0;
  // Two thread blocks of a cluster wait for each other. That costs most in short sequences, and at
  // head_dim 64 the shared copies save too little to make up for it.
  constexpr std::int64_t kLong = 2048;
  const std::int64_t rows = problem.stored_queries() / (problem.packed() ? problem.batch : 1);
  const Instance* chosen = &instance;
  if (problem.head_dim == 128 && rows > kLong)
    chosen = &instance_for(pairs, problem.head_dim, instance.bf16);
  const bool pair = std::ranges::find(pairs, chosen->entry, &Instance::entry) != pairs.end();
  return with_views(problem, *chosen, section,
                    pair ? plan_pairs(problem, *chosen, chosen->tile.Br, device)
                         : plan_tma_dynamic(problem, *chosen, device));
}

PlanResult plan_decode_heads(const Problem& problem, const Instance& instance,
                             const DeviceDescription&) {
  return plan_rows(problem, instance, decode_arguments(problem));
}

PlanResult plan_decode_groups(const Problem& problem, const Instance& instance,
                              const DeviceDescription&) {
  if (problem.group() > instance.tile.warps) return refuse_group(problem, instance.tile.warps);
  Launch launch =
      launch_of(instance, {1, problem.kv_heads(), problem.batch}, decode_arguments(problem));
  launch.block = int32(problem.group() * 32);
  return LaunchPlan{{std::move(launch)}};
}

PlanResult plan_decode_counted(const Problem& problem, const Instance& instance,
                               const DeviceDescription& device) {
  if (problem.group() > instance.tile.Br) return refuse_group(problem, instance.tile.Br);
  LaunchPlan plan = plan_splits(problem, instance, splits_of(problem, instance, device));
  plan.launches.front().block = int32(warps_of(problem, instance.tile) * 32);
  return plan;
}

PlanResult plan_decode_early(const Problem& problem, const Instance& instance,
                             const DeviceDescription& device) {
  PlanResult plan = plan_decode_counted(problem, instance, device);
  if (auto* planned = std::get_if<LaunchPlan>(&plan)) planned->launches.front().early = true;
  return plan;
}

PlanResult plan_decode_ahead(const Problem& problem, const Instance& instance,
                             std::span<const Instance> smaller, const DeviceDescription& device) {
  if (problem.group() > instance.tile.Br) return refuse_group(problem, instance.tile.Br);
  const std::int64_t heads = problem.kv_heads() * problem.batch;
  if (heads <= device.sms) {
    LaunchPlan plan = plan_splits(problem, instance, fastest_splits(problem, instance, device));
    plan.launches.front().early = true;
    return plan;
  }
  // Heads of different lengths do not end together unless the long ones are split.
  constexpr std::int64_t kSplits = 16, kSplitKeys = 1024;
  const std::int64_t keys = problem.lengths.empty() ? 0 : seen_keys(problem, problem.seq_kv);
  const std::int64_t splits = std::clamp<std::int64_t>(keys / kSplitKeys, 1, kSplits);
  const Instance& small = instance_for(smaller, problem.head_dim, instance.bf16);
  LaunchPlan plan = plan_splits(problem, small, splits);
  // Where half of the room on the SMs stayed free, launches that began early took up to 1.4 times
  // as long as others, for a reason that is not known. So four fifths of it must be taken.
  const std::int64_t room = device.sms * blocks_per_sm(problem, small, device);
  plan.launches.front().early = 5 * heads * splits >= 4 * room;
  return plan;
}

PlanResult plan_decode_even(const Problem& problem, const Instance& instance,
                            const DeviceDescription& device) {
  if (problem.group() * problem.seq_q > instance.tile.Br)
    return refuse_group(problem, instance.tile.Br);
  if (!std::has_single_bit(static_cast<std::uint64_t>(std::max<std::int64_t>(1, problem.page))))
    return Unsupported{"a page of " + std::to_string(problem.page) + " keys is no power of two"};
  // Lengths may grow to seq_kv before a replay of the launch. The grid, a choice, is that of the
  // lengths now; scratch does not depend on them.
  const std::int64_t heads = problem.kv_heads() * problem.batch;
  if (const std::int64_t most = tiles_of(problem.seq_kv, instance) * heads; most > INT32_MAX) {
    return Unsupported{std::to_string(most) + " tiles of keys are above " +
                       std::to_string(INT32_MAX)};
  }
  std::int64_t tiles = 0;
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    tiles += tiles_of(seen_keys(problem, problem.length(b)), instance) * problem.kv_heads();
  }
  std::int64_t blocks = std::min(tiles, device.sms * blocks_per_sm(problem, instance, device));
  // Where heads are equally long, no share is of two of them.
  if (problem.lengths.empty() && heads < blocks) blocks -= blocks % heads;
  const DecodeOptions options{.parts = ScratchRef{0}, .counter = ScratchRef{1}};
  return LaunchPlan{{launch_of(instance, {blocks}, decode_arguments(problem, options))},
                    {{"parts of O", part_bytes(problem, 2 * instance.tile.Br, blocks)},
                     {"counters of parts", heads * 4, true}}};
}

PlanResult plan_backward(const Problem& problem, const Instance& instance,
                         std::span<const Instance> rows, std::span<const Instance> finish) {
  const Tile& tile = instance.tile;
  // Sequence b of a packed batch has the tiles from cu_seqlens[b] / size + b on, enough of them
  // whatever the lengths are.
  const auto tiles_for = [&](std::int64_t seq, std::int64_t stored, int size) {
    return problem.packed() ? stored / size + problem.batch : (seq + size - 1) / size;
  };
  const std::int64_t tiles = tiles_for(problem.seq_q, problem.stored_queries(), tile.Br);
  const std::int64_t blocks = tiles_for(problem.seq_kv, problem.stored_keys(), tile.Bc);
  const std::int64_t padded = tiles * tile.Br, heads = problem.heads;
  const std::int64_t batch = problem.stored_batch(), all = heads * batch * padded;
  std::vector<Argument> arguments{tile_map(Tensor::q, problem, problem.seq_q, tile.Br),
                                  tile_map(Tensor::d_o, problem, problem.seq_q, tile.Br),
                                  tile_map(Tensor::k, problem, problem.seq_kv, tile.Bc),
                                  tile_map(Tensor::v, problem, problem.seq_kv, tile.Bc),
                                  Tensor::o,
                                  Tensor::d_o,
                                  Tensor::lse,
                                  Tensor::d_q,
                                  Tensor::d_k,
                                  Tensor::d_v,
                                  ScratchRef{0},
                                  ScratchRef{1},
                                  int32(problem.group()),
                                  int32(problem.seq_q),
                                  int32(problem.seq_kv),
                                  int32(problem.causal),
                                  static_cast<float>(problem.scale()),
                                  scale_log2(problem),
                                  int32(problem.window_left),
                                  int32(problem.window_right),
                                  std::int64_t{0},
                                  Tensor::cu_seqlens_q,
                                  Tensor::cu_seqlens_k,
                                  int32(problem.batch),
                                  int32(problem.stored_queries()),
                                  int32(tiles * batch),
                                  int32(0)};
  for (const Tensor tensor : {Tensor::o, Tensor::d_o, Tensor::d_q, Tensor::d_k, Tensor::d_v}) {
    const Strides strides = strides_of(problem, static_cast<int>(tensor));
    arguments.insert(arguments.end(), {strides.batch, strides.head, strides.row});
  }
  return LaunchPlan{{launch_of(instance_for(rows, problem.head_dim, instance.bf16),
                               {padded / 64, heads, batch}, arguments),
                     launch_of(instance, {blocks, problem.kv_heads(), batch}, arguments),
                     launch_of(instance_for(finish, problem.head_dim, instance.bf16),
                               {padded * problem.head_dim / 4096, heads, batch}, arguments)},
                    {{"LSE and D", 2 * all * 4}, {"sums of dQ", all * problem.head_dim * 4}}};
}

namespace {

constexpr std::size_t kCounters = 20, kWave = 26;  // places among the arguments

// The grid of the main kernel, with up to `most` heads whose key blocks alternate.
void let_heads_alternate(LaunchPlan& plan, std::int64_t most) {
  Dim3& grid = plan.launches[1].grid;
  while (grid.y * grid.z % most != 0) --most;
  grid = {most, grid.x, grid.y * grid.z / most};
}

}  // namespace

PlanResult key_blocks_in_turn(PlanResult plan, const Problem& problem,
                              const DeviceDescription& device) {
  if (auto* made = std::get_if<LaunchPlan>(&plan)) {
    const Dim3& grid = made->launches[1].grid;
    const std::int64_t key_blocks = grid.x * grid.z / problem.batch;  // of a sequence, on average
    const std::int64_t one_each =
        std::max<std::int64_t>(4, (device.sms + key_blocks - 1) / key_blocks);
    let_heads_alternate(*made, problem.causal ? one_each : 1);
  }
  return plan;
}

PlanResult with_counters(PlanResult plan) {
  if (auto* made = std::get_if<LaunchPlan>(&plan)) {
    made->scratch.push_back({"counters of dQ", made->scratch[1].bytes / 4096, true});
    made->launches[1].arguments[kCounters] = made->launches[2].arguments[kCounters] = ScratchRef{2};
  }
  return plan;
}

PlanResult key_blocks_in_order(PlanResult plan, const Problem& problem,
                               const DeviceDescription& device) {
  if (auto* made = std::get_if<LaunchPlan>(&plan)) {
    const std::int64_t elements = made->scratch[1].bytes / 4;
    // Q and dO of the query heads that share four heads' keys, and their sums of dQ.
    const std::int64_t four = 4 * 8 * elements / (problem.kv_heads() * problem.batch);
    let_heads_alternate(*made, problem.causal || four <= device.l2_bytes / 2 ? 4 : 2);
  }
  return with_counters(std::move(plan));
}

PlanResult key_blocks_in_waves(PlanResult plan, const Problem& problem,
                               const DeviceDescription& device) {
  auto* made = std::get_if<LaunchPlan>(&plan);
  if (made == nullptr || !problem.causal || problem.group() == 1 || problem.window_left >= 0)
    return plan;
  Dim3& grid = made->launches[1].grid;
  grid = {grid.y, grid.x * grid.z};  // undoes let_heads_alternate
  let_heads_alternate(*made, 8);
  made->launches[1].arguments[kWave] = int32(device.sms);
  return plan;
}

PlanResult tiles_of_views(PlanResult plan, const Problem& problem, const Instance& instance) {
  if (auto* made = std::get_if<LaunchPlan>(&plan)) {
    for (Launch& launch : made->launches) {
      const std::array maps{view_map(Tensor::q, problem, instance.tile.Br),
                            view_map(Tensor::d_o, problem, instance.tile.Br),
                            view_map(Tensor::k, problem, instance.tile.Bc),
                            view_map(Tensor::v, problem, instance.tile.Bc)};
      std::copy(maps.begin(), maps.end(), launch.arguments.begin());
      launch.grid = {launch.grid.x * launch.grid.z, launch.grid.y};
    }
  }
  return plan;
}

namespace {

// The arguments of FA_FLOAT_BACKWARD_ENTRY.
std::vector<Argument> float_backward_arguments(const Problem& problem, Argument scratch) {
  const std::int64_t diagonal = problem.seq_kv - (problem.causal ? problem.seq_q : 0);
  return {Tensor::q,
          Tensor::k,
          Tensor::v,
          Tensor::o,
          Tensor::lse,
          Tensor::d_o,
          Tensor::d_q,
          Tensor::d_k,
          Tensor::d_v,
          scratch,
          int32(problem.seq_q),
          int32(problem.seq_kv),
          int32(problem.group()),
          static_cast<float>(problem.scale()),
          int32(diagonal)};
}

}  // namespace

PlanResult plan_float_steps(const Problem& problem, const Tile& tile,
                            std::initializer_list<Step> steps, Scratch scratch) {
  if (auto refused = refuse_partial_tiles(problem, tile)) return *refused;
  LaunchPlan plan;
  plan.scratch = {scratch};
  for (const Step& step : steps)
    plan.launches.push_back(launch_of(step.instance, {step.blocks, problem.heads, problem.batch},
                                      problem.backward
                                          ? float_backward_arguments(problem, ScratchRef{0})
                                          : float_arguments(problem, ScratchRef{0})));
  return plan;
}

}  // namespace fa
