// What the kernel files share: parameters of a family, entry points, instances. Below its device
// code a kernel file lists its instances and writes its row of the catalogue, with its planner, one
// of those here or its own (planners.h):
//
//   #define INSTANCES(X) X(fa_06_batched_d128, Attention<128, 64, 4, 128>) ...
//   INSTANCES(FA_HALF_ENTRY)
//   static const fa::Instance kInstances[] = {INSTANCES(FA_INSTANCE)};
//   FA_RUNG(06_batched, "05", sm_80, f16, none, "its idea", kInstances, fa::plan_half_tiles);
//
// The class that an instance names has kTile, kHeadDim, kThreads, kBlocksPerSm (0: ptxas chooses
// the registers) and kSharedBytes, and a static member function run() with the family's parameters.
#pragma once

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <type_traits>

#include "kernels/types.h"

namespace fa {

/// What the kernels from 20 to 35, and from 80 on, are given.
struct TmaParameters {
  const CUtensorMap &Q, &K, &V;  ///< boxes of 64 columns, all panels of a tile in one copy
  const CUtensorMap& O_rows;     ///< O in such boxes of 16 rows (33 and up)
  half* O;                       ///< [batch, heads, seq_q, head_dim]
  float* LSE;                    ///< [batch, heads, seq_q], or null
  const half* keys;              ///< K once more, for loads of single elements (28 and up)
  unsigned* counter;             ///< zeros before and after the launch; null but in 32 to 35
  int heads;                     ///< batch x heads
  int group;                     ///< of them those that share a head of K and V (31 and up)
  int section;                   ///< heads whose tiles are handed out together (32 and up)
  int seq_q, seq_kv;
  int causal;        ///< 0 or 1, bottom-right aligned (30 and up)
  float scale_log2;  ///< softmax scale times log2(e)
};

/// What the kernels from 36 to 39 are given: views of a model's tensors.
struct ModelParameters {
  const CUtensorMap &Q, &K, &V, &O_rows;  ///< as TmaParameters; a fifth dimension is the batch
  float* LSE;                             ///< [batch, heads, seq_q], or null
  const void* keys;                       ///< K once more, for loads of single elements
  unsigned* counter;                      ///< zeros before and after the launch
  const float* sinks;                     ///< [heads], or null (38 and up)
  const int* cu_seqlens_q;                ///< [batch + 1]: first rows of the sequences of a packed
                                          ///< batch, then the number of rows; or null (39)
  const int* cu_seqlens_k;                ///< the same of K and V
  int64_t key_strides[3];                 ///< of batch, head and key in K, in elements
  int batch, heads;                       ///< heads of Q in a batch entry
  int group;                              ///< of them those that share a head of K and V
  int section;        ///< heads whose tiles are handed out together; in 39 keys of such heads
  int seq_q, seq_kv;  ///< of a packed batch no sequence has more
  int total_q;        ///< rows of a head in a packed batch (39)
  int causal;         ///< 0 or 1, bottom-right aligned
  int left, right;    ///< keys before and after a query's own that it sees (37 and up)
  float scale_log2;   ///< softmax scale times log2(e)
};

/// Parameters of the kernels from 40 to 53: new queries against a cache.
struct DecodeParameters {
  const half *Q, *K, *V;  ///< half or the kernel's own element type
  half* O;                ///< [batch, heads, seq_q, head_dim]
  float* LSE;             ///< [batch, heads, seq_q], or null
  const int* lengths;     ///< number of keys per batch entry; null: seq_kv
  const int* page_table;  ///< [batch, pages of seq_kv keys]; null before 47
  const float* scales;    ///< of K, then of V: [2, batch, heads of K and V]; null except in 51
  const float* sinks;     ///< [query heads], or null (45 to 50, 52, 53)
  float* partials;        ///< partial O and log-sum-exp of each split (42 and up)
  unsigned* counter;      ///< zeros before and after the launch (42 and up)
  int batch;
  int rows;        ///< rows of Q per batch entry: query heads x seq_q (seq_q is 1 before 48)
  int group_rows;  ///< of these, consecutive rows that share a head of K and V
  int seq_q, seq_kv;
  int left, right;   ///< keys before and after a query's own that it sees (45 to 50, 52, 53)
  int page;          ///< keys per page (47 and up); seq_kv without pages
  int page_bits;     ///< log2(page); 31 without pages
  int splits;        ///< splits of the keys of a head (42 to 45, 52, 53)
  float scale_log2;  ///< softmax scale times log2(e)
  /// Of batch, head and row, in elements; of paged K and V, of page, head and key (45 to 50, 52,
  /// 53).
  int64_t Q_strides[3], K_strides[3], V_strides[3], O_strides[3];
};

/// What the kernels of a backward pass in FP32 are given.
struct FloatBackwardParameters {
  const float *Q, *K, *V, *O, *LSE, *dO;
  float *dQ, *dK, *dV;
  float* scratch;
  int seq_q, seq_kv;
  int group;  ///< query heads that share a head of K and V
  float scale;
  int diagonal;  ///< the last key that query 0 sees; without a mask, one past the end
};

/// What the kernels of a backward pass from 61 on are given. Padded rows of queries fill whole
/// tiles.
struct BackwardParameters {
  const CUtensorMap &Q, &dO, &K, &V;  ///< boxes of 64 columns, all panels of a tile in one copy
  const void *O, *dO_rows;            ///< [batch, heads, seq_q, head_dim]
  const float* LSE;                   ///< [batch, heads, seq_q], natural log
  void *dQ, *dK, *dV;
  float* terms;  ///< LSE in base 2, then delta = rowsum(dO O): 2 x [batch, heads, padded rows],
                 ///< from 71 on [heads, batch, padded rows]
  float* sums;   ///< of dQ, likewise: [batch, heads, padded rows, head_dim]
  int group;     ///< query heads that share a head of K and V
  int seq_q, seq_kv;
  int causal;  ///< 0 or 1, bottom-right aligned
  float scale, scale_log2;
  int left, right;     ///< keys before and after its own that a query sees, -1: all (67 and up)
  unsigned* counters;  ///< of each half of a tile of dQ, how many thread blocks have added to it
                       ///< (73: have stored); zeros before and after the pass (70 to 73)
  const int* cu_seqlens_q;  ///< as in ModelParameters (71 and up, and all below)
  const int* cu_seqlens_k;
  int batch;
  int rows;   ///< of a head in a batch entry of Q; in a packed batch of all sequences
  int tiles;  ///< of queries of a head that terms and sums have
  int wave;   ///< thread blocks of a wave, 0: none; in every second one tiles go up (72 and up)
  /// Of batch, head and row, in elements.
  int64_t O_strides[3], dO_strides[3], dQ_strides[3], dK_strides[3], dV_strides[3];
};

/// An instance of the kernel class `Kernel` under this entry point.
template <class Kernel>
Instance instance_of(const char* entry, const void* kernel) {
  const bool bf16 = requires {
    requires std::is_same_v<typename Kernel::Element, __nv_bfloat16>;
  };
  return {entry, kernel, Kernel::kHeadDim, Kernel::kTile, Kernel::kSharedBytes, bf16};
}

/// Planners of rungs with one launch and a block for each row tile: whole tiles only, any length.
PlanResult plan_float_tiles(const Problem&, const Instance&, const DeviceDescription&);
PlanResult plan_half_tiles(const Problem&, const Instance&, const DeviceDescription&);
PlanResult plan_half_rows(const Problem&, const Instance&, const DeviceDescription&);

/// The same with FA_TMA_ENTRY, and with a thread block an SM instead: whole tiles only, any length,
/// and any length with a counter that hands out the tiles.
PlanResult plan_tma_tiles(const Problem&, const Instance&, const DeviceDescription&);
PlanResult plan_tma_persistent(const Problem&, const Instance&, const DeviceDescription&);
PlanResult plan_tma_persistent_rows(const Problem&, const Instance&, const DeviceDescription&);
PlanResult plan_tma_dynamic(const Problem&, const Instance&, const DeviceDescription&);

/// As plan_tma_tiles with all rows of a tile in the box of Q, as one tcgen05.mma needs them.
PlanResult plan_tma_whole_queries(const Problem&, const Instance&, const DeviceDescription&);

/// The same for clusters of two blocks, each of which loads half of the keys of K and half of the
/// columns of V. The grid has whole clusters: the last block may have no queries.
PlanResult plan_tma_pairs(const Problem&, const Instance&, const DeviceDescription&);

/// As plan_tma_dynamic with clusters of two thread blocks, for two neighbouring tiles each.
PlanResult plan_tma_clusters(const Problem&, const Instance&, const DeviceDescription&);

/// As plan_tma_clusters, with FA_MODEL_ENTRY.
PlanResult plan_tma_views(const Problem&, const Instance&, const DeviceDescription&);
/// The same also for packed batches. Thread blocks are alone, except for `pairs`, which have two in
/// a cluster and take the place of other instances where sequences are long at head_dim 128.
PlanResult plan_tma_varlen(const Problem&, const Instance&, std::span<const Instance> pairs,
                           const DeviceDescription&);

/// Planners of FA_DECODE_ENTRY: a warp for each query head; a thread block for each head of K and
/// V, with a warp for each query head of the group.
PlanResult plan_decode_heads(const Problem&, const Instance&, const DeviceDescription&);
PlanResult plan_decode_groups(const Problem&, const Instance&, const DeviceDescription&);

/// The keys of a head of K and V split over as many thread blocks as fill the SMs. Each leaves a
/// part of each query head and counts itself, and the last one merges.
PlanResult plan_decode_counted(const Problem&, const Instance&, const DeviceDescription&);

/// As plan_decode_counted, in a launch that begins early (Launch::early).
PlanResult plan_decode_early(const Problem&, const Instance&, const DeviceDescription&);

/// As many thread blocks as run at the same time, each with an even share of the tiles of all
/// heads: two places for parts, of the heads that its share begins and ends in.
PlanResult plan_decode_even(const Problem&, const Instance&, const DeviceDescription&);

/// Planner of FA_BACKWARD_KERNELS: the instance between a launch that prepares rows of queries,
/// 64 a thread block, and one that finishes dQ, a thread block for each 4096 elements.
PlanResult plan_backward(const Problem&, const Instance&, std::span<const Instance> rows,
                         std::span<const Instance> finish);

/// The same plan with another grid for the main kernel: heads whose key blocks alternate, key
/// blocks, groups of such heads. Under the mask enough heads alternate for a key block for each SM,
/// and at least four, rounded down to a divisor of all heads; without it none do.
PlanResult key_blocks_in_turn(PlanResult plan, const Problem&, const DeviceDescription&);

/// The same plan with a counter for each 64 x 64 part of dQ.
PlanResult with_counters(PlanResult plan);

/// The same plan with counters by which thread blocks add to dQ in the order of their keys. Up
/// to four heads alternate, or two without the mask if four would fill more than half of the L2.
PlanResult key_blocks_in_order(PlanResult plan, const Problem&, const DeviceDescription&);

/// The same plan with waves of a thread block for each SM where query heads share
/// keys under the mask, without a window: there up to eight heads of K and V alternate.
PlanResult key_blocks_in_waves(PlanResult plan, const Problem&, const DeviceDescription&);

/// A plan of plan_backward for views and packed batches: with maps that have a dimension for the
/// batch or for the ends of sequences, and the tiles of all batch entries in one row of the grid.
PlanResult tiles_of_views(PlanResult plan, const Problem&, const Instance&);

/// Base of a kernel class without dynamic shared memory and without a target for the occupancy.
template <int Br, int Bc, int Warps, int D>
struct StaticKernel {
  static constexpr Tile kTile{Br, Bc, Warps};
  static constexpr int kHeadDim = D, kThreads = Warps * 32, kBlocksPerSm = 0;
  static constexpr std::size_t kSharedBytes = 0;
};

}  // namespace fa

