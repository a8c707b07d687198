// SPDX-License-Identifier: MIT
// The traits of isa.def that say what an instruction does, against what the machine reports: one
// statement of each row and space is run. What the machine does not report is a list, and what the
// machine makes of it is seen where a value that nobody has written, or a wait, depends on it.
#include <algorithm>
#include <set>
#include <utility>

#include "catch.h"
#include "isa/sample.h"
#include "run_ptx.h"

using namespace ptxvm;
using namespace ptxvm_test;

namespace {

/// What the instructions of one mnemonic have reported, and where lanes went on.
struct Done {
  bool load = false, store = false, atomic = false, waits = false, orders_registers = false;
  bool behind = false, at_label = false, in_function = false;
  bool asks_again = false;  // at its next turn
};

// Of Done and of Traits, for comparison.
std::string effects(const auto& x) {
  return std::string(x.load ? "load " : "") + (x.store ? "store " : "") +
         (x.atomic ? "atomic " : "") + (x.waits ? "waits " : "") +
         (x.orders_registers ? "orders_registers " : "");
}

class Watch : public Observer {
 public:
  explicit Watch(std::string_view mnemonic) : mnemonic_(mnemonic) {}

  void begin(const LaunchInfo& info) override { kernel_ = info.kernel; }
  std::unique_ptr<Probe> make_probe() override { return std::make_unique<Eye>(*this); }
  void end(std::span<const std::unique_ptr<Probe>>) override {}
  bool wants_instructions() const override { return true; }

  Done done;

 private:
  struct Eye : Probe {
    explicit Eye(Watch& w) : watch(w) {}
    bool named(uint32_t i) const { return opcode(i) == watch.mnemonic_; }
    std::string_view opcode(uint32_t i) const { return watch.kernel_.instructions()[i].opcode; }
    void access(const AccessEvent& e) override {
      using K = AccessKind;
      if (!named(e.instruction)) return;
      watch.done.load |= e.kind == K::kLoad || e.kind == K::kLdMatrix;
      watch.done.store |= e.kind == K::kStore || e.kind == K::kStMatrix;
      watch.done.atomic |= e.kind == K::kAtomic;
    }
    void async(const AsyncEvent& e) override {
      watch.done.waits |= named(e.instruction) && e.action == AsyncAction::kWait;
    }
    void bulk(const BulkEvent& e) override {
      watch.done.waits |= named(e.instruction) && e.action == BulkAction::kWait;
    }
    void wgmma(const WgmmaEvent& e) override {
      watch.done.orders_registers |= named(e.instruction) && e.action == WgmmaAction::kFence;
    }
    void instruction(const InstructionEvent& e) override {
      watch.done.behind |= opcode(e.instruction) == "brev.b32";
      if (named(e.instruction)) return;
      watch.done.at_label |= opcode(e.instruction) == "popc.b32";
      watch.done.in_function |= opcode(e.instruction) == "clz.b32";
    }
    // A warp that is to ask again stands at the instruction, or behind it.
    void wait(const WaitEvent& e) override {
      if (!e.blocked) return;
      watch.done.asks_again |=
          named(e.instruction) || (e.instruction > 0 && named(e.instruction - 1));
    }
    Watch& watch;
  };

  std::string mnemonic_;
  Kernel kernel_{nullptr};
};

// Copies of an engine, a tensor map that is changed, and what calls pass are reported otherwise.
bool is_access(const isa::Spelling& s) {
  const std::string_view b = s.row->binder;
  return b != "store_async" && b != "reduce_async" && b != "tensormap_replace" &&
         (s.operands.empty() || !s.operands[0].passed);
}

// All registers that addresses may stand in point into memory of the space.
std::string text_of(const isa::Spelling& s) {
  const bool global = s.space == Space::kGlobal || s.space == Space::kGeneric;
  const char* const variable = s.space == Space::kLocal   ? "own"
                               : s.space == Space::kConst ? "fixed"
                               : s.space == Space::kParam ? "0"
                                                          : "area";
  std::string set_up = ".reg .b64 %at; ";
  set_up +=
      global ? "ld.param.u64 %at, [buffer];\n" : "mov.u64 %at, " + std::string(variable) + ";\n";
  for (int i = 0; i < 16; ++i) set_up += "mov.b64 %sample_u64_" + std::to_string(i) + ", %at;\n";
  return ".version 9.0\n.target sm_" + isa::target_name(isa::sample_target(s)) +
         "\n.address_size 64\n.const .align 16 .b8 fixed[256];\n"
         ".func sample_function() { .reg .b32 %x<2>; clz.b32 %x0, %x1; ret; }\n"
         ".visible .entry k(.param .u64 buffer)\n{\n" +
         isa::sample_declarations() +
         ".shared .align 128 .b8 area[8192]; .local .align 16 .b8 own[256];\n"
         "mov.b32 %sample_u32_0, 0;\n" +
         set_up + isa::sample_statement(s, false) +
         "\nbrev.b32 %sample_b32_0, %sample_b32_1;\nbra.uni $out;\n$sample_label:\n"
         "popc.b32 %sample_u32_0, %sample_b32_1;\n$out:\nret;\n}\n";
}

}  // namespace

