// SPDX-License-Identifier: MIT
#include "tools/vector_kernel.h"

#include <algorithm>

namespace ptxvm_vectors {
namespace {

using namespace ptxvm;
using isa::OperandKind;
using isa::OperandSpec;
using isa::Role;

// Registers hold bits: instructions of every type of that width take them.
std::string_view register_type(Type t) {
  if (t == Type::kPred) return "pred";
  return bits(t) <= 16 && bits(t) > 8 ? "b16" : bits(t) <= 32 ? "b32" : "b64";
}

std::string number(size_t n) {
  return std::to_string(n);
}

// Writes one family's scope.
class Scope {
 public:
  Scope(const Family& f, size_t offset, size_t columns)
      : f_(f), offset_(offset), columns_(columns) {}

  std::string text() {
    switch (f_.shape) {
      case Shape::kPlain:
        plain("");
        break;
      case Shape::kMembers:
        declare("b32", "%mask");
        declare("b32", "%bit");
        declare("pred", "%member");
        line("cvt.u32.u64 %mask, %q" + number(columns_ - 1));
        line("shr.u32 %bit, %mask, %lane");
        line("and.b32 %bit, %bit, 1");
        line("setp.ne.u32 %member, %bit, 0");
        plain("@%member ");
        break;
      case Shape::kCarryIn:
        carry();
        break;
      case Shape::kAddress:
        address();
        break;
      case Shape::kLdMatrix:
        store_lane("%q", true);
        line("bar.warp.sync 0xffffffff");
        matrix_address();
        matrix("");
        line("bar.warp.sync 0xffffffff");
        break;
      case Shape::kStMatrix:
        store_lane("0x0ddba115", false);
        line("bar.warp.sync 0xffffffff");
        matrix_address();
        matrix("st");
        line("bar.warp.sync 0xffffffff");
        declare("b32", "%back<4>");
        line("ld.shared.v4.b32 {%back0, %back1, %back2, %back3}, [%tile_lane]");
        for (int i = 0; i < 4; ++i) store("%back" + number(i), "b32");
        line("bar.warp.sync 0xffffffff");
        break;
      case Shape::kMbarrier:
        mbarrier();
        break;
    }
    return "{\n" + declarations_ + body_ + "}\n";
  }

 private:
  void declare(std::string_view type, const std::string& name) {
    declarations_ += "  .reg ." + std::string(type) + " " + name + ";\n";
  }
  void line(const std::string& text) { body_ += "  " + text + ";\n"; }

  // A typed register with the value of the next column.
  std::string load(Type t) {
    std::string x = "%x" + number(next_), q = "%q" + number(next_);
    ++next_;
    const std::string_view type = register_type(t);
    declare(type, x);
    if (type == "pred")
      line("setp.ne.u64 " + x + ", " + q + ", 0");
    else if (type == "b64")
      line("mov.b64 " + x + ", " + q);
    else
      line("cvt.u" + std::string(type.substr(1)) + ".u64 " + x + ", " + q);
    return x;
  }

  // A destination, filled with what must be overwritten.
  std::string destination(Type t) {
    std::string y = "%y" + number(made_++);
    const std::string_view type = register_type(t);
    declare(type, y);
    if (type == "pred")
      line("setp.ne.u32 " + y + ", %lane, %lane");
    else
      line("mov." + std::string(type) + " " + y + ", 0x5a5a");
    return y;
  }

  void store(const std::string& reg, std::string_view type) {
    const std::string word = "%w" + number(stored_);
    declare("b64", word);
    if (type == "pred")
      line("selp.b64 " + word + ", 1, 0, " + reg);
    else if (type == "b64")
      line("mov.b64 " + word + ", " + reg);
    else
      line("cvt.u64.u" + std::string(type.substr(1)) + " " + word + ", " + reg);
    line("st.global.b64 [%out+" + number(offset_ + 8 * static_cast<size_t>(stored_)) + "], " +
         word);
    ++stored_;
  }

