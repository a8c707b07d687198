// SPDX-License-Identifier: MIT
#include "cuda/machine.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "memory/spaces.h"
#include "program/program.h"
#include "ptxvm/races.h"
#include "ptxvm/report.h"

namespace ptxvm::cuda {
namespace {

thread_local cudaError_t last = cudaSuccess;

constexpr size_t kLongestMessage = 40;   // lines, without --all
constexpr uint32_t kDynamic = 48 << 10;  // shared memory of a block that asks for no more

std::string show(Dim3 d) {
  return "(" + std::to_string(d.x) + ", " + std::to_string(d.y) + ", " + std::to_string(d.z) + ")";
}

std::vector<std::string> words_of(const char* text) {
  std::vector<std::string> out;
  std::string_view rest = text ? text : "";
  while (!rest.empty()) {
    const size_t end = rest.find('\n');
    out.emplace_back(rest.substr(0, end));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  return out;
}

cudaError_t code_of(const Fault& fault) {
  switch (fault.kind) {
    case FaultKind::kOutOfBounds:
      return cudaErrorIllegalAddress;
    case FaultKind::kMisaligned:
      return cudaErrorMisalignedAddress;
    case FaultKind::kDeadlock:
    case FaultKind::kStepLimit:
      return cudaErrorLaunchTimeout;
    case FaultKind::kTrap:
      // As the machine words what a failed assert prints.
      return fault.message.find("Assertion `") == std::string::npos ? cudaErrorLaunchFailure
                                                                    : cudaErrorAssert;
    default:
      return cudaErrorIllegalInstruction;
  }
}

std::string formatted(std::span<const Diagnostic> diagnostics) {
  std::string out;
  for (const Diagnostic& d : diagnostics) out += d.format() + "\n";
  return out;
}

}  // namespace

Machine& Machine::get() {
  // Never destroyed: destructors of the program still use it.
  static Machine* const machine = made_ = new Machine();
  return *machine;
}

Machine::Machine() {
  std::error_code ignored;
  program_ = std::filesystem::read_symlink("/proc/self/exe", ignored).filename().string();
  const std::vector<std::string> words = words_of(std::getenv("PTXVM_EXEC"));
  for (size_t at = 0; at < words.size(); ++at) {
    if (words[at] == "--counts") {
      counts_ = true;
    } else {
      tools::take_machine_option(words, at, "exec", wanted_);
    }
  }
}

cudaError_t Machine::remember(cudaError_t code) {
  if (code != cudaSuccess && code != cudaErrorNotReady) last = code;
  return code;
}

cudaError_t Machine::failed(const Failure& failure) {
  // What the machine lacks is the machine's; the rest a card would refuse as well.
  const bool lacks =
      failure.code == cudaErrorNoKernelImageForDevice || failure.code == cudaErrorNotSupported;
  if (!failure.what.empty()) report(failure.what, lacks ? Verdict::kRefused : Verdict::kFinding);
  return failure.code;
}

cudaError_t Machine::last_error(bool clear) {
  const std::lock_guard lock(mutex_);
  const cudaError_t out = sticky_ != cudaSuccess ? sticky_ : last;
  if (clear) last = cudaSuccess;
  return out;
}

void Machine::report(std::string_view text, Verdict verdict) {
  verdict_ = std::max(verdict_, verdict);
  if (!said_.emplace(text).second) return;
  std::fflush(stdout);
  std::string out = capped("ptxvm: " + std::string(text), wanted_.all ? SIZE_MAX : kLongestMessage,
                           "--all shows them");
  if (!out.ends_with('\n')) out += '\n';
  std::fputs(out.c_str(), stderr);
}

std::string Machine::summary() const {
  if (bad_launches_ == 0) return {};
  return "ptxvm: errors in " + std::to_string(bad_launches_) + " of " + std::to_string(launches_) +
         " launches\n";
}

const Card& Machine::card() {
  if (card_) return *card_;
  if (!wanted_.card.empty()) {
    card_ = ptxvm::card(wanted_.card);
    return *card_;
  }
  // The first from Hopper on that runs all of the program, as far as it has PTX.
  const auto runs = [](const Image& image, int sm) {
    return std::ranges::any_of(image.binaries, [&](const auto& b) { return choose(b, sm); });
  };
  const Card* best = &kH200;
  size_t most = 0;
  for (const Card& each : cards()) {
    if (each.sm < kH200.sm) continue;
    const Card& it = each.sm == kH200.sm ? kH200 : each;
    const auto count = static_cast<size_t>(
        std::ranges::count_if(images_, [&](const Image& image) { return runs(image, it.sm); }));
    if (count > most) best = &it;
    most = std::max(most, count);
  }
  card_ = *best;
  return *card_;
}

Image* Machine::add_image(const void* wrapper) {
  Image& image = images_.emplace_back();
  try {
    image.binaries = read_fat_binaries(wrapper);
  } catch (const Error& e) {
    image.broken = e.what();
  }
  return &image;
}

Function& Machine::function(const void* stub) {
  const auto found = functions_.find(stub);
  if (found == functions_.end()) {
    throw Failure{cudaErrorInvalidDeviceFunction, "this is no kernel of the program"};
  }
  return found->second;
}

const Module& Machine::module(Image& image) {
  if (image.module) return *image.module;
  if (!image.broken.empty()) throw Failure{cudaErrorNoKernelImageForDevice, image.broken};
  std::string text, there;
  for (const FatBinary& binary : image.binaries) {
    if (const FatEntry* const entry = choose(binary, card().sm)) text += entry->text;
    for (const FatEntry& each : binary) {
      there += (there.empty() ? "" : ", ") + std::string(each.ptx ? "PTX" : "machine code") +
               " for sm_" + std::to_string(each.sm);
    }
  }
  try {
    if (text.empty()) {
      throw Error(program_ + " has no PTX for the " + std::string(card().name) + ", only " + there +
                  ": compile with nvcc -arch=sm_90, or add "
                  "-gencode arch=compute_90,code=compute_90");
    }
    image.module = Module::parse(std::move(text), program_ + ".ptx");
  } catch (const Error& e) {
    image.broken = e.what();
    throw Failure{cudaErrorNoKernelImageForDevice, image.broken};
  }
  return *image.module;
}

const Kernel& Machine::kernel(const Function& function) {
  const Module& loaded = module(*function.image);
  for (const Kernel& each : loaded.kernels()) {
    if (each.name() == function.name) return each;
  }
  throw Failure{cudaErrorInvalidDeviceFunction,
                "there is no PTX of the kernel " + demangle(function.name)};
}

std::span<std::byte> Machine::variable(Image& image, const std::string& name) {
  return memory_.variable(module(image), name);
}

std::span<std::byte> Machine::symbol(const void* shadow) {
  const auto found = symbols_.find(shadow);
  if (found == symbols_.end()) throw Failure{cudaErrorInvalidSymbol, ""};
  return variable(*found->second.image, found->second.name);
}

Address Machine::symbol_address(const void* shadow) {
  symbol(shadow);
  const Symbol& wanted = symbols_.at(shadow);
  const ModuleData& data = wanted.image->module->data();
  for (const GlobalVariable& v : data.globals) {
    if (v.name == wanted.name) return v.address;
  }
  throw Failure{cudaErrorNotSupported, "the address of the __constant__ variable " +
                                           demangle(wanted.name) +
                                           " is not given to the host: use cudaMemcpyToSymbol"};
}

uint32_t Machine::most_dynamic(const Function& function) {
  const uint32_t fixed = kernel(function).static_shared_bytes();
  if (function.most_dynamic >= 0) return static_cast<uint32_t>(function.most_dynamic);
  return kDynamic - std::min(kDynamic, fixed);
}

cudaError_t Machine::launch(Function& function, LaunchConfig config, void** arguments) {
  const Kernel& entry = kernel(function);
  const std::string who = entry.readable_name();
  if (!entry.errors().empty() || !entry.unsupported().empty()) {
    throw Failure{
        cudaErrorNoKernelImageForDevice,
        who + " does not run:\n" + formatted(entry.errors()) + formatted(entry.unsupported())};
  }
  if (config.dynamic_shared_bytes > most_dynamic(function)) {
    throw Failure{cudaErrorInvalidValue, who + ": a launch with " +
                                             std::to_string(config.dynamic_shared_bytes) +
                                             " bytes of dynamic shared memory; more than " +
                                             std::to_string(most_dynamic(function)) +
                                             " need cudaFuncSetAttribute(..., "
                                             "cudaFuncAttributeMaxDynamicSharedMemorySize, ...)"};
  }
  size_t i = 0;
  for (const Parameter& parameter : entry.parameters()) {
    config.arguments.push_back(
        Argument::raw({static_cast<const std::byte*>(arguments[i++]), parameter.size}));
  }

  Counters counters;
  Races races;
  GlobalRaces global_races;
  Options options = wanted_.launch_options();
  options.card = card();
  if (counts_) options.observers.push_back(&counters);
  if (wanted_.checkers) options.observers.push_back(&races);
  if (wanted_.global_races) options.observers.push_back(&global_races);
  LaunchResult result;
  try {
    result = ptxvm::launch(*function.image->module, entry.name(), config, memory_, options);
  } catch (const Error& e) {
    throw Failure{cudaErrorInvalidConfiguration, e.what()};
  }
  ++launches_;
  std::fwrite(result.printed.data(), 1, result.printed.size(), stdout);

  const std::string head =
      who + ": grid " + show(config.grid) + ", block " + show(config.block) + "\n";
  if (counts_) std::fputs(("ptxvm: " + head + format(counters.report().total)).c_str(), stderr);
  const Filtered kept =
      filter(std::move(result.findings), entry, FindingFilter{wanted_.ignored, wanted_.comments});
  if (result.fault || kept.errors()) ++bad_launches_;
  if (!kept.findings.empty()) {
    report(head + format(kept.findings, entry, wanted_.all ? SIZE_MAX : kLongestMessage),
           kept.errors() ? Verdict::kFinding : Verdict::kGood);
  }
  if (!result.fault) return cudaSuccess;
  report(head + result.fault->format(), Verdict::kFinding);
  return sticky_ = code_of(*result.fault);
}

std::byte* Machine::at(const void* pointer, size_t count, bool device) {
  const auto address = reinterpret_cast<Address>(pointer);
  const Buffer* const buffer = memory_.find(address);
  if (!buffer) {
    if (!device) return static_cast<std::byte*>(const_cast<void*>(pointer));
    throw Failure{cudaErrorInvalidValue, "a copy or a memset of what is no memory of the card"};
  }
  const uint64_t offset = address - buffer->address;
  if (!buffer->host || offset > buffer->bytes || count > buffer->bytes - offset) {
    throw Failure{cudaErrorInvalidValue,
                  "a copy or a memset of " + std::to_string(count) + " bytes at +" +
                      std::to_string(static_cast<int64_t>(offset)) + " of '" + buffer->name +
                      "', which has " +
                      (buffer->host ? std::to_string(buffer->bytes) + " bytes" : "been freed")};
  }
  // Asked for by the host, it counts as written.
  return memory_.bytes(buffer->address).data() + offset;
}

void* Machine::allocate(size_t bytes) {
  if (bytes > free_bytes()) throw std::bad_alloc();
  const Address address = memory_.allocate("cudaMalloc " + std::to_string(++named_), bytes);
  used_ += bytes;
  return reinterpret_cast<void*>(address);
}

void* Machine::map(size_t bytes, cudaMemoryType type) {
  const char* const kind = type == cudaMemoryTypeManaged ? "cudaMallocManaged " : "cudaMallocHost ";
  const Address address = memory_.map(kind + std::to_string(++named_), bytes);
  mapped_[address] = type;
  return reinterpret_cast<void*>(address);
}

void Machine::release(void* pointer) {
  if (!pointer) return;
  const auto address = reinterpret_cast<Address>(pointer);
  const Buffer* const buffer = memory_.find(address);
  if (!buffer || buffer->address != address || !buffer->host) {
    throw Failure{cudaErrorInvalidValue, "cudaFree of what is not allocated, or is free already"};
  }
  if (mapped_.erase(address) == 0) used_ -= buffer->bytes;
  memory_.release(address);
}

cudaMemoryType Machine::type_of(const void* pointer) {
  const Buffer* const buffer = memory_.find(reinterpret_cast<Address>(pointer));
  if (!buffer || !buffer->host) return cudaMemoryTypeUnregistered;
  const auto found = mapped_.find(buffer->address);
  return found == mapped_.end() ? cudaMemoryTypeDevice : found->second;
}

size_t Machine::total_bytes() const {
  // Every page of a buffer is written when it is made.
  static const auto pages = static_cast<size_t>(sysconf(_SC_PHYS_PAGES));
  static const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return pages * page / 2;
}

}  // namespace ptxvm::cuda
