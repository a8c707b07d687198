// SPDX-License-Identifier: MIT
#include "harness/device/gpu.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "harness/attention/stored.h"
#include "harness/device/cuda_check.h"
#include "harness/device/gpu_launch.h"
#include "harness/device/host_memory.h"

namespace fa {
namespace {

constexpr std::byte kRedZonePattern{0xA5};
// All bits set is a NaN in binary16 and in binary32.
constexpr int kPoison = 0xFF;
constexpr std::size_t kChunk = std::size_t{16} << 20;
constexpr double kAllocationUnit = 2 << 20;
constexpr std::size_t kScratchAlignment = 256;  // that of cudaMalloc
cudaDeviceProp read_properties() {
  cudaDeviceProp prop{};
  check_cuda(cudaGetDeviceProperties(&prop, current_gpu()), "reading the GPU's properties");
  return prop;
}

DeviceFacts read_facts() {
  const cudaDeviceProp prop = read_properties();
  DeviceFacts facts{.sms = prop.multiProcessorCount,
                    .memory = prop.totalGlobalMem,
                    .l2 = static_cast<std::size_t>(prop.l2CacheSize),
                    .cuda_driver = 0,
                    .pci_bus_id = {}};
  std::array<char, 32> bus{};
  check_cuda(cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), current_gpu()),
             "reading the GPU's PCI bus id");
  facts.pci_bus_id = bus.data();
  check_cuda(cudaDriverGetVersion(&*facts.cuda_driver), "reading the driver's CUDA version");
  return facts;
}

}  // namespace

int gpu_count(std::string* why) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) {
    ignore_cuda(error);
    int driver = 0;
    // Without a driver the runtime complains about its version, which is 0.
    const bool missing = cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0;
    if (why) *why = missing ? "no NVIDIA driver is installed" : cudaGetErrorString(error);
    return 0;
  }
  if (count == 0 && why) *why = "no CUDA-capable device is detected";
  return count;
}

int current_gpu() {
  int ordinal = 0;
  check_cuda(cudaGetDevice(&ordinal), "asking for the current GPU");
  return ordinal;
}

DeviceDescription gpu_description() {
  const cudaDeviceProp prop = read_properties();
  return {.name = prop.name,
          .sm = prop.major * 10 + prop.minor,
          .sms = prop.multiProcessorCount,
          .l2_bytes = prop.l2CacheSize,
          .shared_bytes = prop.sharedMemPerBlockOptin};
}

/// Bytes of the problem's buffers; in floating point, because the product of extents that are each
/// allowed may not fit 64 bits.
static std::map<Tensor, double> tensor_sizes(const Problem& problem) {
  const double q = static_cast<double>(size_of(problem.dtype)) * problem.head_dim * problem.rows();
  const double kv = (problem.input_bytes() - q) / 2;
  std::map<Tensor, double> sizes{{Tensor::q, q}, {Tensor::k, kv}, {Tensor::v, kv}, {Tensor::o, q}};
  if (problem.sinks) sizes[Tensor::sinks] = sizeof(float) * static_cast<double>(problem.heads);
  if (problem.lse) sizes[Tensor::lse] = sizeof(float) * problem.rows();
  const double entry = sizeof(std::int32_t) * static_cast<double>(problem.batch);
  if (!problem.lengths.empty()) sizes[Tensor::lengths] = entry;
  if (problem.packed())
    sizes[Tensor::cu_seqlens_q] = sizes[Tensor::cu_seqlens_k] = entry + sizeof(std::int32_t);
  if (problem.page > 0) {
    sizes[Tensor::page_table] = entry * static_cast<double>(problem.table_width());
  }
  if (problem.backward) {
    sizes[Tensor::d_o] = sizes[Tensor::d_q] = q;
    sizes[Tensor::lse] = sizeof(float) * problem.rows();
    sizes[Tensor::k] = sizes[Tensor::v] = sizes[Tensor::d_k] = sizes[Tensor::d_v] =
        problem.kv_bytes() / 2;
  }
  if (!problem.strides.empty()) {
    for (const int tensor : strided_tensors(problem)) {
      sizes[static_cast<Tensor>(tensor)] = static_cast<double>(size_of(problem.dtype)) *
                                           static_cast<double>(stored_elements(problem, tensor));
    }
  }
  if (problem.e4m3) {
    sizes[Tensor::kv_scales] = sizeof(float) * static_cast<double>(problem.kv_scales());
  }
  return sizes;
}