  // The operand list; results are remembered for `store_results`.
  std::string operands(const std::string& memory) {
    std::string text;
    for (const OperandSpec& o : f_.spelling->operands) {
      if (o.optional && f_.form != kOptionalOperand) continue;
      text += text.empty() ? " " : ", ";
      const bool writes = o.role == Role::kWrite;
      const auto one = [&] {
        std::string reg = writes ? destination(o.type) : load(o.type);
        if (writes) results_.emplace_back(reg, register_type(o.type));
        return reg;
      };
      if (o.kind == OperandKind::kMemory) {
        text += "[" + memory + "]";
      } else if (o.kind == OperandKind::kImmediate) {
        text += f_.form.substr(f_.form.find('=') + 1);
      } else if (o.kind == OperandKind::kVector) {
        std::string list;
        for (int i = 0; i < o.count; ++i) list += (i ? ", " : "") + one();
        text += "{" + list + "}";
      } else {
        if (o.negatable && f_.form == "!p") text += "!";
        text += one();
        if (o.parts != 0 && f_.form == "picked") {
          // Parts of both sources, in another order, and not all of the destination.
          const std::string_view of_two[] = {".h1", ".h30", ".h12"};
          const std::string_view of_four[] = {".b20", ".b4172", ".b0563"};
          text += (o.parts == 2 ? of_two : of_four)[parts_++];
        }
        if (o.pair && f_.pair) {
          const std::string q = destination(Type::kPred);
          results_.emplace_back(q, "pred");
          text += "|" + q;
        }
      }
    }
    return text;
  }

  void store_results() {
    for (const auto& [reg, type] : results_) store(reg, type);
  }

  void plain(const std::string& guard) {
    const std::string list = operands("");
    line(guard + f_.spelling->text + list);
    store_results();
  }

  void carry() {
    const bool subtracts = f_.spelling->tokens[0].text.substr(0, 3) == "sub";
    const std::string list = operands("");
    declare("b32", "%in");
    declare("b32", "%sink");
    declare("b32", "%flag");
    line("cvt.u32.u64 %in, %q" + number(columns_ - 1));
    if (f_.form.empty()) {
      line(subtracts ? "sub.cc.u32 %sink, 0, %in" : "add.cc.u32 %sink, %in, 0xffffffff");
    } else {
      set_carry(f_.form.substr(f_.form.find(' ') + 1));
    }
    line(f_.spelling->text + list);
    if (writes_carry(f_)) line((subtracts ? "subc" : "addc") + std::string(".u32 %flag, 0, 0"));
    store_results();
    if (writes_carry(f_)) store("%flag", "b32");
  }

  // The flag becomes what %in says: as carry of a sum with all ones, or as no borrow from it.
  void set_carry(const std::string& producer) {
    const bool wide = producer.ends_with("64");
    declare(wide ? "b64" : "b32", "%made");
    declare(wide ? "b64" : "b32", "%value");
    line(wide ? "cvt.u64.u32 %value, %in" : "mov.b32 %value, %in");
    // What reads the flag as well finds none of it set.
    if (producer.find("c.", 2) < producer.find(".cc")) line("add.cc.u32 %sink, 0, 0");
    std::string operands = ", %value, " + std::string(wide ? "0xffffffffffffffff" : "0xffffffff");
    // A subtraction adds the complement: without a borrow from before it needs one more.
    if (producer.starts_with("sub.")) operands = ", %value, 1";
    if (producer.starts_with("subc")) operands = ", %value, 0";
    if (producer.starts_with("subc")) line("sub.cc.u32 %sink, 0, 1");
    if (producer.find(".lo") != std::string::npos)
      operands = ", %value, 1, " + std::string(wide ? "0xffffffffffffffff" : "0xffffffff");
    if (producer.find(".hi") != std::string::npos) {
      line(wide ? "shl.b64 %value, %value, 63" : "shl.b32 %value, %value, 31");
      operands = ", %value, 2, " + std::string(wide ? "0xffffffffffffffff" : "0xffffffff");
    }
    line(producer + " %made" + operands);
  }

