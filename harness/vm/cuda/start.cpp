// SPDX-License-Identifier: MIT
// Before main: calls of a runtime that is linked into the program are led here. After it: the exit
// code.
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>
#include <string_view>

#include "cuda/machine.h"

namespace ptxvm::cuda {
namespace {

[[noreturn]] void refuse(const std::string& text) {
  std::fprintf(stderr, "ptxvm: %s\n", text.c_str());
  _exit(static_cast<int>(Verdict::kRefused));
}

void* own_library() {
  Dl_info here;
  dladdr(reinterpret_cast<void*>(&cudaMalloc), &here);
  return dlopen(here.dli_fname, RTLD_NOW | RTLD_NOLOAD);
}

/// Where the program is in memory: what to add to the addresses of its file.
uintptr_t program_base() {
  uintptr_t base = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        *static_cast<uintptr_t*>(out) = info->dlpi_addr;
        return 1;  // the first is the program
      },
      &base);
  return base;
}

/// What the program's file says about itself.
class Elf {
 public:
  explicit Elf(std::string_view file) : file_(file) {
    if (file_.size() < sizeof(Elf64_Ehdr) || !file_.starts_with(ELFMAG) ||
        file_[EI_CLASS] != ELFCLASS64) {
      return;
    }
    const auto& header = *reinterpret_cast<const Elf64_Ehdr*>(file_.data());
    if (header.e_shoff + header.e_shnum * sizeof(Elf64_Shdr) > file_.size()) return;
    sections_ = {reinterpret_cast<const Elf64_Shdr*>(file_.data() + header.e_shoff),
                 header.e_shnum};
    if (header.e_shstrndx < sections_.size()) names_ = bytes(sections_[header.e_shstrndx]);
  }

  std::string_view section(std::string_view name) const {
    for (const Elf64_Shdr& each : sections_) {
      if (each.sh_name < names_.size() && names_.data() + each.sh_name == name) return bytes(each);
    }
    return {};
  }

  /// f(name, symbol) for the functions of the program itself.
  template <class F>
  void functions(F f) const {
    const std::string_view table = section(".symtab"), names = section(".strtab");
    for (size_t at = 0; at + sizeof(Elf64_Sym) <= table.size(); at += sizeof(Elf64_Sym)) {
      const auto& symbol = *reinterpret_cast<const Elf64_Sym*>(table.data() + at);
      if (symbol.st_shndx != SHN_UNDEF && ELF64_ST_TYPE(symbol.st_info) == STT_FUNC &&
          symbol.st_name < names.size()) {
        f(std::string_view(names.data() + symbol.st_name), symbol);
      }
    }
  }

 private:
  std::string_view bytes(const Elf64_Shdr& section) const {
    if (section.sh_type == SHT_NOBITS || section.sh_offset + section.sh_size > file_.size()) {
      return {};
    }
    return {file_.data() + section.sh_offset, section.sh_size};
  }

  std::string_view file_;
  std::span<const Elf64_Shdr> sections_;
  std::string_view names_;
};

/// The program's file; it stays in memory. Empty where it cannot be read.
std::string_view program_file() {
  const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  struct stat about {};
  if (file < 0 || fstat(file, &about) != 0) return {};
  const auto bytes = static_cast<size_t>(about.st_size);
  const void* const at = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  if (at == MAP_FAILED) return {};
  return {static_cast<const char*>(at), bytes};
}

#ifdef __x86_64__
/// From now on a call of the function at `from` is one of `to`.
void redirect(uintptr_t from, void* to) {
  unsigned char jump[14] = {0xff, 0x25};  // jmp *0(%rip), and behind it the address
  std::memcpy(jump + 6, &to, sizeof to);
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t first = from / page * page;
  void* const place = reinterpret_cast<void*>(first);  // NOLINT(performance-no-int-to-ptr)
  const size_t bytes = from + sizeof jump - first;
  if (mprotect(place, bytes, PROT_READ | PROT_WRITE) != 0) {
    refuse("this system does not let the program be changed: compile with nvcc -cudart shared");
  }
  std::memcpy(reinterpret_cast<void*>(from), jump, sizeof jump);
  mprotect(place, bytes, PROT_READ | PROT_EXEC);
}
#endif

/// nvcc links the runtime into the program, where nothing else names it. The program's own table of
/// symbols says where its functions are.
void take_over_linked_runtime() {
  const Elf program(program_file());
  if (program.section(".nv_fatbin").empty()) return;
  if (program.section(".dynstr").find("libcudart.so.") != std::string_view::npos) return;
  if (program.section(".symtab").empty()) {
    refuse(
        "this program has CUDA's runtime linked into it, and no table of symbols: link it "
        "without strip, or with nvcc -cudart shared");
  }
#ifdef __x86_64__
  void* const library = own_library();
  const uintptr_t base = program_base();
  program.functions([&](std::string_view name, const Elf64_Sym& symbol) {
    if (!name.starts_with("cuda") && !name.starts_with("__cuda")) return;
    if (name == "cudaGetDeviceProperties_v2") {
      refuse(
          "this program has the runtime of CUDA 12 linked into it; ptxvm exec knows that of "
          "CUDA " +
          std::to_string(CUDART_VERSION / 1000));
    }
    void* const own = dlsym(library, std::string(name).c_str());
    if (own) redirect(base + symbol.st_value, own);
  });
#else
  refuse(
      "on this processor only a program with a shared runtime runs: compile with nvcc -cudart "
      "shared");
#endif
}

void at_exit(int code, void*) {
  const Machine* const machine = Machine::made();
  if (!machine || machine->verdict() == Verdict::kGood) return;
  std::cout.flush();
  std::fflush(nullptr);
  std::fputs(machine->summary().c_str(), stderr);
  if (code == 0) _exit(static_cast<int>(machine->verdict()));
}

__attribute__((constructor)) void start() {
  take_over_linked_runtime();
  on_exit(at_exit, nullptr);
}

}  // namespace
}  // namespace ptxvm::cuda

/// What every function of the runtime is that nothing here defines.
extern "C" int ptxvm_missing(const char* name) {
  using namespace ptxvm::cuda;
  return Machine::call([&](Machine& m) {
    m.report("this program calls " + std::string(name) + ", which ptxvm exec does not have",
             Verdict::kRefused);
    return cudaErrorNotSupported;
  });
}
