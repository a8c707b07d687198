// Control flow that splits warps in many ways; every lane's result is known.
__device__ int collatz(unsigned n) {
  int steps = 0;
  while (n != 1) {
    if (n % 2 == 0) {
      n /= 2;
    } else {
      n = 3 * n + 1;
    }
    ++steps;
  }
  return steps;
}

extern "C" __global__ void divergence(int* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int value = 0;
  for (int a = 0; a < i % 7 + 1; ++a) {
    if (a == 3 && i % 2 == 1) continue;
    for (int b = 0; b < 10; ++b) {
      if (b * a > i % 13) goto leave;
      if ((b + i) % 5 == 4) break;
      value += a * 10 + b;
    }
    value ^= a;
  }
leave:
  switch (i % 10) {
    case 0:
      value += 1;
      break;
    case 1:
      value *= 3;  // falls through
    case 2:
      value -= 7;
      break;
    case 3:
      value = value / 3;
      break;
    case 5:
      value ^= 0x55;
      break;
    case 7:
      value = -value;
      break;
    default:
      value += collatz(static_cast<unsigned>(i) + 1);
  }
  out[i] = value;
}
