// SPDX-License-Identifier: MIT
#include "ptxvm/hints.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <utility>

namespace ptxvm {
namespace {

constexpr double kLeastShare = 0.05;
constexpr std::string_view kShared = "shared memory", kGlobal = "global memory",
                           kLocal = "local memory", kArithmetic = "arithmetic";

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value < 1000 ? "%.3g" : "%.0f", value);
  return text;
}

double ratio(uint64_t a, uint64_t b) {
  return b == 0 ? 0 : static_cast<double>(a) / static_cast<double>(b);
}

/// Counts of one source line.
struct Place {
  SourceLocation where;
  Counts counts;
};

std::vector<Place> places(const CountReport& report, const std::string& ptx_file) {
  std::map<std::pair<std::string, int>, Counts> by_line;
  for (const LineCounts& line : report.by_instruction) {
    const SourceLocation at =
        line.source.empty() ? SourceLocation{ptx_file, line.ptx_line, 0} : line.source.front();
    by_line[{at.file, at.line}].add(line.counts);
  }
  std::vector<Place> out;
  for (auto& [at, counts] : by_line) out.push_back({{at.first, at.second, 0}, counts});
  return out;
}

using SharedPart = std::pair<std::string_view, SharedTraffic Counts::*>;
constexpr SharedPart kSharedParts[] = {
    {"ldmatrix", &Counts::ldmatrix},       {"stmatrix", &Counts::stmatrix},
    {"a load", &Counts::shared_load},      {"a store", &Counts::shared_store},
    {"an atomic", &Counts::shared_atomic}, {"cp.async", &Counts::shared_copy}};

using GlobalPart = std::pair<std::string_view, GlobalTraffic Counts::*>;
constexpr GlobalPart kGlobalParts[] = {{"a load", &Counts::global_load},
                                       {"a store", &Counts::global_store},
                                       {"an atomic", &Counts::global_atomic},
                                       {"cp.async", &Counts::global_copy}};

void shared_hints(const Place& place, const Counts& total, std::vector<Hint>& out) {
  const uint64_t all = total.shared_requests().wavefronts;
  const uint64_t mma = total.of(CountClass::kTensor);
  for (const auto& [what, part] : kSharedParts) {
    const SharedTraffic& t = place.counts.*part;
    const double share = ratio(t.conflicts(), all);
    if (share < kLeastShare) continue;
    std::string message = std::string(what) + " takes " + number(ratio(t.wavefronts, t.requests)) +
                          " wavefronts where " + number(ratio(t.ideal, t.requests)) + " would do: ";
    message += mma == 0 ? std::to_string(t.conflicts()) + " of " + std::to_string(all) +
                              " wavefronts are conflicts"
                        : number(ratio(t.conflicts(), mma)) + " of " + number(ratio(all, mma)) +
                              " wavefronts per mma are conflicts";
    out.push_back({std::string(kShared), std::move(message), share, place.where});
  }
}

void global_hints(const Place& place, const Counts& total, std::vector<Hint>& out) {
  const uint64_t all = total.global_sectors();
  for (const auto& [what, part] : kGlobalParts) {
    const GlobalTraffic& t = place.counts.*part;
    // A request needs one sector, however little it moves.
    const uint64_t ideal = std::max(t.requests, (t.bytes + 31) / 32);
    if (t.sectors <= ideal) continue;
    const double share = ratio(t.sectors - ideal, all);
    if (share < kLeastShare) continue;
    out.push_back({std::string(kGlobal),
                   std::string(what) + " touches " + number(ratio(t.sectors, t.requests)) +
                       " sectors where " + number(ratio(ideal, t.requests)) +
                       " would do: it uses " + number(32 * ratio(ideal, t.sectors)) +
                       " of the 32 bytes of each; neighbouring lanes should use neighbouring "
                       "addresses",
                   share, place.where});
  }
}

void local_hints(const Place& place, const Counts& total, std::vector<Hint>& out) {
  const double share = ratio(place.counts.local_bytes, total.local_bytes);
  if (share < kLeastShare) return;
  out.push_back({std::string(kLocal),
                 std::to_string(place.counts.local_bytes) +
                     " bytes go through local memory: an array whose index the compiler does not "
                     "know, or whose address is taken",
                 share, place.where});
}

/// A literal without an f makes an expression double; a kernel that computes in double says so.
void double_hints(const Place& place, const Counts& total, std::vector<Hint>& out) {
  const uint64_t doubles = place.counts.of(CountClass::kDouble);
  const uint64_t all = total.of(CountClass::kDouble) + total.of(CountClass::kFloat);
  if (doubles == 0 || total.of(CountClass::kDouble) > total.of(CountClass::kFloat)) return;
  out.push_back({std::string(kArithmetic),
                 std::to_string(doubles) + " of " + std::to_string(all) +
                     " floating-point instructions are double in a kernel that is mostly single; "
                     "is a literal written without f?",
                 ratio(doubles, all), place.where});
}

}  // namespace

std::vector<Hint> hints(const CountReport& report, const std::string& ptx_file) {
  std::vector<Hint> out;
  const std::vector<Place> all = places(report, ptx_file);
  for (const auto& add : {shared_hints, global_hints, local_hints, double_hints}) {
    const size_t first = out.size();
    for (const Place& place : all) add(place, report.total, out);
    std::stable_sort(out.begin() + static_cast<std::ptrdiff_t>(first), out.end(),
                     [](const Hint& a, const Hint& b) { return a.share > b.share; });
  }
  return out;
}

std::string format(std::span<const Hint> hints, size_t most) {
  std::string text, section;
  size_t shown = 0;
  for (const Hint& hint : hints) {
    if (hint.section != section) {
      section = hint.section;
      shown = 0;
      text += "hints: " + section + "\n";
    }
    if (++shown > most) continue;
    SourceLocation at = hint.where;
    at.file = at.file.substr(at.file.find_last_of('/') + 1);
    text += "  " + hint.message + "; " + to_string(at) + "\n";
  }
  return text;
}

}  // namespace ptxvm
