// SPDX-License-Identifier: MIT
#include "observe/conflicts.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "exec/fault.h"
#include "memory/tensor_memory.h"
#include "observe/instruction.h"

namespace ptxvm {

std::string format(const Finding& finding) {
  std::string text = finding.checker + ": " + finding.message;
  if (finding.count > 1) text += "   x" + std::to_string(finding.count);
  // The rest of the diagnostic: the line, the caret, the notes.
  const std::string where = finding.where.format();
  const size_t rest = where.find('\n');
  return rest == std::string::npos ? text : text + where.substr(rest);
}

uint32_t AccessEvent::unchanged() const {
  uint32_t same = 0;
  for (uint32_t rest = write ? mask : 0; rest != 0; rest &= rest - 1) {
    const int lane = __builtin_ctz(rest);
    std::byte value[kMostWritten];
    write(store, lane, value);
    if (std::memcmp(memory[lane], value, bytes) == 0) same |= 1u << lane;
  }
  return same;
}

namespace observe {
namespace {

template <class T>
std::string number(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  if constexpr (std::is_integral_v<T>) {
    return std::to_string(value);
  } else {  // the fewest digits that are this number; not every library's to_chars has floats
    char text[32];
    for (int digits = 6;; ++digits) {
      std::snprintf(text, sizeof text, "%.*g", digits, static_cast<double>(value));
      if (digits == 17 || !(static_cast<T>(std::strtod(text, nullptr)) != value)) return text;
    }
  }
}

struct Format {
  Type type;
  uint32_t bytes;
  std::string (*text)(const std::byte*);
};

template <class T>
std::string bits(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return hex(value, 2 * sizeof value);
}

constexpr Format kFormats[] = {
    {Type::kF32, 4, number<float>},    {Type::kF64, 8, number<double>},
    {Type::kU8, 1, number<uint8_t>},   {Type::kU16, 2, number<uint16_t>},
    {Type::kU32, 4, number<uint32_t>}, {Type::kU64, 8, number<uint64_t>},
    {Type::kS8, 1, number<int8_t>},    {Type::kS16, 2, number<int16_t>},
    {Type::kS32, 4, number<int32_t>},  {Type::kS64, 8, number<int64_t>},
    {Type::kB8, 1, bits<uint8_t>},     {Type::kB16, 2, bits<uint16_t>},
    {Type::kB64, 8, bits<uint64_t>},
};
constexpr Format kWords = {Type::kNone, 4, bits<uint32_t>};

// As the type of the instruction says; the first elements of a vector, and rows as words.
std::string show(const Value& v, Type type) {
  constexpr uint32_t kMostElements = 4;
  Format format = kWords;
  for (const Format& each : kFormats) {
    if (type == each.type && v.count / each.bytes <= kMostElements) format = each;
  }
  if (v.count < format.bytes) return {};
  const uint32_t count = std::min(v.count / format.bytes, kMostElements);
  std::string text;
  for (uint32_t i = 0; i < count; ++i) {
    text += (i == 0 ? "" : ", ") + format.text(&v.bytes[size_t{i} * format.bytes]);
  }
  return count == 1 ? text : "{" + text + "}";
}

class Writer {
 public:
  explicit Writer(const Kernel& kernel) : kernel_(kernel) {}

  Finding finding(const FindingKey& key, const FindingLog::Entry& e, uint64_t count,
                  size_t pairs) const {
    Finding f;
    f.instruction = key.instruction;
    f.count = count;
    f.checker = checker(key.problem);
    f.message = message(key, e.example);
    f.severity = is_advice(key.problem) ? Severity::kAdvice : Severity::kError;
    f.where = kernel_.point_at(key.instruction, f.message);
    if (names_other(key.problem)) {
      f.other = key.other;
      const Diagnostic other = kernel_.point_at(key.other, {});
      std::string note = "the other is " + place(key.other, false) + ": " + trimmed(other.text);
      if (note.ends_with(';')) note.pop_back();
      if (!other.notes.empty()) note += "; " + other.notes.front();
      f.where.notes.push_back(std::move(note));
    }
    if (e.example.used && *e.example.used != key.instruction) {
      const Diagnostic use = kernel_.point_at(*e.example.used, {});
      std::string note = "its value is used at " + place(*e.example.used, false) + ": ";
      note += trimmed(use.text);
      if (note.ends_with(';')) note.pop_back();
      f.where.notes.push_back(std::move(note));
    }
    if (pairs > 1) {
      f.where.notes.push_back("the same source lines meet in " + std::to_string(pairs) +
                              " pairs of instructions; this is the first");
    }
    const Dim3 p = e.example.position;
    f.where.notes.push_back("kernel " + kernel_.readable_name() + ", block (" +
                            std::to_string(p.x) + ", " + std::to_string(p.y) + ", " +
                            std::to_string(p.z) + ")");
    return f;
  }