  void address() {
    declare("b64", "%generic");
    declare("b64", "%tile_generic");
    declare("pred", "%is<2>");
    line("cvt.u64.u32 %tile_generic, %tile");
    line("cvta.shared.u64 %tile_generic, %tile_generic");
    line("setp.eq.u64 %is0, %q0, 0");
    line("setp.eq.u64 %is1, %q0, 1");
    line("selp.b64 %generic, %tile_generic, 0, %is1");
    line("selp.b64 %generic, %out, %generic, %is0");
    declare("pred", "%y0");
    line(f_.spelling->text + " %y0, %generic");
    store("%y0", "pred");
  }

  void store_lane(const std::string& value, bool numbered) {
    declare("b32", "%fill<4>");
    declare("b32", "%tile_lane");
    line("mad.lo.u32 %tile_lane, %lane, 16, %tile");
    for (int i = 0; i < 4; ++i) {
      const std::string fill = "%fill" + number(i);
      line(numbered ? "cvt.u32.u64 " + fill + ", " + value + number(i)
                    : "mov.b32 " + fill + ", " + value);
    }
    line("st.shared.v4.b32 [%tile_lane], {%fill0, %fill1, %fill2, %fill3}");
  }

  void matrix_address() {
    declare("b64", "%row");
    declare("b64", "%base64");
    line("cvt.u64.u32 %base64, %tile");
    line("add.u64 %row, %base64, %q4");
    if (f_.spelling->text.find(".shared") == std::string::npos) line("cvta.shared.u64 %row, %row");
  }

  void matrix(const std::string& kind) {
    const std::string list = operands("%row");
    line(f_.spelling->text + list);
    if (kind.empty()) store_results();
  }

  // A barrier of the lane's own goes through a phase and into the next; what its states and waits
  // say is stored. Columns: arrivals that make a phase, arrivals at once (no more), bytes.
  void mbarrier() {
    const std::string_view binder = f_.spelling->row->binder;
    declare_barrier();
    if (binder != "mbarrier_init") line("mbarrier.init.shared.b64 [%bar], %n");
    if (binder == "mbarrier_init") {
      barrier_init();
    } else if (binder == "mbarrier_inval") {
      barrier_inval();
    } else if (binder == "mbarrier_arrive") {
      barrier_arrive();
    } else if (binder == "mbarrier_arrive_tx") {
      barrier_arrive_tx();
    } else if (binder == "mbarrier_tx") {
      barrier_tx();
    } else if (binder == "mbarrier_wait") {
      barrier_wait();
    } else if (binder == "cp_async_mbarrier") {
      barrier_cp_async();
    } else {
      barrier_pending();
    }
    line("mbarrier.inval.shared.b64 [%bar]");
  }

  bool in_spelling(std::string_view part) const {
    return f_.spelling->text.find(part) != std::string::npos;
  }
  bool never_completes() const { return in_spelling(".noComplete"); }
  bool has_optional() const { return !f_.form.empty(); }
  /// The barrier's address as the spelling takes it.
  std::string at() const { return in_spelling(".shared") ? "[%bar]" : "[%generic]"; }

  void declare_barrier() {
    declare("b32", "%bar");
    declare("b64", "%generic");
    declare("b32", "%n");
    declare("b32", "%k");
    declare("b32", "%bytes");
    declare("b32", "%rest");
    declare("b32", "%count");
    declare("b64", "%state");
    declare("b64", "%later");
    declare("pred", "%some");
    declare("pred", "%answer");
    line("mad.lo.u32 %bar, %lane, 16, %tile");
    line("cvt.u64.u32 %generic, %bar");
    line("cvta.shared.u64 %generic, %generic");
    line("cvt.u32.u64 %n, %q0");
    line("cvt.u32.u64 %k, %q1");
    line("cvt.u32.u64 %bytes, %q2");
    // One more than can be dropped, or than can arrive without completing.
    if (in_spelling("arrive_drop") || never_completes()) line("add.u32 %n, %n, 1");
  }