/// Red zone, tensor, red zone.
struct GpuDevice::Region {
  const char* name;
  std::byte* base = nullptr;
  std::size_t zone = 0;
  std::size_t size = 0;
  bool zeroed = false;  ///< Scratch::zeroed

  std::size_t allocated() const { return size + 2 * zone; }
  std::byte* data() const { return base + zone; }
  std::array<std::byte*, 2> zones() const { return {base, base + zone + size}; }
};

/// A region that is an allocation of its own.
struct GpuDevice::Buffer : Region {
  Buffer(const char* label, std::size_t zone_bytes, std::size_t bytes)
      : Region{label, nullptr, zone_bytes, bytes} {
    void* memory = nullptr;
    check_cuda(cudaMalloc(&memory, allocated()),
               fmt::format("allocating {} bytes for {}", allocated(), label));
    base = static_cast<std::byte*>(memory);
  }
  Buffer(Buffer&& other) noexcept : Region(other) { other.base = nullptr; }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  Buffer& operator=(Buffer&&) = delete;
  ~Buffer() {
    if (base) ignore_cuda(cudaFree(base));
  }
};

/// Two page-locked chunks, so that one is filled while the other is on its way.
struct GpuDevice::Pinned {
  std::array<std::byte*, 2> chunk{};
  std::array<cudaEvent_t, 2> done{};

  Pinned() = default;
  /// Not the constructor: the destructor frees what was allocated before a failure.
  void allocate() {
    for (std::size_t i = 0; i < 2; ++i) {
      void* memory = nullptr;
      check_cuda(cudaHostAlloc(&memory, kChunk, cudaHostAllocDefault),
                 "allocating page-locked memory for copies");
      chunk[i] = static_cast<std::byte*>(memory);
      check_cuda(cudaEventCreateWithFlags(&done[i], cudaEventDisableTiming),
                 "creating an event for copies");
    }
  }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  ~Pinned() {
    for (std::size_t i = 0; i < 2; ++i) {
      if (done[i]) ignore_cuda(cudaEventDestroy(done[i]));
      if (chunk[i]) ignore_cuda(cudaFreeHost(chunk[i]));
    }
  }
};

GpuDevice::GpuDevice(GpuOptions options)
    : options_(options), description_(gpu_description()), facts_(read_facts()) {
  // Work that the host program has queued elsewhere, such as the inputs of a peer, is complete
  // before anything runs on our stream, which no other stream waits for.
  check_cuda(cudaDeviceSynchronize(), "starting the GPU");
  check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "creating a stream");
  pinned_ = std::make_unique<Pinned>();
  pinned_->allocate();
}

GpuDevice::~GpuDevice() {
  if (stream_) {
    ignore_cuda(cudaStreamSynchronize(stream_));
    ignore_cuda(cudaStreamDestroy(stream_));
  }
}

void GpuDevice::require_memory(const Problem& problem) {
  // The buffers of the problem before this one are freed first.
  unload();
  require_tensors(problem);
  require_host_bytes(check_host_bytes(problem), to_string(problem),
                     "its inputs, then two outputs, and a reference to compare");
}

void GpuDevice::require_tensors(const Problem& problem) {
  std::vector<double> sizes;
  for (const auto& [tensor, bytes] : tensor_sizes(problem)) sizes.push_back(bytes);
  require_free(sizes, to_string(problem),
               problem.backward ? "Q, K, V, O, their gradients and the LSE"
               : problem.lse    ? "Q, K, V, O and the LSE"
                                : "Q, K, V and O");
}

