// Transposition through a tile of shared memory, with and without a padded row.
template <int Pad>
__device__ void transpose_tile(const float* in, float* out, int n) {
  __shared__ float tile[32][32 + Pad];
  const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32;
  for (int r = threadIdx.y; r < 32; r += 8) tile[r][threadIdx.x] = in[(y + r) * n + x];
  __syncthreads();
  for (int r = threadIdx.y; r < 32; r += 8) {
    out[(blockIdx.x * 32 + r) * n + y + threadIdx.x] = tile[threadIdx.x][r];
  }
}

extern "C" __global__ void transpose_plain(const float* in, float* out, int n) {
  transpose_tile<0>(in, out, n);
}
extern "C" __global__ void transpose_padded(const float* in, float* out, int n) {
  transpose_tile<1>(in, out, n);
}