  void pending(const std::string& state) {
    line("mbarrier.pending_count.b64 %count, " + state);
    store("%count", "b32");
  }
  void test(const std::string& state) {
    line("mbarrier.test_wait.shared.b64 %answer, [%bar], " + state);
    store("%answer", "pred");
  }
  void test_parities() {
    for (const char* parity : {"0", "1"}) {
      line("mbarrier.test_wait.parity.shared.b64 %answer, [%bar], " + std::string(parity));
      store("%answer", "pred");
    }
  }
  void ask(const std::string& what, const std::string& guard = "") {
    line(guard + f_.spelling->text + " %answer, " + at() + ", " + what +
         (has_optional() ? ", 1000" : ""));
    store("%answer", "pred");
  }
  /// What the phase misses after `arrived` arrivals.
  void arrive_rest(const std::string& arrived) {
    line("sub.u32 %rest, %n, " + arrived);
    line("setp.ne.u32 %some, %rest, 0");
    line("@%some mbarrier.arrive.shared.b64 _, [%bar], %rest");
  }
  void next_phase() {
    line("mbarrier.arrive.shared.b64 %later, [%bar]");
    pending("%later");
  }

  void barrier_init() {
    line(f_.spelling->text + " " + at() + ", %n");
    line("mbarrier.arrive.shared.b64 %state, [%bar]");
    pending("%state");
    test("%state");
    test_parities();
  }

  void barrier_inval() {
    line(f_.spelling->text + " " + at());
    line("st.shared.b64 [%bar], %q2");
    line("ld.shared.b64 %later, [%bar]");
    store("%later", "b64");
    line("mbarrier.init.shared.b64 [%bar], %k");
    line("mbarrier.arrive.shared.b64 %state, [%bar]");
    pending("%state");
    test("%state");
    next_phase();
  }

  void barrier_arrive() {
    const bool counts = has_optional() || never_completes();
    line(f_.spelling->text + " %state, " + at() + (counts ? ", %k" : ""));
    pending("%state");
    test("%state");
    arrive_rest(counts ? "%k" : "1");
    test("%state");
    next_phase();
  }

  void barrier_arrive_tx() {
    line(f_.spelling->text + " %state, " + at() + ", %bytes");
    pending("%state");
    arrive_rest("1");
    test("%state");
    line("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%bar], %bytes");
    test("%state");
    next_phase();
  }

  void barrier_tx() {
    const bool completes = in_spelling("complete_tx");
    const std::string expect = completes ? "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%bar]"
                                         : f_.spelling->text + " " + at();
    const std::string complete = completes
                                     ? f_.spelling->text + " " + at()
                                     : "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%bar]";
    line(expect + ", %bytes");
    line("shr.u32 %k, %bytes, 1");
    line("sub.u32 %bytes, %bytes, %k");
    line(complete + ", %k");
    line("mbarrier.arrive.shared.b64 %state, [%bar], %n");
    pending("%state");
    test("%state");
    line(complete + ", %bytes");
    test("%state");
    next_phase();
  }

  void barrier_wait() {
    // A try_wait for a phase that is never completed takes as long as the hardware likes.
    const bool tries = in_spelling("try_wait");
    if (in_spelling(".parity")) {
      ask("1");
      if (!tries) ask("0");
      line("mbarrier.arrive.shared.b64 %state, [%bar], %n");
      ask("0");
      if (!tries) ask("1");
      if (tries) pending("%state");
      if (tries) next_phase();
    } else {
      line("mbarrier.arrive.shared.b64 %state, [%bar], %k");
      tries ? pending("%state") : ask("%state");
      arrive_rest("%k");
      ask("%state");
      line("mbarrier.arrive.shared.b64 %later, [%bar]");
      line("setp.eq.u32 %some, %n, 1");
      line("setp.ne.u32 %answer, %n, %n");
      ask("%later", tries ? "@%some " : "");
      pending("%later");
    }
  }