void GpuDevice::require_free(const std::vector<double>& sizes, const std::string& who,
                             const std::string& what) {
  double needed = 0;
  for (const double size : sizes) {
    const double bytes = size + 2.0 * static_cast<double>(options_.red_zone);
    needed += std::ceil(bytes / kAllocationUnit) * kAllocationUnit;
  }
  std::size_t free = 0;
  std::size_t total = 0;
  check_cuda(cudaMemGetInfo(&free, &total), "asking for the free memory");
  // Scratch memory is freed before there is more of it, unless recorded launches need it.
  if (scratch_memory_.use_count() == 1)
    for (const Buffer& held : *scratch_memory_) free += held.allocated();
  if (needed <= static_cast<double>(free)) return;
  throw OutOfMemory(
      fmt::format("{} needs {:.0f} bytes of GPU memory for {}; {} of {} bytes are free on {}", who,
                  needed, what, free, total, description_.name));
}

GpuDevice::Buffer GpuDevice::make_buffer(const char* name, std::size_t bytes) {
  Buffer made(name, options_.red_zone, bytes);
  write_red_zones(made);
  return made;
}

void GpuDevice::write_red_zones(const Region& region) {
  if (region.zone == 0) return;
  for (std::byte* zone : region.zones()) {
    check_cuda(cudaMemsetAsync(zone, std::to_integer<int>(kRedZonePattern), region.zone, stream_),
               "writing a red zone");
  }
}

void GpuDevice::load(const Problem& problem, const Inputs& inputs) {
  require_inputs(problem, inputs);
  unload();
  require_tensors(problem);
  // Either all buffers exist or none.
  std::map<Tensor, Buffer> buffers;
  for (const auto& [tensor, bytes] : tensor_sizes(problem)) {
    const char* name = name_of(tensor).in_text;
    buffers.emplace(tensor, make_buffer(name, static_cast<std::size_t>(bytes)));
  }
  for_each_input(problem, inputs, [&](Tensor tensor, std::span<const std::byte> bytes) {
    upload(buffers.at(tensor), bytes.data());
  });
  buffers_ = std::move(buffers);
  problem_ = problem;
  poison_output();
  synchronize();
}

void GpuDevice::unload() {
  if (buffers_.empty()) return;
  synchronize();
  cache_copies_.clear();
  cache_turn_ = 0;
  buffers_.clear();
  scratch_.clear();
  scratch_memory_.reset();
}

const GpuDevice::Buffer* GpuDevice::buffer(Tensor tensor) const {
  if (buffers_.empty()) throw std::logic_error("no problem is loaded on the GPU");
  const auto found = buffers_.find(tensor);
  return found == buffers_.end() ? nullptr : &found->second;
}

void* GpuDevice::address(Tensor tensor) const {
  const Buffer* held = buffer(tensor);
  const auto copies = cache_copies_.find(tensor);
  if (copies != cache_copies_.end() && cache_turn_ > 0) held = &copies->second.at(cache_turn_ - 1);
  return held ? held->data() : nullptr;
}

std::size_t GpuDevice::cache_bytes() const {
  return buffer(Tensor::k)->size + buffer(Tensor::v)->size;
}

int GpuDevice::make_cache_copies(int most) {
  const std::size_t bytes = cache_bytes(), beyond = 2 * *facts_.l2;
  cache_copies_.clear();
  cache_turn_ = 0;
  if (bytes >= beyond) return 1;
  const std::size_t count =
      std::min(1 + (beyond + bytes - 1) / bytes, static_cast<std::size_t>(most));
  for (const Tensor tensor : {Tensor::k, Tensor::v}) {
    const Buffer& original = *buffer(tensor);
    std::vector<Buffer>& copies = cache_copies_[tensor];
    copies.reserve(count);
    while (copies.size() + 1 < count) {
      copies.push_back(make_buffer(original.name, original.size));
      check_cuda(cudaMemcpyAsync(copies.back().data(), original.data(), original.size,
                                 cudaMemcpyDeviceToDevice, stream_),
                 "copying K and V");
    }
  }
  synchronize();
  return static_cast<int>(count);
}

