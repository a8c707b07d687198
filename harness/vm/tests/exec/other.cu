// SPDX-License-Identifier: MIT
// The other half of one.cu, which the linker of the device brings together.
__device__ int answer() {
  return 42;
}
