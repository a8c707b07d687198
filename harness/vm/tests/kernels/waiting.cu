// SPDX-License-Identifier: MIT
// Correct kernels whose threads leave early, shuffle in parts of a warp, or wait for other blocks.

constexpr int kThreads = 128;

// Threads beyond the end leave before the barrier.
extern "C" __global__ void early_return(const int* in, int* out, int n) {
  __shared__ int values[kThreads];
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  values[threadIdx.x] = in[i];
  __syncthreads();
  out[i] = values[threadIdx.x ^ 1];
}

// The sum of the first lanes of each warp. The steps of the reduction read beyond them; only lane 0
// has, and uses, the whole sum.
extern "C" __global__ void partial_sums(const int* in, int* out, int lanes) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  if (lane >= lanes) return;
  int sum = in[blockIdx.x * blockDim.x + threadIdx.x];
  for (int step = 16; step > 0; step /= 2) {
    const int other = __shfl_down_sync(__activemask(), sum, static_cast<unsigned>(step));
    if (lane + step < lanes) sum += other;
  }
  if (lane == 0) out[(blockIdx.x * blockDim.x + threadIdx.x) / 32] = sum;
}

// Inclusive sums of `in` in one pass: a block publishes its own sum, then looks back until it finds
// a block that knows all before it. `state` is 0 at first, then 1 (sum) and 2 (sum of all up to
// here).
extern "C" __global__ void look_back_scan(const int* in, int* out, volatile int* state, int* sums,
                                          int* totals) {
  __shared__ int values[kThreads];
  __shared__ int before;
  const int thread = static_cast<int>(threadIdx.x), block = static_cast<int>(blockIdx.x);
  const int i = block * kThreads + thread;
  values[thread] = in[i];
  __syncthreads();
  for (int step = 1; step < kThreads; step *= 2) {
    const int other = thread >= step ? values[thread - step] : 0;
    __syncthreads();
    values[thread] += other;
    __syncthreads();
  }
  if (thread == 0) {
    const int own = values[kThreads - 1];
    sums[block] = own;
    __threadfence();
    state[block] = 1;
    int sum = 0;
    for (int other = block - 1; other >= 0; --other) {
      int known;
      do {
        known = state[other];
      } while (known == 0);
      __threadfence();
      sum += known == 2 ? totals[other] : sums[other];
      if (known == 2) break;
    }
    totals[block] = sum + own;
    __threadfence();
    state[block] = 2;
    before = sum;
  }
  __syncthreads();
  out[i] = before + values[thread];
}