bool GpuDevice::cache_is_hot() const {
  const auto copies = cache_copies_.find(Tensor::k);
  const std::size_t count = copies == cache_copies_.end() ? 1 : copies->second.size() + 1;
  return count * cache_bytes() < 2 * *facts_.l2;
}

void GpuDevice::turn_cache() {
  const auto copies = cache_copies_.find(Tensor::k);
  if (copies != cache_copies_.end()) cache_turn_ = (cache_turn_ + 1) % (copies->second.size() + 1);
}

bool GpuDevice::scratch_is_of(const LaunchPlan& plan) const {
  return std::equal(plan.scratch.begin(), plan.scratch.end(), scratch_.begin(), scratch_.end(),
                    [](const Scratch& wanted, const Region& held) {
                      return static_cast<std::size_t>(wanted.bytes) == held.size &&
                             wanted.name == held.name && wanted.zeroed == held.zeroed;
                    });
}

/// A counter is an allocation of its own and keeps its zeros whatever other plans do: the next plan
/// with one of that name and size finds it as the last one left it.
const GpuDevice::Region& GpuDevice::zeroed_scratch(const Scratch& wanted) {
  const auto bytes = static_cast<std::size_t>(wanted.bytes);
  for (const Buffer& held : zeroed_)
    if (std::string_view(held.name) == wanted.name && held.size == bytes) return held;
  require_free({static_cast<double>(bytes)}, wanted.name, "its zeros");
  Buffer& made = zeroed_.emplace_back(wanted.name, options_.red_zone, bytes);
  made.zeroed = true;
  write_red_zones(made);
  zero(made);
  return made;
}

void GpuDevice::zero(const Region& held) {
  check_cuda(cudaMemsetAsync(held.data(), 0, held.size, stream_),
             fmt::format("zeroing {}", held.name));
}

/// All plans share one block of memory, the largest that any of them needed so far: two that take
/// turns while they are timed then cost the GPU nothing when they change, neither an allocation nor
/// a red zone, and hold no more memory than the larger one. Without red zones every buffer is an
/// allocation of its own, so that compute-sanitizer sees an access beside it.
void GpuDevice::lay_out_scratch(const LaunchPlan& plan) {
  const bool exact = options_.red_zone == 0;
  std::vector<Region> regions;
  std::vector<double> sizes;
  std::size_t total = 0;
  for (const Scratch& wanted : plan.scratch) {
    if (wanted.zeroed) {
      regions.push_back(zeroed_scratch(wanted));
      continue;
    }
    const auto bytes = static_cast<std::size_t>(wanted.bytes);
    regions.push_back({wanted.name, nullptr, options_.red_zone, bytes});
    sizes.push_back(static_cast<double>(bytes));
    total += (regions.back().allocated() + kScratchAlignment - 1) / kScratchAlignment *
             kScratchAlignment;
  }
  scratch_zoned_ = false;
  if (total == 0) {
    scratch_ = std::move(regions);
    return;
  }
  if (exact || !scratch_memory_ || scratch_memory_->front().size < total) {
    require_free(exact ? sizes : std::vector<double>{static_cast<double>(total)},
                 plan.launches.front().entry, "its scratch buffers");
    // Freed first: the old and the new memory may not fit together.
    synchronize();
    scratch_.clear();
    scratch_memory_.reset();
    scratch_due_ = true;
    auto memory = std::make_shared<std::vector<Buffer>>();
    if (exact) {
      for (const Region& region : regions) {
        if (region.zeroed) {
          scratch_.push_back(region);
          continue;
        }
        memory->emplace_back(region.name, 0, region.size);
        scratch_.push_back(static_cast<const Region&>(memory->back()));
      }
      scratch_memory_ = std::move(memory);
      return;
    }
    memory->emplace_back("scratch", 0, total);
    scratch_memory_ = std::move(memory);
  }
  std::byte* next = scratch_memory_->front().base;
  for (Region& region : regions) {
    if (region.zeroed) continue;
    region.base = next;
    next += (region.allocated() + kScratchAlignment - 1) / kScratchAlignment * kScratchAlignment;
  }
  scratch_ = std::move(regions);
}

