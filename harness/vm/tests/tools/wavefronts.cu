// SPDX-License-Identifier: MIT
// Patterns of shared-memory accesses, a launch of one warp and one access each, in the order in
// which they are printed: for record_wavefronts.py, which runs this under ncu.
#include <cstdint>
#include <cstdio>
#include <random>

namespace {

struct Pattern {
  uint32_t mask;  // lanes that take part
  uint32_t at[32];
};

template <int Bytes, bool Store>
__global__ void access(Pattern p, uint32_t* out) {
  extern __shared__ __align__(16) unsigned char shared[];
  const uint32_t address =
      static_cast<uint32_t>(__cvta_generic_to_shared(shared)) + p.at[threadIdx.x];
  uint32_t x[4] = {threadIdx.x, 1, 2, 3};
  if ((p.mask >> threadIdx.x & 1) != 0) {
    if constexpr (Store && Bytes == 4)
      asm volatile("st.shared.u32 [%0], %1;" ::"r"(address), "r"(x[0]));
    else if constexpr (Store && Bytes == 8)
      asm volatile("st.shared.v2.u32 [%0], {%1, %2};" ::"r"(address), "r"(x[0]), "r"(x[1]));
    else if constexpr (Store)
      asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(x[0]), "r"(x[1]),
                   "r"(x[2]), "r"(x[3]));
    else if constexpr (Bytes == 4)
      asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x[0]) : "r"(address));
    else if constexpr (Bytes == 8)
      asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(x[0]), "=r"(x[1]) : "r"(address));
    else
      asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                   : "r"(address));
  }
  out[threadIdx.x] = x[0] + x[1] + x[2] + x[3];
}

uint32_t* out = nullptr;

template <int Bytes, bool Store>
void run(Pattern p) {
  std::printf("{\"op\": \"%s\", \"bytes\": %d, \"mask\": %u, \"addresses\": [", Store ? "st" : "ld",
              Bytes, p.mask);
  for (int lane = 0; lane < 32; ++lane) {
    p.at[lane] *= Bytes;
    std::printf("%s%u", lane == 0 ? "" : ", ", p.at[lane]);
  }
  std::printf("]}\n");
  access<Bytes, Store><<<1, 32, 32768>>>(p, out);
}

// All widths, loads and stores, of a pattern of elements.
template <class ElementOf>
void run_all(uint32_t mask, const ElementOf& element_of) {
  Pattern p{mask, {}};
  for (uint32_t lane = 0; lane < 32; ++lane) p.at[lane] = element_of(lane);
  run<4, false>(p);
  run<8, false>(p);
  run<16, false>(p);
  run<4, true>(p);
  run<8, true>(p);
  run<16, true>(p);
}

}  // namespace

int main() {
  if (cudaMalloc(&out, 32 * sizeof(uint32_t)) != cudaSuccess) return 1;
  std::mt19937 random(1);
  const uint32_t all = 0xffffffff;
  for (const uint32_t divisor : {1, 2, 4, 8, 16, 32}) {
    for (const uint32_t factor : {1, 8, 32}) {
      run_all(all, [&](uint32_t lane) { return lane / divisor * factor; });
      run_all(all, [&](uint32_t lane) { return lane % divisor * factor; });
    }
  }
  run_all(all, [](uint32_t lane) { return lane ^ 1; });
  run_all(all, [](uint32_t lane) { return lane == 31 ? 1 : 0; });
  run_all(all, [](uint32_t lane) { return lane == 31 ? 32 : 0; });
  for (const uint32_t range : {2, 8, 32, 128, 512})
    for (int i = 0; i < 2; ++i) run_all(all, [&](uint32_t) { return random() % range; });
  // With lanes that do not take part.
  for (const uint32_t mask : {0x1u, 0xffu, 0xff00u, 0xffffu, 0x55555555u, 0x33333333u, 0x0f0f0f0fu,
                              0x7fffffffu, 0xfffffffeu, 0x80000001u, 0x01010101u}) {
    run_all(mask, [](uint32_t) { return 0; });
    run_all(mask, [](uint32_t lane) { return lane; });
    run_all(mask, [](uint32_t lane) { return lane / 2 * 32; });
    run_all(mask, [](uint32_t lane) { return lane % 2 * 32; });
  }
  for (int i = 0; i < 6; ++i) {
    const auto mask = static_cast<uint32_t>(random());
    run_all(mask, [](uint32_t lane) { return lane / 2; });
    run_all(mask, [&](uint32_t) { return random() % 64; });
  }
  return cudaDeviceSynchronize() == cudaSuccess ? 0 : 1;
}