 private:
  static bool is_advice(Problem problem) {
    return problem == Problem::kHandedOn || problem == Problem::kMbarrierFence ||
           problem == Problem::kMbarrierAgain || problem == Problem::kStoreNotWaited ||
           problem == Problem::kGlobalUnfenced || problem == Problem::kSameValue ||
           problem == Problem::kGlobalSameValue || problem == Problem::kTensorFence ||
           problem == Problem::kTensorWraps || problem == Problem::kTensorLane ||
           problem == Problem::kTensorEarly || problem == Problem::kGenericAddress ||
           problem == Problem::kSharedAddress;
  }

  static std::string checker(Problem problem) {
    switch (problem) {
      case Problem::kRace:
      case Problem::kSameValue:
      case Problem::kLaneRace:
      case Problem::kHandedOn:
      case Problem::kGlobalRace:
      case Problem::kGlobalUnfenced:
      case Problem::kGlobalSameValue:
      case Problem::kTensorRace:
        return "race";
      case Problem::kUnwritten:
      case Problem::kGlobalUnwritten:
      case Problem::kUnwrittenLocal:
      case Problem::kUnset:
      case Problem::kTensorUnwritten:
        return "uninitialised";
      case Problem::kProxy:
        return "proxy";
      case Problem::kCopyNotWaited:
      case Problem::kCopyNotCommitted:
      case Problem::kStoreNotWaited:
      case Problem::kWgmmaNotWaited:
      case Problem::kTensorNotWaited:
      case Problem::kTensorNotCommitted:
        return "copy";
      case Problem::kGlobalOrder:
        return "order";
      case Problem::kGenericAddress:
      case Problem::kSharedAddress:
        return "address";
      case Problem::kBarrierLeft:
        return "barrier";
      case Problem::kMbarrierInit:
      case Problem::kMbarrierFence:
      case Problem::kMbarrierAgain:
      case Problem::kMbarrierLate:
        return "mbarrier";
      case Problem::kUnfenced:
        return "wgmma";
      case Problem::kTensorAllocation:
      case Problem::kTensorEarly:
      case Problem::kTensorFence:
      case Problem::kTensorWraps:
      case Problem::kTensorLane:
      case Problem::kTensorAddress:
        return "tcgen05";
      case Problem::kBlockStart:
      case Problem::kBlockExit:
        return "cluster";
    }
    return {};
  }

  static std::string of_block(int block) {
    return block < 0 ? std::string() : " of block " + std::to_string(block);
  }

  static bool names_other(Problem problem) {
    return problem == Problem::kRace || problem == Problem::kLaneRace ||
           problem == Problem::kHandedOn || problem == Problem::kProxy ||
           problem == Problem::kMbarrierInit || problem == Problem::kMbarrierFence ||
           problem == Problem::kMbarrierAgain || problem == Problem::kMbarrierLate ||
           problem == Problem::kGlobalRace || problem == Problem::kGlobalUnfenced ||
           problem == Problem::kSameValue || problem == Problem::kGlobalSameValue ||
           problem == Problem::kGlobalOrder || problem == Problem::kTensorRace ||
           problem == Problem::kTensorFence || problem == Problem::kTensorAllocation ||
           problem == Problem::kTensorEarly;
  }

  static std::string trimmed(const std::string& s) {
    const size_t first = s.find_first_not_of(" \t");
    return first == std::string::npos ? std::string() : s.substr(first);
  }

  // `kernel.ptx:716 (gemm.cuh:55)`; without the file name where another place has named it.
  std::string place(uint32_t instruction, bool with_file) const {
    const Diagnostic d = kernel_.point_at(instruction, {});
    std::string text = with_file ? d.where.file : std::string();
    text += ":" + std::to_string(d.where.line);
    const auto chain = kernel_.source(instruction);
    if (!chain.empty()) {
      const std::string& file = chain[0].file;
      text += " (" + file.substr(file.find_last_of('/') + 1) + ":" + std::to_string(chain[0].line) +
              ")";
    }
    return text;
  }