TEST_CASE("instructions do what their traits say") {
  std::set<std::pair<uint32_t, Space>> asked;
  std::set<uint32_t> ran;
  for (const isa::Spelling& s : isa::spellings()) {
    if (!s.runs() || !asked.emplace(s.row_index, s.space).second) continue;
    INFO(s.text);
    Watch watch(s.text);
    Options options;
    options.observers = {&watch};
    // A barrier that is not initialised, say, or a generic address that must be a shared one.
    if (run(text_of(s), {}, 128, 0, options).result.fault) continue;
    ran.insert(s.row_index);
    const isa::Traits& t = s.traits();
    if (is_access(s)) CHECK(effects(watch.done) == effects(t));
    CHECK(watch.done.behind == !t.ends);
    CHECK(watch.done.at_label == t.branch);
    CHECK(watch.done.in_function == t.call);
  }
  for (const isa::Spelling& s : isa::spellings()) {
    const isa::Traits& t = s.traits();
    const bool has_any = effects(t) != "" || t.branch || t.call;
    if (s.runs() && has_any && is_access(s) && !ran.contains(s.row_index)) FAIL_CHECK(s.text);
  }
}

namespace {

// The traits of which a launch reports nothing, by what the PTX ISA says of an instruction. Those
// that wait for the results of hardware are a matter of vectors_test and wgmma_vectors_test.
isa::Traits expected(const isa::Spelling& s) {
  const std::string_view base = s.tokens[0].text;
  const auto is = [&](std::initializer_list<const char*> names) {
    return std::find(names.begin(), names.end(), base) != names.end();
  };
  const auto begins = [&](const char* text) { return s.text.starts_with(text); };
  using isa::Polls;
  isa::Traits t;
  t.returns = is({"ret"});
  t.copy = is({"mov"});
  t.joins = is({"and", "or", "bfi", "prmt"});
  t.decides =
      is({"and", "or", "selp"}) || (is({"set", "setp"}) && s.combine != isa::Combine::kNone);
  t.fragments = is({"wmma"});
  t.allocates = is({"alloca"});
  if (begins("mbarrier.test_wait") || begins("mbarrier.try_wait")) t.polls = Polls::kMbarrier;
  if (begins("barrier.cluster.wait")) t.polls = Polls::kCluster;
  if (begins("wgmma.wait_group")) t.polls = Polls::kWarpgroup;
  if (is({"setmaxnreg"})) t.polls = Polls::kRegisters;
  if (begins("tcgen05.alloc")) t.polls = Polls::kTensorMemory;
  t.cancels = begins("clusterlaunchcontrol.try_cancel");
  return t;
}

std::string unreported(const isa::Traits& t) {
  const char* const polls[] = {"",
                               "polls for registers",
                               "polls for its warpgroup",
                               "polls for the cluster",
                               "polls for mbarriers",
                               "polls for tensor memory"};
  return std::string(t.returns ? "returns " : "") + (t.copy ? "copy " : "") +
         (t.joins ? "joins " : "") + (t.decides ? "decides " : "") +
         (t.fragments ? "fragments " : "") + (t.allocates ? "allocates " : "") +
         (t.cancels ? "cancels " : "") + polls[static_cast<size_t>(t.polls)];
}

// Of each row the first spelling, and the first of each way to join its result with a predicate,
// that makes one value of registers and constants, lane by lane.
std::vector<const isa::Spelling*> computations() {
  std::vector<const isa::Spelling*> out;
  std::set<std::pair<uint32_t, isa::Combine>> taken;
  for (const isa::Spelling& s : isa::spellings()) {
    using isa::OperandKind;
    using isa::Role;
    const bool plain = std::all_of(s.operands.begin(), s.operands.end(), [&](const auto& o) {
      const bool first = &o == s.operands.data();
      return first ? o.kind == OperandKind::kValue && o.role == Role::kWrite
                   : o.kind == OperandKind::kImmediate ||
                         (o.kind == OperandKind::kValue && o.role == Role::kRead);
    });
    if (!s.runs() || s.operands.empty() || !plain || s.row->lanes != isa::Lanes::kAny ||
        s.row->check.kind == isa::CheckKind::kEffect) {
      continue;
    }
    if (taken.emplace(s.row_index, s.combine).second) out.push_back(&s);
  }
  return out;
}

bool is_predicate(const isa::OperandSpec& o) {
  return o.type == Type::kPred;
}

bool is_read(const isa::OperandSpec& o) {
  return o.kind == isa::OperandKind::kValue && o.role == isa::Role::kRead;
}

std::string bits_of(const isa::OperandSpec& o) {
  return ".b" + std::to_string(bits(o.type));
}

std::string type_of_register(const isa::OperandSpec& o) {
  return is_predicate(o) ? ".pred " : bits(o.type) == 8 ? ".b16 " : bits_of(o) + " ";
}

std::string operand(size_t i) {
  return "%o" + std::to_string(i);
}

// A computation with the operands %o0, %o1, ... in a block of its own, on one line.
std::string in_block(const isa::Spelling& s, const std::string& before, const std::string& behind) {
  std::string registers = "{ .reg .pred %second; .reg .b32 %given; ", statement = s.text;
  for (size_t i = 0; i < s.operands.size(); ++i) {
    const isa::OperandSpec& o = s.operands[i];
    statement += i == 0 ? " " : ", ";
    if (o.kind == isa::OperandKind::kImmediate) {
      statement += std::to_string(o.lo);
      continue;
    }
    statement += operand(i) + (o.pair ? "|%second" : "");
    registers += ".reg " + type_of_register(o) + operand(i) + "; ";
  }
  return registers + before + statement + "; " + behind + " }\n";
}

// Sets an operand to zero or false, or to ones or true.
std::string set_to(bool ones, const isa::OperandSpec& o, size_t i) {
  if (is_predicate(o)) return "setp.eq.u32 " + operand(i) + ", 0, " + (ones ? "0; " : "1; ");
  return "mov" + type_of_register(o) + operand(i) + (ones ? ", -1; " : ", 0; ");
}

// Sets an operand to what nobody has written.
std::string set_unwritten(const isa::OperandSpec& o, size_t i) {
  if (!is_predicate(o)) return "ld.shared" + bits_of(o) + " " + operand(i) + ", [area]; ";
  return "ld.shared.b32 %given, [area]; setp.ne.b32 " + operand(i) + ", %given, 0; ";
}

// Which lines have a value that nobody has written and that is used.
std::vector<bool> used(const std::string& set_up, const std::vector<std::string>& lines) {
  std::string text = set_up + "\n";
  for (const std::string& line : lines) text += line;
  text = kernel(text, "sm_100a");
  const auto begin = text.begin() + static_cast<std::ptrdiff_t>(text.find(lines.at(0)));
  const auto first = std::count(text.begin(), begin, '\n') + 1;
  const Run r = run_checked(text);
  if (r.result.fault) FAIL(r.result.fault->format());
  std::vector<bool> out(lines.size());
  for (const Finding& f : r.result.findings) {
    CHECK(f.checker == "uninitialised");
    out.at(static_cast<size_t>(f.where.where.line - first)) = true;
  }
  return out;
}

}  // namespace