void GpuDevice::provide_scratch(const LaunchPlan& plan) {
  if (plan.scratch.empty()) return;
  if (!scratch_is_of(plan)) lay_out_scratch(plan);
  if (!scratch_due_) return;
  if (!scratch_zoned_) {
    for (const Region& region : scratch_)
      if (!region.zeroed) write_red_zones(region);
  }
  for (const Region& region : scratch_)
    if (!region.zeroed) poison(region);
  scratch_zoned_ = true;
  scratch_due_ = false;
}

void GpuDevice::poison(const Region& held) {
  check_cuda(cudaMemsetAsync(held.data(), kPoison, held.size, stream_),
             fmt::format("poisoning {}", held.name));
}

void GpuDevice::poison_output() {
  for (const Tensor tensor : written_tensors(problem_)) {
    if (const Buffer* held = buffer(tensor)) poison(*held);
  }
  scratch_due_ = true;
}

void GpuDevice::allow_dynamic_shared(const Launch& launch) {
  std::size_t& limit = dynamic_shared_[launch.kernel];
  if (launch.dynamic_shared <= limit) return;
  raise_shared_limit(launch);
  limit = launch.dynamic_shared;
}

void GpuDevice::launch(const LaunchPlan& plan) {
  provide_scratch(plan);
  std::vector<void*> scratch;
  for (std::size_t i = 0; i < plan.scratch.size(); ++i) scratch.push_back(scratch_[i].data());
  GpuBuffers buffers{.tensors = {}, .scratch = scratch};
  // A kernel that has no tensor among its arguments needs no problem.
  for (std::size_t i = 0; i < buffers.tensors.size() && !buffers_.empty(); ++i)
    buffers.tensors[i] = address(static_cast<Tensor>(i));
  for (const Launch& step : plan.launches) {
    allow_dynamic_shared(step);
    launch_on_gpu(step, problem_.dtype, buffers, stream_);
  }
}

void GpuDevice::synchronize() {
  check_cuda(cudaStreamSynchronize(stream_), "running on the GPU");
  check_cuda(cudaGetLastError(), "running on the GPU");
}

void GpuDevice::upload(const Buffer& target, const void* source) {
  const auto* from = static_cast<const std::byte*>(source);
  for (std::size_t offset = 0, turn = 0; offset < target.size; offset += kChunk, ++turn) {
    const std::size_t i = turn % 2;
    const std::size_t bytes = std::min(kChunk, target.size - offset);
    if (turn >= 2) check_cuda(cudaEventSynchronize(pinned_->done[i]), "uploading the inputs");
    std::memcpy(pinned_->chunk[i], from + offset, bytes);
    check_cuda(cudaMemcpyAsync(target.data() + offset, pinned_->chunk[i], bytes,
                               cudaMemcpyHostToDevice, stream_),
               "uploading the inputs");
    check_cuda(cudaEventRecord(pinned_->done[i], stream_), "uploading the inputs");
  }
  synchronize();
}

void GpuDevice::download(const Buffer& source, void* destination) {
  auto* to = static_cast<std::byte*>(destination);
  const std::size_t chunks = (source.size + kChunk - 1) / kChunk;
  const auto bytes_of = [&](std::size_t chunk) {
    return std::min(kChunk, source.size - chunk * kChunk);
  };
  const std::string what = fmt::format("downloading {}", source.name);
  // Chunk c is on its way while chunk c - 1 moves from page-locked memory to its place.
  for (std::size_t c = 0; c <= chunks; ++c) {
    if (c < chunks) {
      check_cuda(cudaMemcpyAsync(pinned_->chunk[c % 2], source.data() + c * kChunk, bytes_of(c),
                                 cudaMemcpyDeviceToHost, stream_),
                 what);
      check_cuda(cudaEventRecord(pinned_->done[c % 2], stream_), what);
    }
    if (c > 0) {
      const std::size_t previous = c - 1;
      check_cuda(cudaEventSynchronize(pinned_->done[previous % 2]), what);
      std::memcpy(to + previous * kChunk, pinned_->chunk[previous % 2], bytes_of(previous));
    }
  }
}