  static std::string who(const Party& p, bool with_lane) {
    const std::string n = std::to_string(p.number) + of_block(p.block);
    switch (p.kind) {
      case AgentKind::kNobody:
        return "nobody";
      case AgentKind::kWarp:
        if (!with_lane || p.lane == Place::kWarp) return "warp " + n;
        if (p.lane == Place::kMany) return "several lanes of warp " + n;
        return "lane " + std::to_string(p.lane) + " of warp " + n;
      case AgentKind::kCopies:
        return "a cp.async of warp " + n;
      case AgentKind::kBulkStore:
        return "a bulk store of warp " + n;
      case AgentKind::kWgmma:
        return "wgmma of warpgroup " + n;
      case AgentKind::kBulkLoad:
        return "a bulk copy";  // of whichever block
      case AgentKind::kTensorLoad:
        return "a tcgen05.ld of warp " + n;
      case AgentKind::kTensorStore:
        return "a tcgen05.st of warp " + n;
      case AgentKind::kTensorCore:
        return "the tensor core, for warp " + n;
    }
    return {};
  }

  static std::string memory(const Example& e, const char* space) {
    const std::string where = e.buffer.empty() ? space : "global '" + e.buffer + "'";
    return where + " +" + std::to_string(e.address) + of_block(e.block) + ", " +
           std::to_string(e.bytes) + (e.bytes == 1 ? " byte" : " bytes") + ": ";
  }

  // Warps act at a place, engines are given their work there.
  std::string acts(const Party& p, uint32_t instruction, bool with_lane, bool with_file,
                   const std::string& verb) const {
    const std::string at = place(instruction, with_file);
    if (p.kind == AgentKind::kWarp) return who(p, with_lane) + " " + verb + " at " + at;
    return who(p, with_lane) + ", issued at " + at + ", " + verb;
  }

  std::string race(const FindingKey& key, const Example& e) const {
    const bool lanes = key.problem == Problem::kLaneRace || key.problem == Problem::kHandedOn;
    const bool reads = key.hazard == Hazard::kReadAfterWrite;
    // Engines go on until somebody waits for them.
    const bool in_flight = e.there.kind != AgentKind::kWarp;
    std::string did = e.there_copied ? "copied" : "wrote";
    if (key.hazard == Hazard::kWriteAfterRead) did = in_flight ? "is still reading" : "read";
    if (key.hazard != Hazard::kWriteAfterRead && in_flight) did = "is still writing";
    const std::string text =
        memory(e, "shared") +
        acts(e.here, key.instruction, lanes, true, reads ? "reads" : "overwrites") + " what " +
        acts(e.there, key.other, lanes, false, did);
    if (key.problem == Problem::kSameValue || key.problem == Problem::kGlobalSameValue) {
      return text + "; nothing orders them, and both write the same value";
    }
    if (key.problem == Problem::kHandedOn) {
      return text + "; a shfl.sync hands on what was read, and orders no memory";
    }
    if (lanes) return text + "; no bar.warp.sync comes between";
    if (in_flight && key.same_warp) return text + "; no wait comes between";
    if (key.problem == Problem::kGlobalUnfenced) {
      return text + "; the flag between them was read without acquire, and no fence follows it";
    }
    return text + "; nothing orders them";
  }

  // `tensor memory, lanes 32 to 47, column 5: `
  static std::string tensor_memory(const Example& e) {
    const uint64_t lane = e.address / TensorMemory::kColumns * 16;
    return "tensor memory" + of_block(e.block) + ", lanes " + std::to_string(lane) + " to " +
           std::to_string(lane + 15) + ", column " +
           std::to_string(e.address % TensorMemory::kColumns) + ": ";
  }

  // Two uses of tensor memory; a warp itself only frees it.
  std::string tensor_uses(const FindingKey& key, const Example& e) const {
    const bool frees = e.here.kind == AgentKind::kWarp;
    std::string did = key.hazard == Hazard::kWriteAfterRead ? "reads" : "writes";
    return tensor_memory(e) +
           acts(e.here, key.instruction, false, true,
                frees                                   ? "frees"
                : key.hazard == Hazard::kReadAfterWrite ? "reads"
                                                        : "overwrites") +
           " what " + acts(e.there, key.other, false, false, did);
  }

  // What was read and what was written. An engine may not have written yet, or read.
  std::string values(const FindingKey& key, const Example& e) const {
    if (e.before.count == 0) return {};
    const Type type = spelling_of(kernel_, key.instruction).type;
    const std::string before = show(e.before, type), after = show(e.after, type);
    const bool in_flight = e.there.kind != AgentKind::kWarp;
    std::string text = "; " + before;
    if (key.hazard == Hazard::kReadAfterWrite) {
      return text + (in_flight ? " is read" : " was written and is read");
    }
    text += in_flight                               ? " was there"
            : key.hazard == Hazard::kWriteAfterRead ? " was read"
                                                    : " was written";
    return after.empty() ? text : text + ", " + after + " is written";
  }

