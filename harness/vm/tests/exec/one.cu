// SPDX-License-Identifier: MIT
// One launch; the program ends with its error. What PTX the program has is up to its compilation.
#ifdef LINKED
extern __device__ int answer();  // in other.cu
#else
__device__ int answer() {
  return 42;
}
#endif

__global__ void ask(int* out) {
  *out = answer();
}

int main() {
  int *out, got = 0;
  cudaMalloc(&out, sizeof *out);
  ask<<<1, 1>>>(out);
  const cudaError_t error = cudaGetLastError();
  cudaMemcpy(&got, out, sizeof got, cudaMemcpyDeviceToHost);
  return error != cudaSuccess ? error : got == 42 ? 0 : 3;
}
