// SPDX-License-Identifier: MIT
#include "harness/device/vm.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "harness/attention/stored.h"
#include "harness/device/host_memory.h"
#include "harness/io/interrupt.h"
#include "ptxvm/races.h"

namespace fa {
namespace {

ptxvm::Dim3 to_machine(const Dim3& extents) {
  return {static_cast<std::uint32_t>(extents.x), static_cast<std::uint32_t>(extents.y),
          static_cast<std::uint32_t>(extents.z)};
}

ptxvm::TensorMap to_machine(const TensorMap& map, ptxvm::Address base, Dtype dtype) {
  const std::array swizzles{ptxvm::Swizzle::kNone, ptxvm::Swizzle::k32B, ptxvm::Swizzle::k64B,
                            ptxvm::Swizzle::k128B};
  ptxvm::TensorMap converted;
  converted.base = base;
  converted.element_bytes = static_cast<std::uint32_t>(size_of(dtype));
  converted.element = dtype == Dtype::f16    ? ptxvm::MapElement::kF16
                      : dtype == Dtype::bf16 ? ptxvm::MapElement::kBf16
                      : dtype == Dtype::f32  ? ptxvm::MapElement::kF32
                                             : ptxvm::MapElement::kU8;
  converted.rank = static_cast<std::uint32_t>(map.rank);
  for (std::size_t i = 0; i < map.extents.size(); ++i) {
    converted.dims[i] = static_cast<std::uint64_t>(map.extents[i]);
    converted.strides[i] = static_cast<std::uint64_t>(map.strides[i]) * converted.element_bytes;
    converted.box[i] = static_cast<std::uint32_t>(map.box[i]);
  }
  converted.strides[0] = converted.element_bytes;
  converted.swizzle = swizzles[static_cast<std::size_t>(map.swizzle)];
  return converted;
}

/// What watches global memory takes about fifty bytes for each word that a kernel touches.
constexpr double kMostWatched = 0x1p26;

bool uses_scratch(const Launch& launch) {
  return std::any_of(launch.arguments.begin(), launch.arguments.end(),
                     [](const Argument& each) { return std::holds_alternative<ScratchRef>(each); });
}

std::string without_error(std::string text) {
  constexpr std::string_view kError = "error: ";
  if (text.starts_with(kError)) text.erase(0, kError.size());
  return text;
}

/// Where a diagnostic points to: in the kernel's source where the PTX has its lines.
std::string place_of(const ptxvm::Diagnostic& where) {
  constexpr std::string_view kFrom = "from ";
  for (const std::string& note : where.notes)
    if (note.starts_with(kFrom)) return note.substr(kFrom.size());
  return ptxvm::to_string(where.where);
}

std::string describe(const ptxvm::Finding& finding) {
  // "error: file:line: ..." with the checker's name in place of the first word.
  const std::string text =
      without_error(finding.where.message.empty() ? finding.message : finding.where.format());
  const std::string often =
      finding.count > 1 ? fmt::format("\n  seen {} times", finding.count) : "";
  return fmt::format("{}: {}{}\n", finding.checker, text, often);
}

/// Of a launch that the machine refuses. What the machine does not run is its own limit; all else
/// is a mistake of the plan.
[[noreturn]] void refuse(const Launch& step, const ptxvm::Kernel& kernel,
                         const ptxvm::Error& error) {
  if (!kernel.errors().empty() || !kernel.unsupported().empty()) throw DeviceError(error.what());
  throw KernelFault(fmt::format("{}: {}", step.entry, without_error(error.what())));
}

}  // namespace

std::uint64_t default_max_steps(const Problem& problem) {
  constexpr double kOfAnyLaunch = 0x1p26, kPerOperation = 16, kMost = 0x1p62;
  const double operations =
      4 * problem.rows() * static_cast<double>(problem.seq_kv) * problem.head_dim;
  return static_cast<std::uint64_t>(std::min(kMost, kOfAnyLaunch + kPerOperation * operations));
}

DeviceDescription vm_description() {
  DeviceDescription description = h200_description();
  description.name = "PTX virtual machine";
  description.all_targets = true;
  return description;
}

VmDevice::VmDevice(VmOptions options)
    : options_(std::move(options)), description_(vm_description()) {
  if (!options_.ptx) options_.ptx = std::make_shared<PtxLibrary>();
}

VmDevice::~VmDevice() = default;

void VmDevice::unload() {
  memory_.reset();
  scratch_.clear();
}

void VmDevice::require_memory(const Problem& problem) {
  unload();
  require_host_bytes(problem.stored_bytes() + table_bytes(problem) + check_host_bytes(problem),
                     to_string(problem),
                     "the virtual machine's tensors, their inputs, then two outputs, and a "
                     "reference to compare");
}

void VmDevice::load(const Problem& problem, const Inputs& inputs) {
  require_inputs(problem, inputs);
  unload();
  require_host_bytes(problem.stored_bytes() + table_bytes(problem), to_string(problem),
                     "the virtual machine's tensors");
  addresses_.assign(kTensors, 0);
  auto memory = std::make_unique<ptxvm::Memory>();
  const auto place = [&](Tensor tensor) -> ptxvm::Address& {
    return addresses_[static_cast<std::size_t>(tensor)];
  };
  try {
    for_each_input(problem, inputs, [&](Tensor tensor, std::span<const std::byte> bytes) {
      place(tensor) = memory->upload(name_of(tensor).in_text, bytes);
    });
    for (const Tensor tensor : written_tensors(problem)) {
      const std::size_t bytes =
          tensor == Tensor::lse
              ? sizeof(float) * static_cast<std::size_t>(problem.q_rows())
              : static_cast<std::size_t>(stored_elements(problem, static_cast<int>(tensor))) *
                    size_of(problem.dtype);
      place(tensor) = memory->allocate(name_of(tensor).in_text, bytes);
    }
  } catch (const std::bad_alloc&) {
    throw OutOfMemory(
        fmt::format("{}: the host has no memory for the virtual machine", to_string(problem)));
  }
  problem_ = problem;
  memory_ = std::move(memory);
}

void VmDevice::poison_output() {
  const auto poison = [&](ptxvm::Address address) {
    // All bits set is a NaN in binary16 and in binary32.
    const std::span<std::byte> bytes = memory_->bytes(address);
    std::fill(bytes.begin(), bytes.end(), std::byte{0xFF});
  };
  for (const Tensor tensor : written_tensors(problem_)) poison(address(tensor));
  for (const HeldScratch& held : scratch_)
    if (!held.zeroed) poison(held.address);
}

std::vector<std::string> VmDevice::nonzero_scratch() {
  std::vector<std::string> nonzero;
  for (const HeldScratch& held : scratch_) {
    if (!held.zeroed) continue;
    const std::span<std::byte> bytes = memory_->bytes(held.address);
    if (std::all_of(bytes.begin(), bytes.end(),
                    [](std::byte byte) { return byte == std::byte{0}; }))
      continue;
    nonzero.emplace_back(held.name);
    std::fill(bytes.begin(), bytes.end(), std::byte{0});
  }
  return nonzero;
}

ptxvm::Address VmDevice::address(Tensor tensor) const {
  return addresses_.at(static_cast<std::size_t>(tensor));
}

void VmDevice::provide_scratch(const LaunchPlan& plan) {
  std::size_t held = 0;
  while (held < plan.scratch.size() && held < scratch_.size() &&
         memory_->bytes(scratch_[held].address).size() ==
             static_cast<std::size_t>(plan.scratch[held].bytes) &&
         scratch_[held].zeroed == plan.scratch[held].zeroed) {
    ++held;
  }
  if (held == plan.scratch.size()) return;
  for (const HeldScratch& old : scratch_) memory_->release(old.address);
  scratch_.clear();
  double needed = 0;
  for (const Scratch& wanted : plan.scratch) needed += static_cast<double>(wanted.bytes);
  require_host_bytes(needed, plan.launches.front().entry, "its scratch buffers");
  for (const Scratch& wanted : plan.scratch) {
    const auto bytes = static_cast<std::size_t>(wanted.bytes);
    const ptxvm::Fill fill = wanted.zeroed ? ptxvm::Fill::kZero : ptxvm::Fill::kPoison;
    scratch_.push_back({memory_->allocate(wanted.name, bytes, fill), wanted.name, wanted.zeroed});
  }
}

ptxvm::Argument VmDevice::marshal(const Argument& argument) const {
  return std::visit(
      [&](const auto& value) {
        using Value = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<Value, Tensor>) {
          return ptxvm::Argument::pointer(address(value));
        } else if constexpr (std::is_same_v<Value, ScratchRef>) {
          return ptxvm::Argument::pointer(
              scratch_.at(static_cast<std::size_t>(value.index)).address);
        } else if constexpr (std::is_same_v<Value, TensorMap>) {
          const auto bytes = value.offset * static_cast<std::int64_t>(size_of(problem_.dtype));
          return ptxvm::Argument::tensor_map(to_machine(
              value, address(value.tensor) + static_cast<ptxvm::Address>(bytes), problem_.dtype));
        } else {
          return ptxvm::Argument::scalar(value);
        }
      },
      argument);
}

