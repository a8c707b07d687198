// tcgen05: tensor memory, 128 lanes of 512 columns of 32 bits per SM, and the tensor cores that
// accumulate in it. One thread issues a product for the whole thread block. A warp w loads and
// stores lanes 32 (w mod 4) to 32 (w mod 4) + 31 alone. An address has the lane in its upper 16
// bits and the column in its lower 16 bits. PTX ISA: "TensorCore 5th Generation Family
// Instructions".
#pragma once

#include <cstdint>

/// One warp allocates so many columns, a power of two from 32 on; their address goes to shared
/// memory. Waits until another thread block frees them. PTX ISA: "tcgen05.alloc".
__device__ __forceinline__ void tensor_allocate(uint32_t shared, int columns) {
  asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(shared),
               "r"(columns)
               : "memory");
}

/// One warp frees what was allocated; no thread block may end without it. PTX ISA:
/// "tcgen05.dealloc".
__device__ __forceinline__ void tensor_free(uint32_t address, int columns) {
  asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(address), "r"(columns)
               : "memory");
}

/// The thread block allocates no more: others on the SM may. PTX ISA:
/// "tcgen05.relinquish_alloc_permit".
__device__ __forceinline__ void tensor_relinquish() {
  asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" ::: "memory");
}

/// Belongs between accesses to tensor memory and an arrival that another thread waits for. PTX ISA:
/// "tcgen05.fence".
__device__ __forceinline__ void tensor_fence_before() {
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
}

/// Belongs between a wait for another thread, or for a commit, and accesses to tensor memory.
__device__ __forceinline__ void tensor_fence_after() {
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}

/// The mbarrier gets an arrival when all products that this thread has issued are complete: they
/// have read their operands, and their sums are in tensor memory. PTX ISA: "tcgen05.commit".
__device__ __forceinline__ void tensor_commit(uint32_t barrier) {
  asm volatile(
      "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(barrier)
      : "memory");
}

/// Descriptor of a tile in shared memory as wgmma_descriptor makes it, with the version of
/// tcgen05. A row of a panel has 128 bytes, or 64 with the swizzle of 64 bytes. PTX ISA: "Shared
/// memory descriptor".
__device__ __forceinline__ uint64_t tensor_descriptor(uint32_t address, int panel_bytes,
                                                      int row_bytes = 128) {
  constexpr uint64_t kVersion = uint64_t{1} << 46;
  const uint64_t swizzle = uint64_t{row_bytes == 128 ? 2u : 4u} << 61;
  const uint64_t next_eight_rows = static_cast<uint64_t>(8 * row_bytes >> 4) << 32;
  return static_cast<uint64_t>((address & 0x3FFFF) >> 4) |
         static_cast<uint64_t>(panel_bytes >> 4) << 16 | next_eight_rows | kVersion | swizzle;
}

/// Instruction descriptor: an M x N x 16 product of halves that is summed in FP32. k runs along the
/// rows of A, and along those of B or, `transposed`, down its columns. PTX ISA: "Instruction
/// descriptor".
constexpr uint32_t tensor_shape(int M, int N, bool transposed) {
  constexpr uint32_t kSumsF32 = 1 << 4;
  return kSumsF32 | static_cast<uint32_t>(transposed) << 16 | static_cast<uint32_t>(N / 8) << 17 |
         static_cast<uint32_t>(M / 16) << 24;
}

/// Starts D (+)= A B: row i of D is lane i, column j of D a column of tensor memory. A and B are in
/// shared memory. PTX ISA: "tcgen05.mma".
__device__ __forceinline__ void tensor_multiply(uint32_t d, uint64_t a, uint64_t b, uint32_t shape,
                                                bool accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %4, 0;\n"
      "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p;\n}" ::"r"(d),
      "l"(a), "l"(b), "r"(shape), "r"(static_cast<int>(accumulate))
      : "memory");
}

/// The same with A in tensor memory: row i is lane i, two halves of the row are a column.
__device__ __forceinline__ void tensor_multiply(uint32_t d, uint32_t a, uint64_t b, uint32_t shape,
                                                bool accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %4, 0;\n"
      "tcgen05.mma.cta_group::1.kind::f16 [%0], [%1], %2, %3, p;\n}" ::"r"(d),
      "r"(a), "l"(b), "r"(shape), "r"(static_cast<int>(accumulate))
      : "memory");
}

#define FA_EIGHT(mode, x, i)                                                                  \
  mode(x[i]), mode(x[i + 1]), mode(x[i + 2]), mode(x[i + 3]), mode(x[i + 4]), mode(x[i + 5]), \
      mode(x[i + 6]), mode(x[i + 7])
#define FA_LIST_32(mode, x) \
  FA_EIGHT(mode, x, 0), FA_EIGHT(mode, x, 8), FA_EIGHT(mode, x, 16), FA_EIGHT(mode, x, 24)
#define FA_TEXT_32                                                         \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"

/// Starts the load of 32 columns: lane l of the warp gets those of lane l of its quarter of tensor
/// memory. The values may be used after tensor_wait_load. PTX ISA: "tcgen05.ld".
__device__ __forceinline__ void tensor_load(float* x, uint32_t address) {
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x32.b32 {" FA_TEXT_32 "}, [%32];"
               : FA_LIST_32("=f", x)
               : "r"(address)
               : "memory");
}

/// Starts the store of 32 columns; registers may be overwritten at once. PTX ISA: "tcgen05.st".
__device__ __forceinline__ void tensor_store(uint32_t address, const float* x) {
  asm volatile("tcgen05.st.sync.aligned.32x32b.x32.b32 [%32], {" FA_TEXT_32
               "};" ::FA_LIST_32("f", x),
               "r"(address)
               : "memory");
}
__device__ __forceinline__ void tensor_store(uint32_t address, const uint32_t* x) {
  asm volatile("tcgen05.st.sync.aligned.32x32b.x32.b32 [%32], {" FA_TEXT_32
               "};" ::FA_LIST_32("r", x),
               "r"(address)
               : "memory");
}
#undef FA_TEXT_32
#undef FA_LIST_32
#undef FA_EIGHT

/// Waits for all loads of this thread. No use of the values `x` moves above the wait, since the
/// compiler does not know that the load is asynchronous. PTX ISA: "tcgen05.wait".
template <int N>
__device__ __forceinline__ void tensor_wait_load(float (&x)[N]) {
  asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
#pragma unroll
  for (int i = 0; i < N; ++i) asm volatile("" : "+f"(x[i])::"memory");
}

/// Waits for all stores of this thread.
__device__ __forceinline__ void tensor_wait_store() {
  asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
}
