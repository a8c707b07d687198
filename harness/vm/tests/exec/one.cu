// SPDX-License-Identifier: MIT
// One launch; the program ends with its error. What PTX the program has is up to its compilation.
__global__ void nothing() {}

int main() {
  nothing<<<1, 32>>>();
  return cudaGetLastError();
}
