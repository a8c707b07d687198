// SPDX-License-Identifier: MIT
// Runs small PTX texts; shared by the tests.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "catch.h"
#include "ptxvm/findings.h"
#include "ptxvm/launch.h"
#include "ptxvm/races.h"
#include "ptxvm/report.h"

namespace ptxvm_test {

using namespace ptxvm;

/// A module of one entry `k` with one parameter, the address of a buffer. `%out` and `%in` are
/// pointers to it at the lane's own place: %out at 16 bytes a thread from 0, %in from 64 KiB on.
inline std::string kernel(const std::string& body, const std::string& target = "sm_80",
                          const std::string& before = "") {
  return ".version 9.0\n.target " + target + "\n.address_size 64\n" + before +
         ".visible .entry k(.param .u64 buffer)\n{\n"
         "  .reg .b64 %base, %out, %in;\n  .reg .b32 %lane;\n"
         "  .reg .pred %p<8>;\n  .reg .b16 %h<16>;\n  .reg .b32 %r<32>;\n  .reg .b64 %d<16>;\n"
         "  .reg .f32 %f<16>;\n  .reg .f64 %g<8>;\n"
         "  ld.param.u64 %base, [buffer];\n  mov.u32 %lane, %tid.x;\n"
         "  mad.wide.u32 %out, %lane, 16, %base;\n  add.u64 %in, %out, 65536;\n" +
         body + "\n  ret;\n}\n";
}

/// A body of `kernel` may begin so. `%r1` is the thread's own word of `area`, `%r2` the start of
/// `area` and `%r3` the warp.
inline const char* const kArea = R"(
.shared .align 16 .b8 area[4096];
shl.b32 %r1, %lane, 2; mov.u32 %r2, area; add.u32 %r1, %r1, %r2; shr.u32 %r3, %lane, 5;
)";

/// A fault: its kind, the line of the instruction, and the block but for the first, the warp and
/// the lane where it has them. Empty for none. The words of faults are a matter of message_test, as
/// those of findings are.
inline std::string fault(const LaunchResult& r, const Kernel& kernel) {
  if (!r.fault) return {};
  std::string text(name(r.fault->kind));
  if (r.fault->instruction)
    text += " " + std::to_string(kernel.instructions()[*r.fault->instruction].line);
  if (r.fault->cta.x > 0) text += " block " + std::to_string(r.fault->cta.x);
  if (r.fault->warp >= 0) text += " warp " + std::to_string(r.fault->warp);
  if (r.fault->lane >= 0) text += " lane " + std::to_string(r.fault->lane);
  return text;
}

/// A fault, and findings, one a line: the checker, the line of the instruction and of the other
/// one, and how often.
inline std::string found(const LaunchResult& r, const Kernel& kernel) {
  std::string text = r.fault ? fault(r, kernel) + "\n" : "";
  const auto line = [&](uint32_t i) { return std::to_string(kernel.instructions()[i].line); };
  for (const Finding& f : r.findings) {
    CHECK(std::ranges::count(checkers(), f.checker) == 1);
    text +=
        f.checker + (f.severity == Severity::kAdvice ? " (advice) " : " ") + line(f.instruction);
    if (f.other) text += "/" + line(*f.other);
    if (f.count > 1) text += " x" + std::to_string(f.count);
    text += "\n";
  }
  return text;
}

struct Run {
  LaunchResult result;
  std::string fault;
  std::string found;  ///< By the observers.
  std::vector<std::byte> out;
  CountReport counts;

  template <class T>
  T at(int thread, int word = 0) const {
    T v;
    std::memcpy(&v, out.data() + thread * 16 + word * sizeof(T), sizeof v);
    return v;
  }
};

/// Runs `text` with one block. `input` is copied to %in, 16 bytes a thread.
inline Run run(const std::string& text, const std::vector<std::byte>& input = {},
               uint32_t threads = 32, uint32_t dynamic_shared = 0, Options options = {}) {
  const Module module = Module::parse(text, "test.ptx");
  Memory memory;
  const Address buffer = memory.allocate("buffer", 131072, Fill::kZero);
  if (!input.empty()) std::memcpy(memory.bytes(buffer).data() + 65536, input.data(), input.size());
  LaunchConfig config;
  config.block = {threads, 1, 1};
  config.dynamic_shared_bytes = dynamic_shared;
  config.arguments = {Argument::pointer(buffer)};
  Counters counters;
  options.observers.push_back(&counters);
  Run r;
  r.result = launch(module, "k", config, memory, options);
  r.fault = fault(r.result, module.kernel("k"));
  r.found = found(r.result, module.kernel("k"));
  const auto bytes = memory.bytes(buffer);
  r.out.assign(bytes.begin(), bytes.begin() + 65536);
  r.counts = counters.report();
  return r;
}

/// The same under the checker of synchronisation, in one order of the warps.
inline Run run_checked(const std::string& text, uint32_t threads = 32,
                       Order order = Order::kForward, const std::vector<std::byte>& input = {},
                       uint32_t dynamic_shared = 0) {
  Races races;
  Options options;
  options.warp_order = order;
  options.observers = {&races};
  return run(text, input, threads, dynamic_shared, options);
}

/// The register that a finding is about.
inline std::string register_of(const Finding& finding) {
  const size_t at = finding.message.find('%');
  if (at == std::string::npos) return {};
  return finding.message.substr(at, finding.message.find(':', at) - at);
}

template <class T>
std::string type_of() {
  return sizeof(T) == 2 ? "b16" : sizeof(T) == 4 ? "b32" : "b64";
}

/// Applies one instruction to each row of operands, a row to a lane. The operands are %x0, %x1, ...
/// in the statement; the destination is %y.
template <class D, class S>
std::vector<D> apply(const std::string& statement, const std::vector<std::vector<S>>& rows,
                     const std::string& target = "sm_90") {
  std::vector<D> out;
  for (size_t first = 0; first < rows.size(); first += 32) {
    const size_t lanes = std::min<size_t>(32, rows.size() - first);
    std::vector<std::byte> input(32 * 64);
    const size_t arity = rows[0].size();
    for (size_t i = 0; i < lanes; ++i) {
      for (size_t a = 0; a < arity; ++a) {
        std::memcpy(&input[i * 64 + a * 8], &rows[first + i][a], sizeof(S));
      }
    }
    std::string body = "  .reg ." + type_of<D>() + " %y;\n  .reg ." + type_of<S>() +
                       " %x<8>;\n"
                       "  .reg .b64 %at;\n  mad.wide.u32 %at, %lane, 64, %base;\n";
    for (size_t a = 0; a < arity; ++a) {
      body += "  ld.global." + type_of<S>() + " %x" + std::to_string(a) + ", [%at+" +
              std::to_string(65536 + a * 8) + "];\n";
    }
    body += "  " + statement + "\n  st.global." + type_of<D>() + " [%out], %y;";
    const Run r = run(kernel(body, target), input);
    if (r.result.fault) throw Error(r.result.fault->format());
    for (size_t i = 0; i < lanes; ++i) out.push_back(r.at<D>(static_cast<int>(i)));
  }
  return out;
}

/// One row.
template <class D, class S>
D apply_one(const std::string& statement, std::vector<S> row, const std::string& target = "sm_90") {
  return apply<D, S>(statement, {std::move(row)}, target)[0];
}

}  // namespace ptxvm_test
