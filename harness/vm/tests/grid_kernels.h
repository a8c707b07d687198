// SPDX-License-Identifier: MIT
// Kernels whose blocks wait for each other; shared by the tests.
#pragma once

#include "run_ptx.h"

namespace ptxvm_test {

/// An entry `k` of sm_80 with one parameter, the address of 64 KiB of zeros, in %base.
/// %block: the linear number of the block. %blocks: how many there are.
inline std::string grid_kernel(const std::string& body) {
  return ".version 9.0\n.target sm_80\n.address_size 64\n"
         ".visible .entry k(.param .u64 data)\n{\n"
         "  .reg .b64 %base, %at; .reg .b32 %block, %blocks, %lane;\n"
         "  .reg .pred %p<8>; .reg .b32 %r<32>; .reg .b64 %d<16>;\n"
         "  ld.param.u64 %base, [data]; cvta.to.global.u64 %base, %base;\n"
         "  mov.u32 %block, %ctaid.x; mov.u32 %blocks, %nctaid.x; mov.u32 %lane, %tid.x;\n"
         "  setp.eq.u32 %p1, %lane, 0;\n" +
         body + "\n  ret;\n}\n";
}

inline LaunchConfig grid_of(uint32_t blocks, uint32_t threads = 32) {
  LaunchConfig c;
  c.grid = {blocks, 1, 1};
  c.block = {threads, 1, 1};
  return c;
}

/// Each block waits for the flag of the next one, adds its own number and passes the sum on: blocks
/// that start late come first.
inline const char* const kLookAhead = R"(
  @!%p1 bra $end;
  mul.wide.u32 %at, %block, 4; add.u64 %at, %at, %base;
  mov.u32 %r1, 0; add.u32 %r2, %block, 1;
  setp.ge.u32 %p2, %r2, %blocks;
  @%p2 bra $last;
$wait:
  ld.acquire.gpu.global.u32 %r1, [%at+4];
  setp.eq.u32 %p3, %r1, 0;
  @%p3 bra $wait;
$last:
  add.u32 %r1, %r1, %r2;
  st.release.gpu.global.u32 [%at], %r1;
$end:)";

/// A barrier of the grid: a counter at +0, a generation at +4. Each block stores its number at +256
/// before, and block 0 adds them up behind.
inline const char* const kGridBarrier = R"(
  mul.wide.u32 %at, %block, 4; add.u64 %at, %at, %base;
  @%p1 st.global.u32 [%at+256], %block;
  bar.sync 0;
  @!%p1 bra $behind;
  membar.gl;
  atom.global.add.u32 %r1, [%base], 1;
  sub.u32 %r2, %blocks, 1;
  setp.ne.u32 %p2, %r1, %r2;
  @%p2 bra $spin;
  membar.gl;
  st.volatile.global.u32 [%base+4], 1;
$spin:
  ld.volatile.global.u32 %r3, [%base+4];
  setp.eq.u32 %p3, %r3, 0;
  @%p3 bra $spin;
  membar.gl;
$behind:
  bar.sync 0;
  or.b32 %r4, %block, %lane; setp.ne.u32 %p4, %r4, 0;
  @%p4 bra $end;
  mov.u32 %r5, 0; mov.u32 %r6, 0; mov.u64 %at, %base;
$sum:
  ld.global.u32 %r7, [%at+256]; add.u32 %r6, %r6, %r7; add.u64 %at, %at, 4;
  add.u32 %r5, %r5, 1; setp.lt.u32 %p5, %r5, %blocks;
  @%p5 bra $sum;
  st.global.u32 [%base+8], %r6;
$end:)";

}  // namespace ptxvm_test
