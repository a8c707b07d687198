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

}  // namespace

namespace fa::test {
extern const void* const kStrayWrite = reinterpret_cast<const void*>(stray_write);
extern const void* const kSpin = reinterpret_cast<const void*>(spin);
extern const void* const kShared = reinterpret_cast<const void*>(use_shared);
}  // namespace fa::test
