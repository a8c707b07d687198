// C = A B, one thread an element: no tile, no reuse.
extern "C" __global__ void matmul_naive(const float* A, const float* B, float* C, int m, int n,
                                        int k) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= m || column >= n) return;
  float sum = 0.0f;
#pragma unroll 1
  for (int i = 0; i < k; ++i) sum += A[row * k + i] * B[i * n + column];
  C[row * n + column] = sum;
}