// --- entry points: extern "C", so that PTX, profilers and messages name the rung -----------------

#define FA_FLOAT_ENTRY(name, ...)                                                                \
  extern "C" __global__ void __launch_bounds__(__VA_ARGS__::kThreads, __VA_ARGS__::kBlocksPerSm) \
      name(const float* Q, const float* K, const float* V, float* O, float* scratch, int seq_q,  \
           int seq_kv, float scale, int diagonal) {                                              \
    __VA_ARGS__::run(Q, K, V, O, scratch, seq_q, seq_kv, scale, diagonal);                       \
  }

#define FA_HALF_ENTRY(name, ...)                                                                 \
  extern "C" __global__ void __launch_bounds__(__VA_ARGS__::kThreads, __VA_ARGS__::kBlocksPerSm) \
      name(const half* Q, const half* K, const half* V, half* O, float* LSE, int seq_q,          \
           int seq_kv, int causal, int group, float scale_log2) {                                \
    __VA_ARGS__::run(Q, K, V, O, LSE, seq_q, seq_kv, causal, group, scale_log2);                 \
  }

#define FA_TMA_ENTRY(name, ...)                                                                  \
  extern "C" __global__ void __launch_bounds__(__VA_ARGS__::kThreads, __VA_ARGS__::kBlocksPerSm) \
      name(const __grid_constant__ CUtensorMap Q, const __grid_constant__ CUtensorMap K,         \
           const __grid_constant__ CUtensorMap V, const __grid_constant__ CUtensorMap O_rows,    \
           half* O, float* LSE, const half* keys, unsigned* counter, int heads, int group,       \
           int section, int seq_q, int seq_kv, int causal, float scale_log2) {                   \
    __VA_ARGS__::run(fa::TmaParameters{Q, K, V, O_rows, O, LSE, keys, counter, heads, group,     \
                                       section, seq_q, seq_kv, causal, scale_log2});             \
  }

