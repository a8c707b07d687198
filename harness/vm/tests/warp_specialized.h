// SPDX-License-Identifier: MIT
// The warp-specialised Hopper kernel of these tests as a whole-kernel input of the machine.
#pragma once

#include "ladder.h"

namespace ptxvm_test {

inline TensorMap tile_map(Address base, const Problem& p, uint32_t rows) {
  TensorMap m;
  m.base = base;
  m.rank = 3;
  m.dims = {kHeadDim, static_cast<uint64_t>(p.length), static_cast<uint64_t>(p.heads), 1, 1};
  m.strides = {2, kHeadDim * 2, kHeadDim * 2 * static_cast<uint64_t>(p.length), 0, 0};
  m.box = {64, rows, 1, 1, 1};
  m.swizzle = Swizzle::k128B;
  return m;
}

inline RungRun run_warp_specialized(const Module& module, const Problem& p,
                                    const Options& options) {
  Memory memory;
  auto bytes = [](const auto& v) { return std::as_bytes(std::span(v)); };
  const Address out = memory.allocate("O", p.q.size() * 2);
  const Address q = memory.upload("Q", bytes(p.q)), k = memory.upload("K", bytes(p.k)),
                v = memory.upload("V", bytes(p.v));
  LaunchConfig c;
  c.grid = {static_cast<uint32_t>(p.length / 128), static_cast<uint32_t>(p.heads), 1};
  c.block = {384, 1, 1};
  c.dynamic_shared_bytes = 1024 + 128 * 256 + 4 * 64 * 256 + 128;
  const double scale = 1.4426950408889634 / std::sqrt(static_cast<double>(kHeadDim));
  c.arguments = {Argument::tensor_map(tile_map(q, p, 128)),
                 Argument::tensor_map(tile_map(k, p, 64)),
                 Argument::tensor_map(tile_map(v, p, 64)),
                 Argument::tensor_map(tile_map(out, p, 64)),
                 Argument::scalar<int32_t>(p.length),
                 Argument::scalar<float>(static_cast<float>(scale))};
  RungRun r;
  r.result = launch(module, "warp_specialized", c, memory, options);
  r.output.resize(p.q.size());
  std::memcpy(r.output.data(), memory.bytes(out).data(), p.q.size() * 2);
  return r;
}

}  // namespace ptxvm_test
