// SPDX-License-Identifier: MIT
#include "harness/capi/attention.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "harness/attention/stored.h"
#include "harness/device/cuda_check.h"
#include "harness/device/gpu.h"
#include "harness/device/gpu_launch.h"
#include "harness/device/host_memory.h"
#include "harness/device/vm.h"
#include "harness/io/interrupt.h"
#include "harness/results/problem_json.h"
#include "kernels/catalogue.h"

static_assert(sizeof(fa_attention_tensors) == 120);

struct fa_attention_plan {
  fa::LaunchPlan launches;
  fa::Dtype dtype;
  int device;
};

namespace {

using fa::Tensor;

/// The rung does not take the problem.
struct Refused : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

fa::Problem to_problem(const char* text) {
  try {
    const fa::Json json = fa::Json::parse(text);
    const fa::Json unknown = fa::unknown_of(json, fa::schema_of<fa::Problem>()["properties"]);
    if (!unknown.is_null()) throw Refused("a problem has no " + unknown.dump());
    return fa::problem_from_json(json);
  } catch (const std::exception& error) {
    throw Refused(error.what());
  }
}

std::string rung_ids() {
  std::string ids;
  for (const fa::Rung& rung : fa::catalogue()) (ids += ids.empty() ? "" : ",") += rung.id;
  return ids;
}

const fa::Rung& rung_of(const std::string& word) {
  const std::vector<const fa::Rung*> found = fa::match_rungs(word);
  if (found.size() == 1) return *found.front();
  throw Refused("rung '" + word + (found.empty() ? "' is unknown" : "' is not a single rung") +
                "; allowed: best, or an id or name that flash_ladder.rungs() has");
}

fa::LaunchPlan plan_or_refuse(const fa::Problem& problem, const char* word,
                              const fa::DeviceDescription& device) {
  fa::PlanResult result = fa::make_plan(rung_of(word), problem, device);
  if (const auto* unsupported = std::get_if<fa::Unsupported>(&result))
    throw Refused(unsupported->reason);
  return std::get<fa::LaunchPlan>(std::move(result));
}

void store(char* message, int32_t size, const std::string& text) {
  if (!message || size <= 0) return;
  const std::size_t length = std::min(text.size(), static_cast<std::size_t>(size) - 1);
  std::memcpy(message, text.data(), length);
  message[length] = '\0';
}

/// Runs the body; what it throws becomes a status and a message.
template <class Body>
int32_t guarded(char* message, int32_t size, const Body& body) noexcept {
  const auto failed = [&](int32_t status, const std::string& text) {
    store(message, size, text);
    return status;
  };
  try {
    body();
    return FA_STATUS_OK;
  } catch (const fa::KernelFault& fault) {
    return failed(FA_STATUS_WRONG, std::string(fault.what()) + "\n" + fa::text_of(fault.findings));
  } catch (const Refused& error) {
    return failed(FA_STATUS_REFUSED, error.what());
  } catch (const fa::io::Interrupted&) {
    store(message, size, "stopped");
    return FA_STATUS_ENVIRONMENT;
  } catch (const std::bad_alloc&) {
    store(message, size, "out of host memory");
    return FA_STATUS_ENVIRONMENT;
  } catch (const std::exception& error) {
    return failed(FA_STATUS_ENVIRONMENT, error.what());
  }
}

fa::HostTensor host_tensor(const fa::Problem& problem, Tensor tensor, fa::Dtype dtype,
                           const void* from) {
  const int number = static_cast<int>(tensor);
  fa::HostTensor made = fa::make_tensor(dtype, fa::stored_shape(problem, number));
  fa::gather_rows(problem, number, static_cast<const std::byte*>(from), made);
  return made;
}

void require_memory(const fa::Problem& problem) {
  fa::require_host_bytes(problem.stored_bytes() + problem.input_bytes() + problem.output_bytes() +
                             2 * fa::table_bytes(problem),
                         fa::to_string(problem),
                         "the virtual machine's tensors, their inputs and an output");
}

/// The page table. Throws Refused for a page that is not stored where there are keys.
std::vector<std::int32_t> take_pages(const fa::Problem& problem, const std::int32_t* given) {
  const std::int64_t width = problem.table_width();
  std::vector<std::int32_t> table(given, given + problem.batch * width);
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    for (std::int64_t i = 0; i * problem.page < problem.length(b); ++i) {
      const std::int32_t page = table[static_cast<std::size_t>(b * width + i)];
      if (page >= 0 && page < problem.pages()) continue;
      throw Refused("page " + std::to_string(page) + " of batch entry " + std::to_string(b) +
                    " is not one of the " + std::to_string(problem.pages()) + " that are stored");
    }
  }
  return table;
}