#define FA_MODEL_ENTRY(name, ...)                                                                 \
  extern "C" __global__ void __launch_bounds__(__VA_ARGS__::kThreads, __VA_ARGS__::kBlocksPerSm)  \
      name(const __grid_constant__ CUtensorMap Q, const __grid_constant__ CUtensorMap K,          \
           const __grid_constant__ CUtensorMap V, const __grid_constant__ CUtensorMap O_rows,     \
           float* LSE, const void* keys, unsigned* counter, const float* sinks,                   \
           const int* cu_seqlens_q, const int* cu_seqlens_k, int64_t batch_stride,                \
           int64_t head_stride, int64_t key_stride, int batch, int heads, int group, int section, \
           int seq_q, int seq_kv, int total_q, int causal, int left, int right,                   \
           float scale_log2) {                                                                    \
    __VA_ARGS__::run(fa::ModelParameters{Q,                                                       \
                                         K,                                                       \
                                         V,                                                       \
                                         O_rows,                                                  \
                                         LSE,                                                     \
                                         keys,                                                    \
                                         counter,                                                 \
                                         sinks,                                                   \
                                         cu_seqlens_q,                                            \
                                         cu_seqlens_k,                                            \
                                         {batch_stride, head_stride, key_stride},                 \
                                         batch,                                                   \
                                         heads,                                                   \
                                         group,                                                   \
                                         section,                                                 \
                                         seq_q,                                                   \
                                         seq_kv,                                                  \
                                         total_q,                                                 \
                                         causal,                                                  \
                                         left,                                                    \
                                         right,                                                   \
                                         scale_log2});                                            \
  }