ptxvm::LaunchConfig VmDevice::configure(const Launch& step, std::size_t scratch_buffers) const {
  require_launchable(step, scratch_buffers);
  ptxvm::LaunchConfig config;
  config.grid = to_machine(step.grid);
  config.block = {static_cast<std::uint32_t>(step.block), 1, 1};
  config.dynamic_shared_bytes = static_cast<std::uint32_t>(step.dynamic_shared);
  config.cluster = to_machine(step.cluster);
  for (const Argument& argument : step.arguments) config.arguments.push_back(marshal(argument));
  return config;
}

void VmDevice::launch(const LaunchPlan& plan) {
  if (!memory_) throw std::logic_error("no problem is loaded in the virtual machine");
  counts_.clear();
  provide_scratch(plan);
  for (const Launch& step : plan.launches) run(step, plan);
}

void VmDevice::run(const Launch& step, const LaunchPlan& plan) {
  const ptxvm::Module& module = options_.ptx->find(step.entry);
  ptxvm::Options options;
  options.threads = options_.threads;
  options.observers = options_.observers;
  options.max_steps = options_.max_steps > 0 ? options_.max_steps : default_max_steps(problem_);
  options.max_warp_steps = options_.max_warp_steps;
  options.stop = options_.stop ? options_.stop : &io::interrupt_flag();
  if (options_.reversed != reversed_) {
    options.warp_order = ptxvm::Order::kReversed;
    options.cta_order = ptxvm::Order::kReversed;
  }
  ptxvm::Races races;
  ptxvm::GlobalRaces global(plan.deterministic ? ptxvm::Sums::kOneOrder : ptxvm::Sums::kAnyOrder);
  if (options_.checkers) options.observers.push_back(&races);
  // Thread blocks pass results to each other through scratch memory alone.
  if (options_.checkers && uses_scratch(step) && problem_.stored_bytes() <= kMostWatched) {
    options.observers.push_back(&global);
  }
  ptxvm::Counters counters;
  if (options_.counters) options.observers.push_back(&counters);
  ptxvm::LaunchResult result;
  try {
    result =
        ptxvm::launch(module, step.entry, configure(step, plan.scratch.size()), *memory_, options);
  } catch (const ptxvm::Error& error) {
    refuse(step, module.kernel(step.entry), error);
  }
  if (options_.printed && !result.printed.empty()) options_.printed(result.printed);
  if (result.stopped) {
    throw io::Interrupted{fmt::format("{} on {} was stopped after {} instructions", step.entry,
                                      to_string(problem_), result.steps)};
  }
  if (result.fault) {
    const ptxvm::Fault& fault = *result.fault;
    const bool limit = fault.kind == ptxvm::FaultKind::kStepLimit;
    throw KernelFault(
        fmt::format("{}: {}{}", step.entry, fault.message,
                    limit ? "; --max-steps allows more" : ""),
        {{std::string(ptxvm::name(fault.kind)), place_of(fault.where), fault.format() + "\n"}});
  }
  if (!result.findings.empty()) {
    std::vector<KernelFinding> findings;
    for (const ptxvm::Finding& each : result.findings)
      findings.push_back({each.checker, place_of(each.where), describe(each)});
    const ptxvm::Finding& first = result.findings.front();
    throw KernelFault(
        fmt::format("{}: {} finding{}, the first: {}: {}", step.entry, findings.size(),
                    findings.size() == 1 ? "" : "s", first.checker, first.message),
        findings);
  }
  if (options_.counters) counts_.push_back({step.entry, counters.report()});
}

