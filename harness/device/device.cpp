// SPDX-License-Identifier: MIT
#include "harness/device/device.h"

#include <fmt/format.h>

#include <limits>
#include <variant>

#include "harness/attention/stored.h"

namespace fa {

std::string text_of(const std::vector<KernelFinding>& findings) {
  std::string text;
  for (const KernelFinding& finding : findings) text += finding.text;
  return text;
}

std::vector<Tensor> written_tensors(const Problem& problem) {
  if (problem.backward) return {Tensor::d_q, Tensor::d_k, Tensor::d_v};
  return problem.lse ? std::vector{Tensor::o, Tensor::lse} : std::vector{Tensor::o};
}

void for_each_input(const Problem& problem, const Inputs& inputs,
                    const std::function<void(Tensor, std::span<const std::byte>)>& put) {
  const auto put_values = [&](Tensor tensor, const auto& values) {
    if (!values.empty()) put(tensor, std::as_bytes(std::span(values)));
  };
  const auto put_rows = [&](Tensor tensor, const HostTensor& host) {
    if (problem.strides.empty()) return put_values(tensor, host.bytes);
    put_values(tensor, stored_with_gaps(problem, static_cast<int>(tensor), host));
  };
  put_rows(Tensor::q, inputs.q);
  put_rows(Tensor::k, inputs.k);
  put_rows(Tensor::v, inputs.v);
  put_values(Tensor::sinks, inputs.sinks);
  put_values(Tensor::lengths,
             std::vector<std::int32_t>(problem.lengths.begin(), problem.lengths.end()));
  if (problem.packed()) {
    put_values(Tensor::cu_seqlens_q, cu_seqlens(problem.query_lengths));
    put_values(Tensor::cu_seqlens_k, cu_seqlens(problem.lengths));
  }
  put_values(Tensor::page_table, inputs.page_table);
  put_values(Tensor::kv_scales, inputs.kv_scales);
  if (!problem.backward) return;
  put_rows(Tensor::o, inputs.o);
  put_rows(Tensor::d_o, inputs.d_o);
  put_values(Tensor::lse, inputs.lse);
}

void require_launchable(const Launch& launch, std::size_t scratch_buffers) {
  constexpr int kMost = std::numeric_limits<int>::max();
  for (const Dim3& extents : {launch.grid, launch.cluster}) {
    for (const std::int64_t extent : {extents.x, extents.y, extents.z}) {
      if (extent >= 1 && extent <= kMost) continue;
      throw KernelFault(fmt::format("{}: a grid extent of {} is not between 1 and {}", launch.entry,
                                    extent, kMost));
    }
  }
  for (const Argument& argument : launch.arguments) {
    const auto* scratch = std::get_if<ScratchRef>(&argument);
    if (!scratch || static_cast<std::size_t>(scratch->index) < scratch_buffers) continue;
    throw KernelFault(fmt::format("{}: an argument is scratch buffer {} of a plan with {}",
                                  launch.entry, scratch->index, scratch_buffers));
  }
}

}  // namespace fa
