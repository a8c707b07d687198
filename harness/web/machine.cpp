// SPDX-License-Identifier: MIT
// The machine, the inputs and the check behind one function that a page calls: JSON in, JSON out.
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
#include "harness/web/launch.h"
#include "harness/web/observers.h"
#include "harness/web/plan.h"
#include "harness/web/report.h"
#include "harness/web/texts.h"
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
  Inputs inputs = make_inputs(problem, kind, 1);
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

/// {text, name}: reads a PTX text, whose entries replace those of the same names.
Json load(const Json& request) {
  const auto module = ptxvm::Module::parse(request.at("text"), request.at("name"));
  Json entries = Json::array();
  for (const ptxvm::Kernel& kernel : module.kernels()) {
    modules().insert_or_assign(kernel.name(), module);
    entries.push_back(entry_json(kernel));
  }
  return {{"target", module.target()}, {"entries", std::move(entries)}};
}

/// {problem, plan, inputs, spread, checkers, reversed, max_steps, trace, requests, source}: a rung
/// through the gate. `source` is the name of its file, to whose lines instructions are attributed.
Json run(const Json& request) {
  const Problem problem = problem_from_json(request.at("problem"));
  const HeldPlan held = read_plan(request.at("plan"));
  const Prepared& prepared = prepare(problem, kind_of(request));

  Progress progress([](std::uint64_t done, std::uint64_t of) {
    page_progress(static_cast<double>(done), static_cast<double>(of));
  });
  ptxvm::Trace trace;
  Requests requests(request.value("requests", 0));
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
      device, [&] { device.launch(held.plan); }, prepared.verifier, &output);

  HostTensor lse;
  if (problem.lse) lse = device.download_lse();
  Json answer{{"verdict", verdict_json(verdict)}, {"output", digest(output, lse)}};
  if (!device.counts().empty()) {
    answer["counts"] = counts_json(device.total_counts());
    answer["launches"] = launches_json(device.counts(), request.value("source", ""));
  }
  if (request.value("trace", false)) answer["trace"] = Json::parse(trace.json(), nullptr, false);
  if (request.value("requests", 0) > 0) answer["requests"] = requests.json();
  return answer;
}

Json answer(const Json& request) {
  const std::string what = request.at("do");
  if (what == "load") return load(request);
  if (what == "run") return run(request);
  if (what == "launch") {
    return launch_any(request, [](std::uint64_t done, std::uint64_t of) {
      page_progress(static_cast<double>(done), static_cast<double>(of));
    });
  }
  throw std::invalid_argument("'" + what + "' is not something that can be done");
}

Json guarded(const char* request) {
  try {
    return answer(Json::parse(request));
  } catch (const ptxvm::Error& error) {
    return {{"error", error.what()}, {"diagnostics", diagnostics_json(error.diagnostics())}};
  } catch (const std::bad_alloc&) {
    return {{"error", "the page has no memory left for this"}};
  } catch (const std::exception& error) {
    return {{"error", error.what()}};
  }
}

}  // namespace
}  // namespace fa::web

/// The answer to a request; the caller frees it.
extern "C" EMSCRIPTEN_KEEPALIVE char* fa_call(const char* request) {
  using Text = nlohmann::detail::error_handler_t;
  const std::string text = fa::web::guarded(request).dump(-1, ' ', false, Text::replace);
  return strdup(text.c_str());
}