HostTensor VmDevice::download_rows(Tensor tensor) {
  const int number = static_cast<int>(tensor);
  HostTensor rows = make_tensor(problem_.dtype, stored_shape(problem_, number));
  if (problem_.strides.empty()) return download(tensor, std::move(rows));
  const std::span<const std::byte> stored = memory_->bytes(address(tensor));
  gather_rows(problem_, number, stored.data(), rows);
  if (!gaps_unwritten(problem_, number, stored))
    damaged_.push_back(std::string("the rows of ") + name_of(tensor).in_text);
  return rows;
}

HostTensor VmDevice::download_output() {
  return download_rows(Tensor::o);
}

std::vector<std::string> VmDevice::damaged_red_zones() {
  return std::exchange(damaged_, {});
}

HostTensor VmDevice::download_lse() {
  if (!problem_.lse) throw std::logic_error("the problem did not ask for the LSE");
  return download(Tensor::lse, make_tensor(Dtype::f32, lse_shape(problem_)));
}

Gradients VmDevice::download_gradients() {
  return {download_rows(Tensor::d_q), download_rows(Tensor::d_k), download_rows(Tensor::d_v)};
}

HostTensor VmDevice::download(Tensor source, HostTensor target) const {
  const std::span<std::byte> bytes = memory_->bytes(address(source));
  std::memcpy(target.bytes.data(), bytes.data(), bytes.size());
  return target;
}

ptxvm::Counts VmDevice::total_counts() const {
  ptxvm::Counts sum;
  for (const LaunchCounts& each : counts_) sum.add(each.report.total);
  return sum;
}

}  // namespace fa