  std::string message(const FindingKey& key, const Example& e) const {
    const std::string at = " at " + place(key.instruction, true);
    switch (key.problem) {
      case Problem::kRace:
      case Problem::kSameValue:
      case Problem::kLaneRace:
      case Problem::kHandedOn:
      case Problem::kGlobalRace:
      case Problem::kGlobalUnfenced:
      case Problem::kGlobalSameValue:
        return race(key, e) + values(key, e);
      case Problem::kGlobalOrder:
        return memory(e, "shared") + acts(e.here, key.instruction, false, true, "adds") +
               " to what " + acts(e.there, key.other, false, false, "added") +
               "; nothing orders them, so the rounded sum may differ between launches";
      case Problem::kUnwritten:
      case Problem::kGlobalUnwritten:
        return memory(e, "shared") + acts(e.here, key.instruction, false, true, "reads") +
               " what nobody has written";
      case Problem::kUnwrittenLocal:
        return memory(e, "local") + acts(e.here, key.instruction, true, true, "reads") +
               " what it has not written";
      case Problem::kUnset:
        return "register " + e.unset + ": " + who(e.here, false) + " uses its value" + at +
               ", and nothing has set it";
      case Problem::kProxy:
        return memory(e, "shared") + acts(e.here, key.instruction, false, true, "reads") +
               " what " +
               acts(e.there, key.other, false, false, e.there_copied ? "copied" : "wrote") +
               "; no fence.proxy.async comes between";
      case Problem::kCopyNotWaited:
        return who(e.here, false) + " exits, and nothing has waited for its copies" + at;
      case Problem::kCopyNotCommitted:
        return who(e.here, false) + " exits, and its copies" + at +
               " were neither committed nor waited for";
      case Problem::kStoreNotWaited:
        return who(e.here, false) + " exits, and nothing has waited for its bulk stores" + at;
      case Problem::kWgmmaNotWaited:
        return who(e.here, false) + " exits, and nothing has waited for its wgmma" + at;
      case Problem::kBarrierLeft:
        return "barrier " + std::to_string(e.address) + ": " + who(e.here, false) + " arrives" +
               at + ", and the phase is never complete";
      case Problem::kMbarrierInit:
        return "mbarrier at shared +" + std::to_string(e.address) + of_block(e.block) + ": " +
               who(e.here, false) + " uses it" + at + "; nothing orders this after the init by " +
               who(e.there, false) + " at " + place(key.other, false);
      case Problem::kMbarrierFence:
        return "mbarrier at shared +" + std::to_string(e.address) + of_block(e.block) +
               ": a bulk copy uses it" + at +
               "; no fence.mbarrier_init or fence.proxy.async follows the init at " +
               place(key.other, false);
      case Problem::kMbarrierAgain:
        return "mbarrier at shared +" + std::to_string(e.address) + of_block(e.block) + ": " +
               who(e.here, false) + " initialises it" + at + ", which " + who(e.there, false) +
               " has done at " + place(key.other, false) +
               "; cards take it, the rules want one thread to do it";
      case Problem::kMbarrierLate:
        return "mbarrier at shared +" + std::to_string(e.address) + of_block(e.block) + ": " +
               who(e.here, false) + " waits for " +
               (e.phase == 0 ? "the phase before the first"
                             : "phase " + std::to_string(e.phase - 1)) +
               at + "; nothing orders this before the end of phase " + std::to_string(e.phase) +
               " by " + who(e.there, false) + " at " + place(key.other, false) +
               ", and a late warp waits for phase " + std::to_string(e.phase + 1);
      case Problem::kUnfenced:
        return who(e.here, false) + " issues a wgmma" + at +
               " on registers that were written after its last wgmma.fence";
      case Problem::kTensorRace:
        return tensor_uses(key, e) +
               (key.same_warp ? "; no wait comes between" : "; nothing orders them");
      case Problem::kTensorFence:
        return tensor_uses(key, e) +
               (e.published ? "; no tcgen05.fence::after_thread_sync comes before the first"
                            : "; no tcgen05.fence::before_thread_sync follows the second");
      case Problem::kTensorUnwritten:
        return tensor_memory(e) + acts(e.here, key.instruction, false, true, "reads") +
               " what nobody has written";
      case Problem::kTensorAllocation:
        return "tensor memory" + of_block(e.block) + ", column " + std::to_string(e.address) +
               ": " + who(e.here, false) + " uses it" + at +
               "; nothing orders this after the allocation by " + who(e.there, false) + " at " +
               place(key.other, false);
      case Problem::kTensorEarly:
        return who(e.here, false) + " uses a register" + at + " that the tcgen05.ld at " +
               place(key.other, false) + " loads; no tcgen05.wait::ld comes between";
      case Problem::kTensorWraps:
        return who(e.here, false) + " names a lane of tensor memory above 127" + at +
               "; cards leave the upper bits out, the rules do not say so";
      case Problem::kGenericAddress:
        return who(e.here, false) + " gives a generic address to an instruction of .shared" + at +
               "; cards use the lower half, the rules ask for cvta.to.shared";
      case Problem::kSharedAddress:
        return who(e.here, false) + " gives an address of shared memory" + at +
               "; cards take it, the rules ask for a generic one where no space is named";
      case Problem::kTensorLane:
        return who(e.here, false) + " names lanes of warp 0 in tensor memory" + at +
               "; cards use its own lanes, the rules ask for their number";
      case Problem::kTensorAddress:
        return who(e.here, false) + " gives several addresses of tensor memory" + at +
               "; all threads must give the same, and this run uses the first thread's";
      case Problem::kTensorNotWaited:
        return who(e.here, false) + " exits, and no tcgen05.wait follows" + at;
      case Problem::kTensorNotCommitted:
        return who(e.here, false) + " exits, and no tcgen05.commit follows" + at;
      case Problem::kBlockStart:
        return who(e.here, false) + " uses shared memory" + of_block(e.block) + at +
               "; nothing says that this block has started";
      case Problem::kBlockExit:
        return who(e.here, false) + " uses shared memory" + of_block(e.block) + at +
               "; nothing orders this before the exit of that block";
    }
    return {};
  }

