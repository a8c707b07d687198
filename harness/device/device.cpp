// SPDX-License-Identifier: MIT
#include "harness/device/device.h"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <variant>

#include "harness/attention/stored.h"

namespace fa {

std::string text_of(const std::vector<KernelFinding>& findings) {
  std::string text;
  for (const KernelFinding& finding : findings) text += finding.text;
  return text;
}

std::span<const Tensor> written_tensors(const Problem& problem) {
  static constexpr std::array kOutputs{Tensor::o, Tensor::lse};
  static constexpr std::array kGradients{Tensor::d_q, Tensor::d_k, Tensor::d_v};
  if (problem.backward) return kGradients;
  return std::span(kOutputs).first(problem.lse ? 2 : 1);
}

void for_each_input(const Problem& problem, const Inputs& inputs,
                    const std::function<void(Tensor, std::span<const std::byte>)>& put) {
  const auto put_some = [&](Tensor tensor, std::span<const std::byte> bytes) {
    if (!bytes.empty()) put(tensor, bytes);
  };
  const auto put_rows = [&](Tensor tensor, const HostTensor& host) {
    if (problem.strides.empty()) return put_some(tensor, host.bytes);
    put_some(tensor, stored_with_gaps(problem, static_cast<int>(tensor), host));
  };
  const auto put_numbers = [&](Tensor tensor, const std::vector<std::int32_t>& numbers) {
    put_some(tensor, std::as_bytes(std::span(numbers)));
  };
  const auto put_values = [&](Tensor tensor, const std::vector<float>& values) {
    put_some(tensor, std::as_bytes(std::span(values)));
  };
  put_rows(Tensor::q, inputs.q);
  put_rows(Tensor::k, inputs.k);
  put_rows(Tensor::v, inputs.v);
  put_values(Tensor::sinks, inputs.sinks);
  put_numbers(Tensor::lengths, {problem.lengths.begin(), problem.lengths.end()});
  if (problem.packed()) {
    put_numbers(Tensor::cu_seqlens_q, cu_seqlens(problem.query_lengths));
    put_numbers(Tensor::cu_seqlens_k, cu_seqlens(problem.lengths));
  }
  put_numbers(Tensor::page_table, inputs.page_table);
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
