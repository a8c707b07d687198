#include "harness/cli/count_table.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "harness/bench/counts.h"

namespace fa::cli {
namespace {

using ptxvm::BulkTraffic;
using ptxvm::CountClass;
using ptxvm::Counts;
using ptxvm::GlobalTraffic;
using ptxvm::SharedTraffic;

struct SharedKind {
  const char* name;
  SharedTraffic Counts::*traffic;
};
struct GlobalKind {
  const char* name;
  GlobalTraffic Counts::*traffic;
};

struct BulkKind {
  const char* name;
  BulkTraffic Counts::*traffic;
};

constexpr std::array<SharedKind, 6> kShared{{{"ldmatrix", &Counts::ldmatrix},
                                             {"stmatrix", &Counts::stmatrix},
                                             {"ld.shared", &Counts::shared_load},
                                             {"st.shared", &Counts::shared_store},
                                             {"atom.shared", &Counts::shared_atomic},
                                             {"cp.async", &Counts::shared_copy}}};
constexpr std::array<GlobalKind, 4> kGlobal{{{"ld.global", &Counts::global_load},
                                             {"st.global", &Counts::global_store},
                                             {"atom.global", &Counts::global_atomic},
                                             {"cp.async", &Counts::global_copy}}};
constexpr std::array<BulkKind, 3> kBulk{{{"bulk load", &Counts::bulk_load},
                                         {"bulk store", &Counts::bulk_store},
                                         {"bulk prefetch", &Counts::bulk_prefetch}}};

std::uint64_t tensor_instructions(const Counts& counts) {
  return counts.of(CountClass::kTensor) + counts.of(CountClass::kWgmma);
}

/// Empty where there is no tensor instruction to divide by.
std::string per_tensor(std::uint64_t value, const Counts& counts) {
  const std::uint64_t tensor = tensor_instructions(counts);
  if (tensor == 0) return {};
  return fmt::format("{:.3f}", static_cast<double>(value) / static_cast<double>(tensor));
}

double ways(const SharedTraffic& traffic) {
  return traffic.ideal == 0
             ? 1.0
             : static_cast<double>(traffic.wavefronts) / static_cast<double>(traffic.ideal);
}

std::string instruction_rows(const Counts& counts) {
  std::string text = fmt::format("{:24}{:>16}{:>12}\n", "warp instructions", "", "per mma");
  for (const Measure& each : measures(counts)) {
    if (!each.is_instruction || each.value == 0) continue;
    text += fmt::format("  {:22}{:>16}{:>12}\n", each.key + (each.exact ? " *" : ""),
                        grouped(each.value), per_tensor(each.value, counts));
  }
  const std::uint64_t all = counts.total_instructions();
  return text + fmt::format("  {:22}{:>16}{:>12}\n", "all", grouped(all), per_tensor(all, counts));
}

std::string shared_rows(const Counts& counts) {
  std::string text = fmt::format("{:24}{:>16}{:>16}{:>16}{:>16}{:>8}{:>12}\n", "shared memory",
                                 "requests", "wavefronts", "ideal", "conflicts", "ways", "per mma");
  for (const SharedKind& kind : kShared) {
    const SharedTraffic& traffic = counts.*kind.traffic;
    if (traffic.requests == 0) continue;
    text += fmt::format(
        "  {:22}{:>16}{:>16}{:>16}{:>16}{:>8}{:>12}\n", kind.name, grouped(traffic.requests),
        grouped(traffic.wavefronts), grouped(traffic.ideal), grouped(traffic.conflicts()),
        fmt::format("{:.3g}", ways(traffic)), per_tensor(traffic.wavefronts, counts));
  }
  if (const std::uint64_t wavefronts = counts.wgmma_wavefronts(); wavefronts != 0) {
    text += fmt::format("  {:22}{:>16}{:>16}{:>16}{:>16}{:>8}{:>12}\n", "wgmma", "",
                        grouped(wavefronts), grouped(wavefronts), "0", "1",
                        per_tensor(wavefronts, counts));
  }
  return text;
}

std::string global_rows(const Counts& counts) {
  std::string text = fmt::format("{:24}{:>16}{:>16}{:>16}{:>12}\n", "global memory", "requests",
                                 "sectors", "bytes", "per mma");
  const auto add = [&](const char* name, std::uint64_t requests, std::uint64_t sectors,
                       std::uint64_t bytes) {
    if (requests == 0) return;
    text += fmt::format("  {:22}{:>16}{:>16}{:>16}{:>12}\n", name, grouped(requests),
                        grouped(sectors), grouped(bytes), per_tensor(sectors, counts));
  };
  for (const auto& [name, member] : kGlobal) {
    const GlobalTraffic& traffic = counts.*member;
    add(name, traffic.requests, traffic.sectors, traffic.bytes);
  }
  for (const auto& [name, member] : kBulk) {
    const BulkTraffic& traffic = counts.*member;
    add(name, traffic.copies, traffic.sectors, traffic.global_bytes);
  }
  if (counts.local_bytes != 0) {
    text += fmt::format("local memory\n  {:22}{:>16}\n", "bytes", grouped(counts.local_bytes));
  }
  return text;
}

}  // namespace

std::string grouped(std::uint64_t number) {
  std::string digits = fmt::format("{}", number);
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, 1, ' ');
  return digits;
}

std::string count_table(const Counts& counts) {
  return instruction_rows(counts) + shared_rows(counts) + global_rows(counts) +
         "* one to one in machine code; the others are PTX that ptxas rewrites\n";
}

std::string compare_table(const std::string& first_name, const Counts& first,
                          const std::string& second_name, const Counts& second) {
  const std::vector<Measure> left = measures(first);
  const std::vector<Measure> right = measures(second);
  std::string text = fmt::format("{:28}{:>20}{:>20}{:>10}\n", "", first_name, second_name, "ratio");
  const auto add = [&](const std::string& name, std::uint64_t a, std::uint64_t b) {
    if (a == 0 && b == 0) return;
    const std::string ratio =
        a == 0 ? "-" : fmt::format("{:.3f}", static_cast<double>(b) / static_cast<double>(a));
    text += fmt::format("{:28}{:>20}{:>20}{:>10}\n", name, grouped(a), grouped(b), ratio);
  };
  for (std::size_t i = 0; i < left.size(); ++i) {
    const bool marked = left[i].exact && left[i].is_instruction;
    add(left[i].key + (marked ? " *" : ""), left[i].value, right[i].value);
  }
  add("instructions", first.total_instructions(), second.total_instructions());
  return text + "* one to one in machine code\n";
}

}  // namespace fa::cli
