// SPDX-License-Identifier: MIT
// The traits of isa.def that say what an instruction does, against what the machine reports: one
// statement of each row and space is run.
#include <set>
#include <utility>

#include "catch.h"
#include "isa/sample.h"
#include "ptxvm/launch.h"

using namespace ptxvm;

namespace {

/// What the instructions of one mnemonic have reported, and where lanes went on.
struct Done {
  bool load = false, store = false, atomic = false, waits = false, orders_registers = false;
  bool behind = false, at_label = false, in_function = false;
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
  return ".version 9.0\n.target sm_90a\n.address_size 64\n.const .align 16 .b8 fixed[256];\n"
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
    Memory memory;
    LaunchConfig config;
    config.block = {128, 1, 1};
    config.arguments = {Argument::pointer(memory.allocate("buffer", 65536, Fill::kZero))};
    Options options;
    options.threads = 1;
    options.observers = {&watch};
    const Module module = Module::parse(text_of(s), "sample.ptx");
    // A barrier that is not initialised, say, or a generic address that must be a shared one.
    if (launch(module, "k", config, memory, options).fault) continue;
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
