// SPDX-License-Identifier: MIT
// Sums and tables of counts.
#include "ptxvm/report.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace ptxvm {

void SharedTraffic::add(const SharedTraffic& o) {
  requests += o.requests;
  wavefronts += o.wavefronts;
  ideal += o.ideal;
  bytes += o.bytes;
}

void GlobalTraffic::add(const GlobalTraffic& o) {
  requests += o.requests;
  sectors += o.sectors;
  bytes += o.bytes;
}

void BulkTraffic::add(const BulkTraffic& o) {
  copies += o.copies;
  bytes += o.bytes;
  global_bytes += o.global_bytes;
  sectors += o.sectors;
}

uint64_t Counts::total_instructions() const {
  uint64_t sum = 0;
  for (uint64_t n : instructions) sum += n;
  return sum;
}

SharedTraffic Counts::shared_requests() const {
  SharedTraffic sum;
  for (const auto* kind :
       {&shared_load, &shared_store, &shared_atomic, &ldmatrix, &stmatrix, &shared_copy}) {
    sum.add(*kind);
  }
  return sum;
}

uint64_t Counts::global_sectors() const {
  return global_load.sectors + global_store.sectors + global_atomic.sectors + global_copy.sectors +
         bulk_load.sectors + bulk_store.sectors + bulk_prefetch.sectors;
}

void Counts::add(const Counts& o) {
  for (size_t i = 0; i < instructions.size(); ++i) instructions[i] += o.instructions[i];
  shared_load.add(o.shared_load);
  shared_store.add(o.shared_store);
  shared_atomic.add(o.shared_atomic);
  ldmatrix.add(o.ldmatrix);
  stmatrix.add(o.stmatrix);
  shared_copy.add(o.shared_copy);
  global_load.add(o.global_load);
  global_store.add(o.global_store);
  global_atomic.add(o.global_atomic);
  global_copy.add(o.global_copy);
  bulk_load.add(o.bulk_load);
  bulk_store.add(o.bulk_store);
  bulk_prefetch.add(o.bulk_prefetch);
  wgmma_bytes += o.wgmma_bytes;
  local_bytes += o.local_bytes;
}

std::vector<SourceCounts> CountReport::by_source(LineView view) const {
  // The files of kernels stand first and those of inlined functions behind them, so that the order
  // does not depend on the folder of the toolkit.
  std::set<std::string> kernels;
  for (const LineCounts& l : by_instruction) {
    if (!l.source.empty()) kernels.insert(l.source.back().file);
  }
  std::map<std::tuple<bool, std::string, int>, Counts> lines;
  for (const LineCounts& l : by_instruction) {
    if (l.source.empty()) continue;
    const SourceLocation& at = view == LineView::kInnermost ? l.source.front() : l.source.back();
    lines[{!kernels.contains(at.file), at.file, at.line}].add(l.counts);
  }
  std::vector<SourceCounts> out;
  for (auto& [key, counts] : lines) {
    out.push_back({{std::get<std::string>(key), std::get<int>(key), 0}, counts});
  }
  return out;
}

namespace {

std::string number(uint64_t n) {
  std::string digits = std::to_string(n);
  for (int i = static_cast<int>(digits.size()) - 3; i > 0; i -= 3) {
    digits.insert(static_cast<size_t>(i), 1, ' ');
  }
  return digits;
}

std::string row(std::string_view name, std::initializer_list<std::string> cells) {
  std::string text = "  " + std::string(name);
  text.resize(std::max<size_t>(text.size(), 22), ' ');
  for (const std::string& c : cells) {
    text += std::string(c.size() < 16 ? 16 - c.size() : 1, ' ') + c;
  }
  return text + "\n";
}

std::string ways(const SharedTraffic& t) {
  char text[32];
  std::snprintf(
      text, sizeof text, "x%.2f",
      t.ideal == 0 ? 1.0 : static_cast<double>(t.wavefronts) / static_cast<double>(t.ideal));
  return text;
}

}  // namespace

std::string format(const Counts& c) {
  std::string out = "warp instructions\n";
  for (size_t i = 0; i < c.instructions.size(); ++i) {
    if (c.instructions[i] == 0) continue;
    const auto k = static_cast<CountClass>(i);
    out += row(name(k), {number(c.instructions[i])});
  }
  out += row("total", {number(c.total_instructions())});
  out += "shared memory\n" + row("", {"requests", "wavefronts", "ideal", "ways"});
  const std::pair<std::string_view, const SharedTraffic*> shared[] = {
      {"load", &c.shared_load},  {"store", &c.shared_store}, {"atomic", &c.shared_atomic},
      {"ldmatrix", &c.ldmatrix}, {"stmatrix", &c.stmatrix},  {"cp.async", &c.shared_copy}};
  for (const auto& [what, t] : shared) {
    if (t->requests != 0) {
      out += row(what, {number(t->requests), number(t->wavefronts), number(t->ideal), ways(*t)});
    }
  }
  out += "global memory\n" + row("", {"requests", "sectors", "bytes"});
  const std::pair<std::string_view, const GlobalTraffic*> global[] = {{"load", &c.global_load},
                                                                      {"store", &c.global_store},
                                                                      {"atomic", &c.global_atomic},
                                                                      {"cp.async", &c.global_copy}};
  for (const auto& [what, t] : global) {
    if (t->requests != 0) {
      out += row(what, {number(t->requests), number(t->sectors), number(t->bytes)});
    }
  }
  const std::pair<std::string_view, const BulkTraffic*> bulk[] = {
      {"load", &c.bulk_load}, {"store", &c.bulk_store}, {"prefetch", &c.bulk_prefetch}};
  bool heading = false;
  for (const auto& [what, t] : bulk) {
    if (t->copies == 0) continue;
    if (!heading) out += "bulk copies\n" + row("", {"copies", "sectors", "bytes"});
    heading = true;
    out += row(what, {number(t->copies), number(t->sectors), number(t->bytes)});
  }
  if (c.wgmma_bytes != 0)
    out += "wgmma\n" + row("shared wavefronts", {number(c.wgmma_wavefronts())});
  if (c.local_bytes != 0) out += "local memory\n" + row("bytes", {number(c.local_bytes)});
  return out;
}

}  // namespace ptxvm
