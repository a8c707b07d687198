// SPDX-License-Identifier: MIT
#include <cuda_fp16.h>

#include <cstdint>

namespace {

__global__ void stray_write(half* O, std::int64_t offset) {
  if (threadIdx.x == 0) O[offset] = __float2half(1.f);
}

__global__ void spin(std::int64_t nanoseconds) {
  std::uint64_t start, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (static_cast<std::int64_t>(now - start) < nanoseconds);
}

__global__ void use_shared(half* O, std::int32_t bytes) {
  extern __shared__ char memory[];
  for (std::int32_t i = static_cast<std::int32_t>(threadIdx.x); i < bytes; i += 32) memory[i] = 1;
  __syncwarp();
  if (threadIdx.x != 0) return;
  int sum = 0;
  for (std::int32_t i = 0; i < bytes; i += 1024) sum += memory[i];
  O[0] = __float2half(static_cast<float>(sum));
}

// Writes what the counter holds to O[0], then `left` to the counter.
__global__ void use_counter(half* O, unsigned* counter, std::int32_t left) {
  if (threadIdx.x != 0) return;
  O[0] = __float2half(static_cast<float>(*counter));
  *counter = static_cast<unsigned>(left);
}

// Adds the words in which two buffers differ to *differences.
__global__ void compare(const unsigned* a, const unsigned* b, std::int64_t words,
                        unsigned long long* differences) {
  unsigned long long found = 0;
  for (std::int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < words;
       i += static_cast<std::int64_t>(gridDim.x) * blockDim.x)
    found += a[i] != b[i];
  if (found > 0) atomicAdd(differences, found);
}

}  // namespace

namespace fa::test {
extern const void* const kStrayWrite = reinterpret_cast<const void*>(stray_write);
extern const void* const kSpin = reinterpret_cast<const void*>(spin);
extern const void* const kShared = reinterpret_cast<const void*>(use_shared);
extern const void* const kCounter = reinterpret_cast<const void*>(use_counter);
extern const void* const kCompare = reinterpret_cast<const void*>(compare);
}  // namespace fa::test