HostTensor GpuDevice::download_rows(Tensor tensor) {
  const int number = static_cast<int>(tensor);
  HostTensor rows = make_tensor(problem_.dtype, stored_shape(problem_, number));
  if (problem_.strides.empty()) return download(tensor, std::move(rows));
  std::vector<std::byte> stored(buffer(tensor)->size);
  synchronize();
  download(*buffer(tensor), stored.data());
  synchronize();
  gather_rows(problem_, number, stored.data(), rows);
  if (!gaps_unwritten(problem_, number, stored))
    damaged_.push_back(std::string("the rows of ") + name_of(tensor).in_text);
  return rows;
}

HostTensor GpuDevice::download_output() {
  return download_rows(Tensor::o);
}

HostTensor GpuDevice::download_lse() {
  return download(Tensor::lse, make_tensor(Dtype::f32, lse_shape(problem_)));
}

Gradients GpuDevice::download_gradients() {
  return {download_rows(Tensor::d_q), download_rows(Tensor::d_k), download_rows(Tensor::d_v)};
}

HostTensor GpuDevice::download(Tensor source, HostTensor target) {
  const Buffer* held = buffer(source);
  if (!held) throw std::logic_error("the problem has no such tensor");
  synchronize();
  download(*held, target.bytes.data());
  synchronize();
  return target;
}

std::vector<std::string> GpuDevice::damaged_red_zones() {
  synchronize();
  std::vector<std::string> damaged = std::exchange(damaged_, {});
  if (options_.red_zone == 0) return damaged;
  std::vector<std::byte> copy(options_.red_zone);
  const auto check = [&](const Region& checked) {
    bool intact = true;
    for (const std::byte* zone : checked.zones()) {
      check_cuda(cudaMemcpyAsync(copy.data(), zone, checked.zone, cudaMemcpyDeviceToHost, stream_),
                 "reading a red zone");
      synchronize();
      intact &= std::all_of(copy.begin(), copy.end(),
                            [](std::byte byte) { return byte == kRedZonePattern; });
    }
    if (intact) return;
    damaged.emplace_back(checked.name);
    write_red_zones(checked);
  };
  for (const auto& [tensor, checked] : buffers_) check(checked);
  // The memory of a plan that was launched since the last poisoning only has other contents.
  if (scratch_zoned_) {
    for (const Region& checked : scratch_) check(checked);
  }
  return damaged;
}

std::vector<std::string> GpuDevice::nonzero_scratch() {
  synchronize();
  std::vector<std::string> nonzero;
  for (const Buffer& held : zeroed_) {
    std::vector<std::byte> copy(held.size);
    download(held, copy.data());
    if (std::ranges::all_of(copy, [](std::byte byte) { return byte == std::byte{0}; })) continue;
    nonzero.emplace_back(held.name);
    zero(held);
  }
  return nonzero;
}

std::optional<KernelResources> GpuDevice::resources(const Launch& launch) {
  allow_dynamic_shared(launch);
  const std::string what = fmt::format("asking for the resources of {}", launch.entry);
  cudaFuncAttributes attributes{};
  check_cuda(cudaFuncGetAttributes(&attributes, launch.kernel), what);
  int blocks = 0;
  check_cuda(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, launch.kernel, launch.block,
                                                           launch.dynamic_shared),
             what);
  return KernelResources{.sm = description_.sm,
                         .threads = launch.block,
                         .registers = attributes.numRegs,
                         .static_shared = attributes.sharedSizeBytes,
                         .dynamic_shared = launch.dynamic_shared,
                         .local_bytes = attributes.localSizeBytes,
                         .blocks_per_sm = blocks};
}

}  // namespace fa