/// The scales of K and V. Throws Refused for one with which a result would not be a number, or
/// would belong to other keys.
std::vector<float> take_scales(const fa::Problem& problem, const float* given) {
  std::vector<float> scales(given, given + problem.kv_scales());
  for (std::size_t i = 0; i < scales.size(); ++i) {
    if (scales[i] > 0 && std::isfinite(scales[i])) continue;
    const auto at = static_cast<std::int64_t>(i), heads = problem.kv_heads();
    throw Refused("kv_scales[" + std::to_string(at / heads / problem.batch) + ", " +
                  std::to_string(at / heads % problem.batch) + ", " + std::to_string(at % heads) +
                  "] is " + std::to_string(scales[i]) + "; allowed: finite numbers above 0");
  }
  return scales;
}

void run_on_machine(const fa::Problem& problem, const fa::LaunchPlan& plan, const char* ptx_folder,
                    const fa_attention_tensors& given, const uint8_t* stop) {
  fa::Inputs inputs;
  if (problem.page > 0) inputs.page_table = take_pages(problem, given.page_table);
  if (problem.e4m3) inputs.kv_scales = take_scales(problem, given.kv_scales);
  if (problem.sinks) inputs.sinks.assign(given.sinks, given.sinks + problem.heads);
  require_memory(problem);
  fa::VmOptions options;
  if (ptx_folder) options.ptx = std::make_shared<fa::PtxLibrary>(ptx_folder);
  static_assert(sizeof(std::atomic<bool>) == 1 && std::atomic<bool>::is_always_lock_free);
  options.stop = reinterpret_cast<const std::atomic<bool>*>(stop);
  fa::VmDevice device(options);
  inputs.q = host_tensor(problem, Tensor::q, problem.dtype, given.q);
  inputs.k = host_tensor(problem, Tensor::k, problem.kv_dtype(), given.k);
  inputs.v = host_tensor(problem, Tensor::v, problem.kv_dtype(), given.v);
  if (problem.backward) {
    inputs.o = host_tensor(problem, Tensor::o, problem.dtype, given.o);
    inputs.d_o = host_tensor(problem, Tensor::d_o, problem.dtype, given.d_o);
    inputs.lse.assign(given.lse, given.lse + problem.q_rows());
  }
  device.load(problem, inputs);
  device.poison_output();
  device.launch(plan);
  if (problem.backward) {
    const auto [d_q, d_k, d_v] = device.download_gradients();
    const auto store = [&](Tensor tensor, const fa::HostTensor& from, void* to) {
      fa::scatter_rows(problem, static_cast<int>(tensor), from, static_cast<std::byte*>(to));
    };
    store(Tensor::d_q, d_q, given.d_q);
    store(Tensor::d_k, d_k, given.d_k);
    store(Tensor::d_v, d_v, given.d_v);
    return;
  }
  const fa::HostTensor o = device.download_output();
  fa::scatter_rows(problem, static_cast<int>(Tensor::o), o, static_cast<std::byte*>(given.o));
  if (!problem.lse) return;
  const fa::HostTensor lse = device.download_lse();
  std::memcpy(given.lse, lse.bytes.data(), lse.bytes.size());
}

/// Zeros for the buffer of scratch at `place` of launches on this stream of the current device.
/// What is launched there runs one after another and leaves zeros, so one buffer of a place and
/// size is enough; it is kept, because more work may be on its way. Sizes are powers of two, so
/// that problems of ever other sizes hold few. cudaStreamPerThread is another stream in each
/// thread.
void* zeros_of(int device, CUstream_st* stream, std::size_t place, std::int64_t bytes) {
  static std::mutex mutex;
  static std::map<std::tuple<int, CUstream_st*, std::thread::id, std::size_t, std::size_t>, void*>
      held;
  const std::scoped_lock lock(mutex);
  const std::thread::id thread =
      stream == cudaStreamPerThread ? std::this_thread::get_id() : std::thread::id();
  const std::size_t size = std::bit_ceil(static_cast<std::size_t>(bytes));
  void*& address = held[{device, stream, thread, place, size}];
  if (address) return address;
  void* made = nullptr;
  fa::check_cuda(cudaMallocAsync(&made, size, stream), "allocating a counter");
  fa::check_cuda(cudaMemsetAsync(made, 0, size, stream), "zeroing a counter");
  return address = made;
}