  void barrier_cp_async() {
    // The copy arrives when it likes; what has been waited for is seen.
    line("cp.async.ca.shared.global [%bar+8], [%in], 8");
    line(f_.spelling->text + " " + at());
    arrive_rest(in_spelling(".noinc") ? "1" : "0");
    body_ += "$wait:\n";
    line("mbarrier.try_wait.parity.shared.b64 %answer, [%bar], 0");
    line("@!%answer bra $wait");
    line("ld.shared.b64 %later, [%bar+8]");
    store("%later", "b64");
    next_phase();
    test_parities();
  }

  void barrier_pending() {
    const auto count = [&](const std::string& state) {
      line(f_.spelling->text + " %count, " + state);
      store("%count", "b32");
    };
    line("mbarrier.arrive.shared.b64 %state, [%bar], %k");
    count("%state");
    arrive_rest("%k");
    test("%state");
    line("mbarrier.arrive.shared.b64 %state, [%bar]");
    count("%state");
    line("sub.u32 %n, %n, 1");
    arrive_rest("0");
    test("%state");
  }

  const Family& f_;
  size_t offset_, columns_;
  std::string declarations_, body_;
  size_t next_ = 0, made_ = 0, parts_ = 0;
  size_t stored_ = 0;
  std::vector<std::pair<std::string, std::string_view>> results_;
};

}  // namespace

std::string make_module(const Job& job, const std::string& name) {
  const size_t columns = job.inputs->columns();
  bool tile = false, blackwell = false;
  for (const Family* f : job.families) blackwell |= needs_blackwell(*f);
  for (const Family* f : job.families)
    tile |= f->shape == Shape::kAddress || f->shape == Shape::kLdMatrix ||
            f->shape == Shape::kStMatrix || f->shape == Shape::kMbarrier;
  std::string text = std::string(".version 9.0\n.target ") + (blackwell ? "sm_100a" : "sm_90") +
                     "\n.address_size 64\n";
  if (tile) text += ".shared .align 16 .b8 tiles[" + number(job.rows() * 16) + "];\n";
  text += ".visible .entry " + name + "(.param .u64 inputs, .param .u64 results)\n.maxntid " +
          number(job.rows()) + ", 1, 1\n{\n" + "  .reg .b64 %in, %out, %q<" + number(columns) +
          ">;\n" +
          "  .reg .b32 %thread, %lane, %warp, %tile;\n"
          "  ld.param.u64 %in, [inputs];\n  ld.param.u64 %out, [results];\n"
          "  mov.u32 %thread, %tid.x;\n  and.b32 %lane, %thread, 31;\n"
          "  mad.wide.u32 %in, %thread, " +
          number(columns * 8) + ", %in;\n  mad.wide.u32 %out, %thread, " +
          number(kResultWords * 8) + ", %out;\n";
  if (tile) {
    text +=
        "  shr.u32 %warp, %thread, 5;\n  mov.u32 %tile, tiles;\n"
        "  mad.lo.u32 %tile, %warp, 512, %tile;\n";
  }
  for (size_t c = 0; c < columns; ++c)
    text += "  ld.global.b64 %q" + number(c) + ", [%in+" + number(c * 8) + "];\n";
  size_t offset = 0;
  for (const Family* f : job.families) {
    text += Scope(*f, offset, columns).text();
    offset += job.rows() * kResultWords * 8;
  }
  return text + "  ret;\n}\n";
}

}  // namespace ptxvm_vectors
