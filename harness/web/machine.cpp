// SPDX-License-Identifier: MIT
// The function that a page calls: what the machine answers, and a rung on the inputs and through
// the check.
#include <emscripten.h>

#include <cstdlib>
#include <cstring>
#include <exception>
#include <map>
#include <optional>
#include <string>

#include "harness/attention/check.h"
#include "harness/device/gate.h"
#include "harness/device/vm.h"
#include "harness/results/problem_json.h"
#include "harness/vm/web/answer.h"
#include "harness/vm/web/observers.h"
#include "harness/web/plan.h"
#include "ptxvm/trace.h"

// NOLINTNEXTLINE(cppcoreguidelines-macro-usage): the body is JavaScript.
EM_JS(void, page_progress, (double done, double of), {
  if (Module.onBlock) Module.onBlock(done, of);
});

namespace fa::web {
namespace {

/// Inputs and reference of the last few problems: a page asks for the same ones again.
struct Prepared {
  Problem problem;
  InputKind kind;
  Inputs inputs;
  Verifier verifier;
};

const Prepared& prepare(const Problem& problem, const InputKind& kind) {
  static std::vector<std::unique_ptr<Prepared>> held;
  for (const auto& each : held) {
    if (each->problem == problem && each->kind == kind) return *each;
  }
  constexpr std::size_t kHeld = 4;
  if (held.size() == kHeld) held.erase(held.begin());
  Inputs inputs = make_pass_inputs(problem, kind, 1);
  Verifier verifier(problem, inputs);
  held.push_back(
      std::make_unique<Prepared>(Prepared{problem, kind, std::move(inputs), std::move(verifier)}));
  return *held.back();
}

InputKind kind_of(const Json& request) {
  const std::string name = request.value("inputs", "normal");
  const auto distribution = parse_distribution(name);
  if (!distribution) throw std::invalid_argument("'" + name + "' is not a kind of inputs");
  return {*distribution, request.value("spread", 1.0)};
}

/// FNV-1a: tells whether two outputs have the same bits.
std::string digest(const HostTensor& output, const HostTensor& lse) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const HostTensor* tensor : {&output, &lse}) {
    for (const std::byte byte : tensor->bytes) {
      hash = (hash ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3;
    }
  }
  return std::to_string(hash);
}

Json verdict_json(const Verdict& verdict) {
  const auto finite = [](double value) { return std::isfinite(value) ? Json(value) : Json(); };
  const CheckReport& check = verdict.check;
  return {{"ok", verdict.ok},
          {"reason", verdict.reason},
          {"details", text_of(verdict.findings)},
          {"rows_checked", check.rows_checked},
          {"rows_total", check.rows_total},
          {"max_error", finite(check.max_error)},
          {"tolerance", finite(check.tolerance)}};
}

void report_progress(std::uint64_t done, std::uint64_t of) {
  page_progress(static_cast<double>(done), static_cast<double>(of));
}

/// {do: run, problem, plan, inputs, spread, checkers, reversed, max_steps, trace, requests,
/// source}: a rung through the gate. `source` is the name of its file, to whose lines instructions
/// are attributed.
Json run(const Json& request) {
  const std::string what = request.at("do");
  if (what != "run") {
    throw std::invalid_argument("'" + what + "' is not something that can be done");
  }
  const Problem problem = problem_from_json(request.at("problem"));
  const HeldPlan held = read_plan(request.at("plan"));
  const Prepared& prepared = prepare(problem, kind_of(request));

  ptxvm::web::Progress progress(report_progress);
  ptxvm::Trace trace;
  ptxvm::web::Requests requests(request.value("requests", 0));
  VmOptions options{.threads = 1,
                    .reversed = request.value("reversed", false),
                    .checkers = request.value("checkers", true),
                    .counters = request.value("counters", true)};
  options.max_warp_steps = request.value("max_steps", options.max_warp_steps);
  options.observers = {&progress};
  if (request.value("trace", false)) options.observers.push_back(&trace);
  if (request.value("requests", 0) > 0) options.observers.push_back(&requests);

  VmDevice device(std::move(options));
  device.load(problem, prepared.inputs);
  HostTensor output;
  const Verdict verdict = pass_gate(
      device, [&] { device.launch(held.plan); }, prepared.verifier, promised(held.plan), &output);

  HostTensor lse;
  if (problem.backward) {
    Gradients gradients = device.download_gradients();
    output = std::move(gradients.d_k), lse = std::move(gradients.d_v);
  }
  if (problem.lse) lse = device.download_lse();
  Json answer{{"verdict", verdict_json(verdict)}, {"output", digest(output, lse)}};
  if (!device.counts().empty()) {
    answer["counts"] = ptxvm::web::counts_json(device.total_counts());
    for (const LaunchCounts& each : device.counts()) {
      answer["launches"].push_back(
          ptxvm::web::launch_json(each.entry, each.report, request.value("source", "")));
    }
  }
  if (request.value("trace", false)) answer["trace"] = Json::parse(trace.json(), nullptr, false);
  if (request.value("requests", 0) > 0) answer["requests"] = requests.json();
  return answer;
}

}  // namespace
}  // namespace fa::web

/// The answer to a request; the caller frees it.
extern "C" EMSCRIPTEN_KEEPALIVE char* fa_call(const char* request) {
  return strdup(ptxvm::web::answer(request, fa::web::report_progress, fa::web::run).c_str());
}