TEST_CASE("the traits that no launch reports are those of a list") {
  for (const isa::Spelling& s : isa::spellings()) {
    if (!s.runs()) continue;
    INFO(s.text);
    CHECK(unreported(s.traits()) == unreported(expected(s)));
  }
}

TEST_CASE("where an operand decides the result, the others may have no value") {
  // Each operand in turn is what nobody has written, the others are zero, or all ones.
  const std::vector<const isa::Spelling*> all = computations();
  std::vector<std::string> lines;
  std::vector<const isa::Spelling*> line_of;
  for (const isa::Spelling* s : all) {
    for (size_t unwritten = 1; unwritten < s->operands.size(); ++unwritten) {
      if (!is_read(s->operands[unwritten])) continue;
      for (const bool ones : {false, true}) {
        std::string before;
        for (size_t i = 1; i < s->operands.size(); ++i) {
          const isa::OperandSpec& o = s->operands[i];
          if (is_read(o)) before += i == unwritten ? set_unwritten(o, i) : set_to(ones, o, i);
        }
        const isa::OperandSpec& result = s->operands[0];
        lines.push_back(in_block(*s, before,
                                 is_predicate(result)
                                     ? "@%o0 st.global.u32 [%out], 1;"
                                     : "st.global" + bits_of(result) + " [%out], %o0;"));
        line_of.push_back(s);
      }
    }
  }
  const std::vector<bool> uses = used(".shared .align 16 .b8 area[16];", lines);
  std::set<const isa::Spelling*> decided;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (!uses[i]) decided.insert(line_of[i]);
  }
  for (const isa::Spelling* s : all) {
    INFO(s->text);
    // No operand decides an exclusive or. Beside an or of bits the machine looks for no ones.
    const bool never =
        s->combine == isa::Combine::kXor || (s->tokens[0].text == "or" && s->type != Type::kPred);
    CHECK(decided.contains(s) == (expected(*s).decides && !never));
  }
}

