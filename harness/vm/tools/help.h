// SPDX-License-Identifier: MIT
// What --help prints.
#pragma once

#include <string_view>

namespace ptxvm::tools {

inline constexpr std::string_view kVersion = "ptxvm " PTXVM_VERSION_TEXT "\n";

inline constexpr std::string_view kHelp =
    "ptxvm: runs PTX on the CPU, counts what it does, and finds its races\n"
    "\n"
    "  ptxvm run FILE.ptx [--entry NAME] [--grid X[,Y,Z]] [--block X[,Y,Z]] [--arg ARGUMENT]...\n"
    "      Launches kernels; prints counts, hints and findings.\n"
    "  ptxvm exec PROGRAM [ARGUMENT]...\n"
    "      Runs a compiled CUDA program: its host code here, its kernels on the machine.\n"
    "  ptxvm check FILE.ptx\n"
    "      One line a kernel: whether it would run, and why not.\n"
    "  ptxvm list FILE.ptx\n"
    "      Entries, their parameters and memory, variables, what is not supported.\n"
    "  ptxvm isa [MNEMONIC] [--json]\n"
    "      Instructions that run, or all that begin with MNEMONIC.\n"
    "  ptxvm COMMAND --help\n"
    "      The options of a command.\n"
    "  ptxvm --version\n"
    "\n"
    "Exit codes: 0 good; 1 the kernel failed or a checker found an error; 2 the command line or "
    "an\n"
    "input is refused; 3 a file cannot be read or written, or memory is full.\n";

inline constexpr std::string_view kRunHelp =
    "ptxvm run FILE.ptx [OPTION]...\n"
    "\n"
    "The launch\n"
    "  --entry NAME       the kernel: its name, its name in the source, or a part of either;\n"
    "                     not needed where the file has one\n"
    "  --grid X[,Y,Z]     blocks; 1 where it is not given\n"
    "  --block X[,Y,Z]    threads; not needed where the kernel requires a number (.reqntid)\n"
    "  --cluster X[,Y,Z]  blocks of a cluster\n"
    "  --smem BYTES       dynamic shared memory\n"
    "  --arg ARGUMENT     the next argument\n"
    "  --global NAME=ARGUMENT   a __device__ or __constant__ variable: FILE.npy, a scalar, "
    "raw:HEX;\n"
    "                     out:FILE.npy:TYPE[EXTENTS] writes it to the file afterwards\n"
    "  --then             begins another launch on the same memory; what is not given again stays\n"
    "Arguments, in the kernel's order\n"
    "  Q.npy                    buffer with the contents of a file\n"
    "  inout:Q.npy              the same, written back to the file afterwards\n"
    "  out:O.npy:float16[2,64]  buffer of NaN (all bits set), written to the file afterwards\n"
    "  zero:NAME:float32[64]    buffer of zeros; written if NAME ends in .npy\n"
    "  buffer:NAME[+BYTES]      the buffer that an earlier argument made; a file's name without "
    ".npy\n"
    "  i32:7 bf16:0.5 bool:1    scalar\n"
    "  raw:00ff                 bytes, in the order of memory\n"
    "  struct:Q.npy;i32:7       members as C lays them out; tensor maps too\n"
    "  tmap:Q.npy:box=64,64[:swizzle=128][:dims=...][:strides=BYTES,...]\n"
    "                           tensor map of a buffer; extents outermost first, as the array's\n"
    "  Types: float16 bfloat16 float32 float64 int8 uint8 int16 uint16 int32 uint32 int64 uint64\n"
    "  bool, or f16 bf16 f32 f64 i8 u8 i16 u16 i32 u32 i64 u64. A .npy file of bfloat16 has type "
    "V2.\n"
    "The report\n"
    "  --json             one JSON document\n"
    "  --by-line          counts by source line\n"
    "  --no-hints         counts and findings only\n"
    "  --no-checkers      do not look for races and the like\n"
    "  --global-races     look for races between blocks in global memory too; slow\n"
    "  --ignore NAME,...  leave out findings of these checkers\n"
    "  --no-comments      do not honour `// ptxvm: ignore NAME` in sources\n"
    "  --all              findings and errors in full, however long\n"
    "The machine\n"
    "  --cooperative      all blocks are resident at once, and may wait for each other\n"
    "  --card NAME        of which card (a100, h100, h200, ...): how many blocks it holds at once\n"
    "  --registers N      of a thread, as ptxas says: they limit those blocks\n"
    "  --max-steps N      instructions of all warps before a launch is stopped\n"
    "  --max-local BYTES  local memory of all threads that run at once; 512 MB if not given\n"
    "  --threads N        of the host\n"
    "  --reversed         warps and blocks take their turns last to first\n"
    "  --overwrite        outputs may replace files that are no .npy\n";

inline constexpr std::string_view kExecHelp =
    "ptxvm exec [OPTION]... PROGRAM [ARGUMENT]...\n"
    "\n"
    "Runs a program of nvcc 13 as it is, without a GPU: CUDA's runtime in it is replaced by one "
    "whose\n"
    "card is the machine. Findings go to standard error. The exit code is the program's; where "
    "that "
    "is\n"
    "0, it is 1 after a fault or a finding, and 2 where something of CUDA or a kernel is missing.\n"
    "\n"
    "  --counts           the counts of each launch\n"
    "  --no-checkers --global-races --ignore NAME,... --no-comments --all\n"
    "  --registers N --max-steps N --max-local BYTES --threads N --reversed\n"
    "                     as for ptxvm run\n"
    "  --card NAME        what the program sees; an H200, or the next card that it has PTX for\n"
    "\n"
    "A program that is stripped needs nvcc -cudart shared. Everything is done when it is asked "
    "for:\n"
    "a launch or a copy on a stream has ended when the call returns. Times are those of the CPU.\n";

inline constexpr std::string_view kCheckHelp =
    "ptxvm check FILE.ptx [--all]\n"
    "\n"
    "One line a kernel: `runs`, or `refused` with the first reason. Exit code 1 where one is\n"
    "refused. --all shows long names in full.\n";

inline constexpr std::string_view kListHelp =
    "ptxvm list FILE.ptx [--all]\n"
    "\n"
    "Entries of the file, their parameters and memory, the module's variables, and what is not\n"
    "supported. Without --all at most 40 lines.\n";

inline constexpr std::string_view kIsaHelp =
    "ptxvm isa [MNEMONIC] [--json]\n"
    "\n"
    "The rows of the instruction table, or those with a spelling that begins with MNEMONIC, such\n"
    "as cp.async.bulk.tensor.2d. A choice is written {a|b}, what may be left out [a].\n";

}  // namespace ptxvm::tools
