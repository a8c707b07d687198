// SPDX-License-Identifier: MIT
// Every function of CUDA's runtime by its name. It gives way to a definition elsewhere; where there
// is none, a call says which function is missing.
extern "C" int ptxvm_missing(const char* name);

#define MISSING(name)                           \
  extern "C" __attribute__((weak)) int name() { \
    return ptxvm_missing(#name);                \
  }
#include "cuda_missing.inc"

#ifdef __x86_64__
#define JUMP "jmp "
#define PLT "@PLT"
#else
#define JUMP "b "
#define PLT ""
#endif
// Whose stream is the default makes no difference where nothing waits.
#define SAME(name, as)                                                                    \
  asm(".globl " #as "\n.type " #as ", %function\n" #as ": " JUMP #name PLT "\n.size " #as \
      ", .-" #as "\n");
#include "cuda_same.inc"
SAME(__cudaLaunchKernel, __cudaLaunchKernel_ptsz)
