// SPDX-License-Identifier: MIT
// What stands behind CUDA's runtime in a program that `ptxvm exec` runs: one card, its memory, the
// modules of the program, and what was found so far.
#pragma once

#include <cuda_runtime_api.h>

#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cuda/fatbin.h"
#include "ptxvm/launch.h"
#include "ptxvm/module.h"
#include "tools/machine_options.h"

namespace ptxvm::cuda {

/// A function of the runtime ends with this error. `what` goes to standard error.
struct Failure {
  cudaError_t code;
  std::string what;
};

/// What the program has registered at once, and becomes one module.
struct Image {
  std::vector<FatBinary> binaries;
  std::string broken;  ///< Why there is no module.
  std::optional<Module> module;
  std::vector<std::pair<void**, std::string>> managed;  ///< Where the host keeps their addresses.
};

/// A kernel, known to the program by the address of its stub.
struct Function {
  Image* image = nullptr;
  std::string name;
  int most_dynamic = -1;  ///< cudaFuncAttributeMaxDynamicSharedMemorySize; -1: not set.
};

/// A `__device__` or `__constant__` variable, known to the program by the address of its shadow.
struct Symbol {
  Image* image = nullptr;
  std::string name;
};

/// How bad what was found is; the exit code of `ptxvm exec` where the program itself says 0.
enum class Verdict : uint8_t { kGood = 0, kFinding = 1, kRefused = 2 };

/// There is one in a process. All of it is used inside `call`.
class Machine {
 public:
  static Machine& get();
  /// Null where the program has not used it yet.
  static const Machine* made() { return made_; }

  /// Runs `f(machine)`, which returns an error or throws, for one function of the runtime.
  template <class F>
  static cudaError_t call(F f) {
    Machine& m = get();
    // A callback of the program, which runs inside of a call, may call again.
    const std::lock_guard lock(m.mutex_);
    return m.remember(m.guarded([&] { return f(m); }));
  }

  /// cudaPeekAtLastError, and with `clear` cudaGetLastError.
  cudaError_t last_error(bool clear);

  /// Prints a message once, after what the program has printed itself.
  void report(std::string_view text, Verdict verdict);
  Verdict verdict() const { return verdict_; }
  /// The last line: in how many launches there were errors. Empty where in none.
  std::string summary() const;

  const Card& card();
  const std::string& program() const { return program_; }

  Image* add_image(const void* wrapper);
  void add_function(const void* stub, Function function) { functions_[stub] = std::move(function); }
  void add_symbol(const void* shadow, Symbol symbol) { symbols_[shadow] = std::move(symbol); }
  /// They throw Failure.
  Function& function(const void* stub);
  const Module& module(Image& image);
  const Kernel& kernel(const Function& function);
  std::span<std::byte> symbol(const void* shadow);
  Address symbol_address(const void* shadow);
  /// Storage of a variable by its name.
  std::span<std::byte> variable(Image& image, const std::string& name);

  /// Dynamic shared memory that a launch of the kernel may ask for.
  uint32_t most_dynamic(const Function& function);
  cudaError_t launch(Function& function, LaunchConfig config, void** arguments);

  /// Bytes of `count` at a pointer of the program, in the card's memory or the host's. Throws where
  /// they leave a buffer, and where `device` asks for a buffer and there is none.
  std::byte* at(const void* pointer, size_t count, bool device);
  void* allocate(size_t bytes);
  void* map(size_t bytes, cudaMemoryType type);
  void release(void* pointer);
  /// cudaMemoryTypeUnregistered for what is no memory of the card.
  cudaMemoryType type_of(const void* pointer);
  size_t total_bytes() const;
  size_t free_bytes() const { return total_bytes() - std::min(total_bytes(), used_); }

 private:
  Machine();
  cudaError_t remember(cudaError_t code);
  cudaError_t failed(const Failure& failure);

  template <class F>
  cudaError_t guarded(F f) {
    if (sticky_ != cudaSuccess) return sticky_;
    try {
      return f();
    } catch (const Failure& e) {
      return failed(e);
    } catch (const Error& e) {
      return failed({cudaErrorInvalidValue, e.what()});
    } catch (const std::bad_alloc&) {
      return cudaErrorMemoryAllocation;
    }
  }

  static inline Machine* made_ = nullptr;
  std::recursive_mutex mutex_;
  tools::MachineOptions wanted_;
  bool counts_ = false;
  std::string program_;
  std::optional<Card> card_;
  Memory memory_;
  size_t used_ = 0, named_ = 0;
  std::map<Address, cudaMemoryType> mapped_;
  std::list<Image> images_;
  std::unordered_map<const void*, Function> functions_;
  std::unordered_map<const void*, Symbol> symbols_;
  std::set<std::string, std::less<>> said_;
  Verdict verdict_ = Verdict::kGood;
  uint64_t launches_ = 0, bad_launches_ = 0;
  cudaError_t sticky_ = cudaSuccess;  ///< After a fault nothing but this is answered.
};

}  // namespace ptxvm::cuda