#define FA_FLOAT_BACKWARD_ENTRY(name, ...)                                                        \
  extern "C" __global__ void __launch_bounds__(__VA_ARGS__::kThreads, __VA_ARGS__::kBlocksPerSm)  \
      name(const float* Q, const float* K, const float* V, const float* O, const float* LSE,      \
           const float* dO, float* dQ, float* dK, float* dV, float* scratch, int seq_q,           \
           int seq_kv, int group, float scale, int diagonal) {                                    \
    __VA_ARGS__::run(fa::FloatBackwardParameters{Q, K, V, O, LSE, dO, dQ, dK, dV, scratch, seq_q, \
                                                 seq_kv, group, scale, diagonal});                \
  }

#define FA_BACKWARD_ENTRY(name, ...)                                                             \
  extern "C" __global__ void __launch_bounds__(__VA_ARGS__::kThreads, __VA_ARGS__::kBlocksPerSm) \
      name(const __grid_constant__ CUtensorMap Q, const __grid_constant__ CUtensorMap dO,        \
           const __grid_constant__ CUtensorMap K, const __grid_constant__ CUtensorMap V,         \
           const void* O, const void* dO_rows, const float* LSE, void* dQ, void* dK, void* dV,   \
           float* terms, float* sums, int group, int seq_q, int seq_kv, int causal, float scale, \
           float scale_log2, int left, int right, unsigned* counters, const int* cu_seqlens_q,   \
           const int* cu_seqlens_k, int batch, int rows, int tiles, int wave, int64_t o_batch,   \
           int64_t o_head, int64_t o_row, int64_t do_batch, int64_t do_head, int64_t do_row,     \
           int64_t dq_batch, int64_t dq_head, int64_t dq_row, int64_t dk_batch, int64_t dk_head, \
           int64_t dk_row, int64_t dv_batch, int64_t dv_head, int64_t dv_row) {                  \
    __VA_ARGS__::run(fa::BackwardParameters{Q,                                                   \
                                            dO,                                                  \
                                            K,                                                   \
                                            V,                                                   \
                                            O,                                                   \
                                            dO_rows,                                             \
                                            LSE,                                                 \
                                            dQ,                                                  \
                                            dK,                                                  \
                                            dV,                                                  \
                                            terms,                                               \
                                            sums,                                                \
                                            group,                                               \
                                            seq_q,                                               \
                                            seq_kv,                                              \
                                            causal,                                              \
                                            scale,                                               \
                                            scale_log2,                                          \
                                            left,                                                \
                                            right,                                               \
                                            counters,                                            \
                                            cu_seqlens_q,                                        \
                                            cu_seqlens_k,                                        \
                                            batch,                                               \
                                            rows,                                                \
                                            tiles,                                               \
                                            wave,                                                \
                                            {o_batch, o_head, o_row},                            \
                                            {do_batch, do_head, do_row},                         \
                                            {dq_batch, dq_head, dq_row},                         \
                                            {dk_batch, dk_head, dk_row},                         \
                                            {dv_batch, dv_head, dv_row}});                       \
  }

