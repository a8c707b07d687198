// The tiles that `fa tune` sweeps a rung over. They are compiled only with -DFA_TUNE=ON: the ladder
// needs none of them. A kernel file with a class Attention<Br, Bc, warps, head_dim> takes part by
// naming the list twice, for FA_HALF_ENTRY and for FA_INSTANCE.
#pragma once

#include <vector>

#ifdef FA_TUNE

// Br and warps: a warp has one row tile in 32w2, 64w4 and 128w8, two in 64w2, 128w4 and 256w8, and
// four in the others.
// clang-format off
#define FA_TUNE_TILES(X, name) FA_TUNE_ROWS(X, name, 64) FA_TUNE_ROWS(X, name, 128)
#define FA_TUNE_ROWS(X, name, D) \
  FA_TUNE_KEYS(X, name,  32, 2, D) \
  FA_TUNE_KEYS(X, name,  64, 2, D) FA_TUNE_KEYS(X, name,  64, 4, D) \
  FA_TUNE_KEYS(X, name, 128, 2, D) FA_TUNE_KEYS(X, name, 128, 4, D) FA_TUNE_KEYS(X, name, 128, 8, D) \
  FA_TUNE_KEYS(X, name, 256, 4, D) FA_TUNE_KEYS(X, name, 256, 8, D)
#define FA_TUNE_KEYS(X, name, Br, warps, D) \
  X(name##_##Br##x32w##warps##_d##D, Attention<Br, 32, warps, D>) \
  X(name##_##Br##x64w##warps##_d##D, Attention<Br, 64, warps, D>) \
  X(name##_##Br##x128w##warps##_d##D, Attention<Br, 128, warps, D>)
// clang-format on

#else
#define FA_TUNE_TILES(X, name)
#endif