std::vector<void*> scratch_of(const fa_attention_plan& plan, void* const* given,
                              CUstream_st* stream) {
  std::vector<void*> addresses;
  for (const fa::Scratch& wanted : plan.launches.scratch) {
    void* address = given ? given[addresses.size()] : nullptr;
    if (!address && !wanted.zeroed)
      throw std::invalid_argument(std::string("no memory was given for ") + wanted.name);
    addresses.push_back(address ? address
                                : zeros_of(plan.device, stream, addresses.size(), wanted.bytes));
  }
  return addresses;
}

}  // namespace

extern "C" {

int32_t fa_attention_version(void) {
  return FA_ATTENTION_VERSION;
}

const char* fa_attention_rungs(void) {
  static const std::string ids = rung_ids();
  return ids.c_str();
}

int32_t fa_attention_plan_make(const char* problem, const char* rung, int32_t device,
                               fa_attention_plan** plan, char* message, int32_t size) {
  return guarded(message, size, [&] {
    fa::check_cuda(cudaSetDevice(device), "choosing the GPU");
    const fa::Problem wanted = to_problem(problem);
    fa_attention_plan made{plan_or_refuse(wanted, rung, fa::gpu_description()), wanted.dtype,
                           device};
    for (const fa::Launch& step : made.launches.launches) {
      fa::raise_shared_limit(step);
      // Loads the code now, and not under the first launch, where a graph may be captured.
      cudaFuncAttributes attributes{};
      fa::check_cuda(cudaFuncGetAttributes(&attributes, step.kernel),
                     std::string("loading ") + step.entry);
    }
    *plan = new fa_attention_plan(std::move(made));
  });
}

void fa_attention_plan_free(fa_attention_plan* plan) {
  delete plan;
}

int32_t fa_attention_scratch_count(const fa_attention_plan* plan) {
  return static_cast<int32_t>(plan->launches.scratch.size());
}

void fa_attention_scratch(const fa_attention_plan* plan, int32_t index, int64_t* bytes,
                          int32_t* zeroed) {
  const fa::Scratch& scratch = plan->launches.scratch[static_cast<std::size_t>(index)];
  *bytes = scratch.bytes;
  *zeroed = scratch.zeroed ? 1 : 0;
}

int32_t fa_attention_launch(const fa_attention_plan* plan, const fa_attention_tensors* tensors,
                            void* const* scratch, void* stream, char* message, int32_t size) {
  return guarded(message, size, [&] {
    fa::check_cuda(cudaSetDevice(plan->device), "choosing the GPU");
    // The kernels take inputs as pointers to const; a plan's arguments do not tell them apart.
    const auto input = [](const void* address) { return const_cast<void*>(address); };
    const fa_attention_tensors& at = *tensors;
    auto* const order = static_cast<CUstream_st*>(stream);
    const std::vector<void*> own = scratch_of(*plan, scratch, order);
    const fa::GpuBuffers addresses{
        .tensors = {input(at.q), input(at.k), input(at.v), at.o, at.lse, input(at.lengths),
                    input(at.page_table), input(at.kv_scales), input(at.sinks),
                    input(at.cu_seqlens_q), input(at.cu_seqlens_k), input(at.d_o), at.d_q, at.d_k,
                    at.d_v},
        .scratch = own};
    for (const fa::Launch& step : plan->launches.launches)
      fa::launch_on_gpu(step, plan->dtype, addresses, order);
  });
}

int32_t fa_attention_run_on_machine(const char* problem, const char* rung, const char* ptx_folder,
                                    const fa_attention_tensors* tensors, const uint8_t* stop,
                                    char* message, int32_t size) {
  return guarded(message, size, [&] {
    const fa::Problem wanted = to_problem(problem);
    run_on_machine(wanted, plan_or_refuse(wanted, rung, fa::vm_description()), ptx_folder, *tensors,
                   stop);
  });
}

int32_t fa_attention_machine_takes(const char* problem, const char* rung, char* message,
                                   int32_t size) {
  return guarded(message, size, [&] {
    const fa::Problem wanted = to_problem(problem);
    plan_or_refuse(wanted, rung, fa::vm_description());
    require_memory(wanted);
  });
}

}  // extern "C"