/// Entries and instances of the three kernels of a backward pass, and their planner, `plan`.
#define FA_BACKWARD_TYPES(X, name, Class)        \
  X(name##_d128, Class<half, 128>)               \
  X(name##_d64, Class<half, 64>)                 \
  X(name##_bf16_d128, Class<__nv_bfloat16, 128>) \
  X(name##_bf16_d64, Class<__nv_bfloat16, 64>)
#define FA_BACKWARD_KERNELS(name, Main, Rows, Finish)                                             \
  FA_BACKWARD_TYPES(FA_BACKWARD_ENTRY, name, Main)                                                \
  FA_BACKWARD_TYPES(FA_BACKWARD_ENTRY, name##_rows, Rows)                                         \
  FA_BACKWARD_TYPES(FA_BACKWARD_ENTRY, name##_finish, Finish)                                     \
  static const fa::Instance kInstances[] = {FA_BACKWARD_TYPES(FA_INSTANCE, name, Main)};          \
  static fa::PlanResult plan(const fa::Problem& problem, const fa::Instance& instance,            \
                             const fa::DeviceDescription&) {                                      \
    static const fa::Instance rows[] = {FA_BACKWARD_TYPES(FA_INSTANCE, name##_rows, Rows)};       \
    static const fa::Instance finish[] = {FA_BACKWARD_TYPES(FA_INSTANCE, name##_finish, Finish)}; \
    return fa::plan_backward(problem, instance, rows, finish);                                    \
  }

#define FA_DECODE_ENTRY(name, ...)                                                                 \
  extern "C" __global__ void __launch_bounds__(__VA_ARGS__::kThreads, __VA_ARGS__::kBlocksPerSm)   \
      name(const half* Q, const half* K, const half* V, half* O, float* LSE, const int* lengths,   \
           const int* page_table, const float* scales, const float* sinks, float* partials,        \
           unsigned* counter, int batch, int rows, int group_rows, int seq_q, int seq_kv,          \
           int left, int right, int page, int page_bits, int splits, float scale_log2,             \
           int64_t q_batch, int64_t q_head, int64_t q_row, int64_t k_batch, int64_t k_head,        \
           int64_t k_row, int64_t v_batch, int64_t v_head, int64_t v_row, int64_t o_batch,         \
           int64_t o_head, int64_t o_row) {                                                        \
    __VA_ARGS__::run(fa::DecodeParameters{                                                         \
        Q,        K,         V,      O,          LSE,        lengths, page_table, scales,  sinks,  \
        partials, counter,   batch,  rows,       group_rows, seq_q,   seq_kv,     left,    right,  \
        page,     page_bits, splits, scale_log2, q_batch,    q_head,  q_row,      k_batch, k_head, \
        k_row,    v_batch,   v_head, v_row,      o_batch,    o_head,  o_row});                     \
  }

// --- the rung ------------------------------------------------------------------------------------

#define FA_INSTANCE(name, ...) \
  fa::instance_of<__VA_ARGS__>(#name, reinterpret_cast<const void*>(name)),

/// The row of a kernel file in the catalogue (fa::Rung): its name, which is that of the file (id,
/// '_', word); the id of its parent; target and dtype; capabilities, a set such as `causal | lse`;
/// its idea in a sentence; the rung's own instance of a head_dim before its ablations; a planner.
/// Then further fields, where it has any, as `.tuned = kTuned`. A file that ladder.def does not
/// list is the reader's own.
#define FA_RUNG(rung, its_parent, its_target, its_dtype, its_capabilities, its_idea, \
                its_instances, planner, ...)                                         \
  static_assert(std::string_view(#rung).find('_') != std::string_view::npos,         \
                "a rung's name is its id, '_' and a word: my_first");                \
  namespace fa {                                                                     \
  extern const Rung rung_##rung;                                                     \
  const Rung rung_##rung = [] {                                                      \
    using enum Capabilities;                                                         \
    constexpr std::string_view kName = #rung;                                        \
    return Rung{.id = kName.substr(0, kName.find('_')),                              \
                .name = kName,                                                       \
                .parent = its_parent,                                                \
                .target = Target::its_target,                                        \
                .dtype = Dtype::its_dtype,                                           \
                .capabilities = its_capabilities,                                    \
                .idea = its_idea,                                                    \
                .instances = its_instances,                                          \
                .plan = planner __VA_OPT__(, ) __VA_ARGS__};                         \
  }();                                                                               \
  static const Registration registration_##rung(rung_##rung);                        \
  }                                                                                  \
  static_assert(true)