TEST_CASE("a value without meaning may go through copies and joins to local memory and back") {
  // As a bit-field is set in a word that nobody has set: what is stored has a value from then on.
  std::vector<const isa::Spelling*> all = computations();
  std::erase_if(all, [](const isa::Spelling* s) {
    return is_predicate(s->operands[0]) ||
           std::none_of(s->operands.begin(), s->operands.end(),
                        [](const auto& o) { return is_read(o) && !is_predicate(o); });
  });
  std::vector<std::string> lines;
  for (const isa::Spelling* s : all) {
    const auto place = [&](int offset) {
      return "[place+" + std::to_string(lines.size() * 16 + static_cast<size_t>(offset)) + "]";
    };
    std::string before;
    for (size_t i = 1; i < s->operands.size(); ++i) {
      const isa::OperandSpec& o = s->operands[i];
      if (!is_read(o)) continue;
      before += is_predicate(o)
                    ? set_to(s->combine != isa::Combine::kOr, o, i)
                    : "ld.local" + bits_of(o) + " " + operand(i) + ", " + place(0) + "; ";
    }
    const std::string type = bits_of(s->operands[0]);
    before += ".reg " + type_of_register(s->operands[0]) + "%back; ";
    lines.push_back(in_block(*s, before,
                             "st.local" + type + " " + place(8) + ", %o0; ld.local" + type +
                                 " %back, " + place(8) + "; st.global" + type + " [%out], %back;"));
  }
  const std::vector<bool> uses =
      used(".local .align 16 .b8 place[" + std::to_string(lines.size() * 16) + "];", lines);
  for (size_t i = 0; i < all.size(); ++i) {
    INFO(all[i]->text);
    const isa::Traits t = expected(*all[i]);
    CHECK(uses[i] == !(t.copy || t.joins));
  }
}

TEST_CASE("an instruction that polls keeps its warp until others come, and no other does") {
  // Warp 0 alone comes to the statement, where an mbarrier, the cluster and its warpgroup miss
  // arrivals and no registers are free; the others wait for ever.
  const std::string before =
      "\n.address_size 64\n" + isa::sample_functions() +
      ".visible .entry k(.param .u64 buffer)\n{\n" + isa::sample_declarations() +
      ".shared .align 128 .b8 bar[128]; .reg .b64 %at, %state; .reg .pred %first, %others;\n"
      "mov.u32 %sample_u32_0, %tid.x; setp.gt.u32 %others, %sample_u32_0, 31;\n"
      "@%others bra $others;\nmov.u64 %at, bar; setp.eq.u32 %first, %sample_u32_0, 0;\n"
      "@%first mbarrier.init.shared.b64 [%at], 64;\nbar.warp.sync -1;\n"
      "mbarrier.arrive.shared.b64 %state, [%at];\nbarrier.cluster.arrive;\n";
  std::string operands;
  for (int i = 0; i < 8; ++i) {
    const std::string n = std::to_string(i);
    operands += "mov.b64 %sample_u64_" + n + ", %at; mov.b64 %sample_b64_" + n +
                ", %state; mov.b32 %sample_u32_" + n + ", 0;\n";
  }
  const std::string behind =
      "\nbrev.b32 %sample_b32_0, %sample_b32_1;\n$sample_label:\nret;\n"
      "$others:\nbar.sync 1, 160;\nret;\n}\n";
  std::set<uint32_t> rows;
  for (const isa::Spelling& s : isa::spellings()) {
    if (!s.runs() || !rows.insert(s.row_index).second) continue;
    INFO(s.text);
    Watch watch(s.text);
    Options options;
    options.registers = 16;
    options.observers = {&watch};
    const std::string generic = s.space == Space::kGeneric ? "cvta.shared.u64 %at, %at;\n" : "";
    std::string statement = isa::sample_statement(s, false);
    // All columns of tensor memory are taken, and one is asked for.
    if (s.traits().polls == isa::Polls::kTensorMemory) {
      statement = s.text + " [%sample_u64_8], 512; mov.b32 %sample_u32_1, 32; " + statement;
      operands += "add.u64 %sample_u64_8, %at, 16; add.u64 %sample_u64_0, %at, 16;\n";
    }
    const std::string target =
        ".version 9.0\n.target sm_" + isa::target_name(isa::sample_target(s));
    const Run r =
        run(target + before + generic + operands + statement + behind, {}, 128, 0, options);
    REQUIRE(r.result.fault);
    const bool reached = r.result.fault->kind == FaultKind::kDeadlock;
    const bool polls = expected(s).polls != isa::Polls::kNo;
    if (!reached && polls) FAIL_CHECK(r.result.fault->format());
    if (reached) CHECK(watch.done.asks_again == polls);
  }
}
