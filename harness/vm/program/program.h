// SPDX-License-Identifier: MIT
// A kernel ready to run: flat operations, a constant pool, tables for reports.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "isa/special_registers.h"
#include "isa/table.h"
#include "ptxvm/launch.h"
#include "ptxvm/module.h"
#include "text/source.h"

namespace ptxvm {

struct Warp;
struct Op;

/// What the interpreter does after an operation.
enum class Step : uint8_t {
  kNext,     ///< Go on with the following operation.
  kJump,     ///< Go on at `Warp::pc`; the active lanes may have changed.
  kBlocked,  ///< The warp waits; the operation has been taken (a barrier) and is not run again.
  kRetry,    ///< The warp polls; the operation runs again at its next turn.
  kYield,    ///< The turn is over; the warp goes on at `Warp::pc`.
  kSwitch,   ///< These lanes wait for others of their warp; the operation runs again.
  kExit,     ///< No lane is left.
};

using ExecFn = Step (*)(Warp&, const Op&);

/// Where an operand stands: a byte offset into the register file of the warp, or into the constant
/// pool of the kernel, with flags in the low bits. A 32-bit value takes 32 lanes of 4 bytes (narrow
/// types are kept zero-extended), a 64-bit value 32 lanes of 8, a predicate one mask of 32 bits. A
/// 128-bit register is two of 64 bits, the lower half first, and two operands.
using Ref = uint32_t;
inline constexpr Ref kRefPool = 1;                ///< Offset into the constant pool.
inline constexpr Ref kRefWide = 2;                ///< 64-bit lanes.
inline constexpr Ref kRefNegate = 4;              ///< Predicate source with `!`.
inline constexpr Ref kRefPredicate = kRefNegate;  ///< In Function::registers: a predicate.
inline constexpr Ref kRefFlags = 15;
inline constexpr uint32_t kRegisterLine = 128;  ///< Bytes of a 32-bit register.
inline constexpr Ref kNoRef = 0xfffffff0u;  ///< An optional operand or a guard that is not there.
inline constexpr Ref kAddedOp =
    0xfffffff1u;  ///< As a guard: none, and the lowering added the operation.

/// In place of the numbers of parts: none were picked.
inline constexpr uint32_t kAllParts = 0xffffffffu;

/// What an operation does. Lowering says it; execution links the code to it (exec/link.h).
enum class Action : uint8_t {
  kInstruction,  ///< The spelling of its instruction.
  kPack,         ///< mov with a vector on one side or both; aux is a PackShape.
  kEnterBlock,   ///< At the start of a basic block; operands: its number, its instructions.
  kJump,         ///< Go on at the operation that operand 0 names.
  kExit,         ///< The end of the text.
  kCall,         ///< Call; operand 0 is an index into Program::calls.
  kReturn,       ///< Back to where the function was called.
  kFrameAccess,  ///< ld.param and st.param of what calls pass: the spelling of its instruction.
  kRefresh,      ///< A moving special register, aux its name, is about to be read; operands: its
                 ///< slot, the reader's place in the block.
};

/// What the action or the code of an operation wants to know: a small struct of their own, or a
/// number. Only they know its type.
class Aux {
 public:
  Aux() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): binders name their fields and nothing else.
  template <class T>
  Aux(const T& fields) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof bits_);
    std::memcpy(&bits_, &fields, sizeof fields);
  }
  template <class T>
  T as() const {
    T fields;
    std::memcpy(static_cast<void*>(&fields), &bits_, sizeof fields);
    return fields;
  }

 private:
  uint64_t bits_ = 0;
};

/// Bits of one element of a mov with vectors, and elements on either side; 0 where a whole stands.
struct PackShape {
  uint8_t element_bits = 0, destinations = 0, sources = 0;
};

/// One operation. Operands are flattened in the order of the text: a vector gives its elements, an
/// address gives base and constant offset (as a signed number, not a Ref) and then its coordinates,
/// an immediate its value, `p|q` two entries, a label the index of the operation to jump to. After
/// an operand of parts comes which of them (video.cpp), four bits each.
struct alignas(64) Op {
  ExecFn fn = nullptr;             ///< Null until the program is linked.
  Ref guard = kNoRef;              ///< A predicate, kNoRef or kAddedOp.
  uint32_t instruction = 0;        ///< Index into Program::instructions.
  uint32_t r[8] = {};              ///< The first eight operands.
  const uint32_t* list = nullptr;  ///< All of them.
  Aux aux;
};
static_assert(sizeof(Op) == 64);

/// Variable in shared, local or constant space.
struct Variable {
  std::string name;
  uint32_t offset = 0, bytes = 0;
};

/// Special register that the kernel reads, and the slot that holds it.
struct SpecialSlot {
  const isa::SpecialRow* row = nullptr;
  uint32_t offset = 0;
};

/// Where a variable stands in the frame of its function, and the register that holds its address.
struct FrameSlot {
  Ref slot = kNoRef;
  uint32_t offset = 0;
};

/// A parameter or result of a function, in its frame.
struct FramePart {
  uint32_t offset = 0, bytes = 0;
};