  const Kernel& kernel_;
};

}  // namespace

void Example::show(const AccessEvent& e, int lane) {
  before.count = std::min(e.bytes, static_cast<uint32_t>(before.bytes.size()));
  std::memcpy(before.bytes.data(), e.memory[lane], before.count);
  if (!e.write) return;
  std::byte value[AccessEvent::kMostWritten];
  e.write(e.store, lane, value);
  after.count = before.count;
  std::memcpy(after.bytes.data(), value, after.count);
}

void FindingLog::add(const FindingKey& key, const Example& example) {
  auto [at, is_new] = entries_.try_emplace(key);
  Entry& e = at->second;
  if (e.request == request_) return;
  e.request = request_;
  ++e.count;
  if (is_new || example.cta < e.example.cta) e.example = example;
}

void FindingLog::merge(const FindingLog& o) {
  for (const auto& [key, theirs] : o.entries_) {
    auto [at, is_new] = entries_.try_emplace(key);
    Entry& e = at->second;
    e.count += theirs.count;
    if (is_new || theirs.example.cta < e.example.cta) e.example = theirs.example;
  }
}

std::vector<Finding> describe(const FindingLog& log, const Kernel& kernel) {
  // Loops that nvcc unrolled make many pairs of instructions out of one pair of source lines.
  struct Group {
    const std::pair<const FindingKey, FindingLog::Entry>* first;
    uint64_t count = 0;
    size_t pairs = 0;
  };
  std::vector<Group> groups;
  std::map<std::vector<std::string>, size_t> known;
  auto site = [&](uint32_t instruction) {
    std::string text;
    for (const SourceLocation& at : kernel.source(instruction)) text += to_string(at) + ",";
    return text.empty() ? "#" + std::to_string(instruction) : text;
  };
  for (const auto& entry : log.entries()) {
    const FindingKey& k = entry.first;
    const auto number = [](auto v) { return std::to_string(static_cast<int>(v)); };
    const auto [at, is_new] = known.try_emplace(
        {number(k.problem), number(k.hazard), number(k.kind), number(k.other_kind),
         number(k.same_warp), site(k.instruction), site(k.other)},
        groups.size());
    if (is_new) groups.push_back({&entry});
    Group& g = groups[at->second];
    g.count += entry.second.count;
    ++g.pairs;
  }
  // A warp that did not wait for its own engine is the cause of what others then see.
  std::stable_sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) {
    const FindingKey &x = a.first->first, &y = b.first->first;
    return std::pair(x.problem, !x.same_warp) < std::pair(y.problem, !y.same_warp);
  });
  const Writer writer(kernel);
  std::vector<Finding> out;
  for (const Group& g : groups) {
    out.push_back(writer.finding(g.first->first, g.first->second, g.count, g.pairs));
  }
  return out;
}

}  // namespace observe
}  // namespace ptxvm