/// A function that the kernel may call. Its registers have places of their own; its variables and
/// parameters stand in a frame on the stack of each thread, in local memory.
struct Function {
  std::string name;
  Address address = 0;       ///< As a function pointer.
  uint32_t first = 0;        ///< Its first operation.
  uint32_t frame_bytes = 0;  ///< A multiple of 16.
  bool recursive = false;    ///< May be called while it runs.
  std::vector<FrameSlot> slots;
  std::vector<FramePart> parameters, returns;
  std::vector<Ref> registers;  ///< All of them; a recursive call keeps them.
};

/// Functions that the machine provides.
enum class System : uint8_t { kNone, kPrintf, kAssert, kMalloc, kFree };

/// A call and what it passes.
struct CallSite {
  static constexpr uint32_t kIndirect = 0xffffffffu;

  /// A variable of the caller: a register or constant that holds its local address.
  struct Passed {
    Ref address = kNoRef;
    uint32_t bytes = 0;
  };

  uint32_t function = kIndirect;  ///< Index into Program::functions.
  System system = System::kNone;
  Ref target = kNoRef;  ///< Of an indirect call: the function's address.
  std::vector<Passed> arguments, returns;

  /// What is passed has the sizes that the function takes and gives.
  bool fits(const Function& f) const {
    const auto same = [](const std::vector<Passed>& have, const std::vector<FramePart>& want) {
      return std::equal(have.begin(), have.end(), want.begin(), want.end(),
                        [](const auto& a, const auto& b) { return a.bytes == b.bytes; });
    };
    return same(arguments, f.parameters) && same(returns, f.returns);
  }
};

/// A register that may be read before an instruction has set it.
struct UnsetRegister {
  static constexpr uint32_t kEntry = 0xffffffffu;

  Ref place = kNoRef;
  std::string name;
  uint32_t function = kEntry;  ///< Index into Program::functions.
};

struct Program {
  std::string name;
  const text::Source* source = nullptr;
  std::vector<Parameter> parameters;
  uint32_t parameter_bytes = 0;
  uint32_t shared_bytes = 0;  ///< Static; the dynamic part follows at `dynamic_offset`.
  uint32_t dynamic_offset = 0;
  bool dynamic_shared = false;
  uint32_t local_bytes = 0;
  uint32_t frame_bytes = 0;  ///< The kernel's own part of them; the stack begins there.
  uint32_t entry = 0;        ///< Its first operation.
  std::vector<Function> functions;
  std::vector<CallSite> calls;
  bool prints = false, allocates = false;  ///< Calls vprintf, malloc.
  bool pairs = false;  ///< Has an instruction that acts for two blocks: shared addresses of a block
                       ///< hold its rank.
  std::optional<Dim3> max_threads, required_threads, required_cluster;
  uint32_t min_blocks = 1;  ///< .minnctapersm

  std::vector<Action> actions;  ///< By operation.
  // Two instantiations of the same operations: without and with events.
  std::vector<Op> plain, observed;
  std::vector<uint32_t> operands;  ///< Backing store of Op::list.
  std::vector<std::byte> pool;  ///< Constants, splat over 32 lanes. Shared addresses count from 0:
                                ///< a launch adds its shared_base to those at `shared_patches`.
  std::vector<uint32_t> shared_patches;  ///< Pool offsets of 32-bit shared addresses.
  std::vector<uint32_t> shared_patches_wide;
  uint32_t register_bytes = 0;
  uint32_t register_slots = 0;
  std::vector<SpecialSlot> specials;
  std::vector<UnsetRegister> unset;

  // Only in kernels with wgmma or tcgen05.ld:
  uint32_t wgmma_lines = 0;       ///< Registers, in lines of kRegisterLine bytes.
  std::vector<uint32_t> touches;  ///< Lines that instructions use, times 2, plus 1 when written.
  std::vector<uint32_t>
      touch_begin;             ///< By instruction: its part of `touches`; one more at the end.
  std::vector<bool> unfenced;  ///< By instruction: wgmma whose registers a path may have used
                               ///< since the last wgmma.fence.

  std::vector<InstructionInfo> instructions;
  std::vector<const isa::Spelling*> spellings;  ///< By instruction; null when not supported.
  std::vector<text::Span> spans;                ///< By instruction: the mnemonic.
  std::vector<std::vector<uint32_t>> blocks;    ///< Instructions of each block, in order.
  std::vector<uint32_t> block_first;
  std::vector<std::vector<SourceLocation>> locations;
  std::vector<Diagnostic> errors, unsupported;
  std::vector<Variable> shared_variables, local_variables;
};

/// `.global` variable of a module and its first contents; zeros follow them.
struct GlobalVariable {
  std::string name;
  Address address = 0;
  size_t bytes = 0;
  std::vector<std::byte> initial;
};

struct ModuleData {
  uint64_t id = 0;  ///< Different for every module of the process.
  std::unique_ptr<text::Source> source;
  int version = 0;
  std::string target;
  int sm = 0;
  bool arch_specific = false;
  std::vector<std::unique_ptr<Program>> programs;
  std::vector<Kernel> kernels;  ///< Views of them.
  std::vector<GlobalVariable> globals;
  std::vector<std::byte> constants;  ///< The constant bank.
  std::vector<Variable> constant_variables;
};

/// `from a.cuh:88 (inlined at b.cu:141)`, with the last part of each path; empty for an empty
/// chain.
std::string describe_chain(std::span<const SourceLocation> chain);

}  // namespace ptxvm
