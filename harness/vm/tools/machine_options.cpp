// SPDX-License-Identifier: MIT
#include "tools/machine_options.h"

#include <functional>
#include <map>

namespace ptxvm::tools {
namespace {

/// "race,mbarrier"
std::vector<std::string> parse_list(std::string_view text) {
  std::vector<std::string> out;
  while (true) {
    const size_t comma = text.find(',');
    out.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return out;
    text.remove_prefix(comma + 1);
  }
}

using Words = const std::string&;

const std::map<std::string, std::pair<bool MachineOptions::*, bool>> kFlags{
    {"--reversed", {&MachineOptions::reversed, true}},
    {"--global-races", {&MachineOptions::global_races, true}},
    {"--all", {&MachineOptions::all, true}},
    {"--no-comments", {&MachineOptions::comments, false}},
    {"--no-checkers", {&MachineOptions::checkers, false}}};
const std::map<std::string, std::function<void(MachineOptions&, Words, Words)>> kValues{
    {"--threads",
     [](MachineOptions& o, Words w, Words v) { o.threads = parse_number<int>(w, v, 1); }},
    {"--max-local",
     [](MachineOptions& o, Words w, Words v) { o.max_local = parse_number<uint64_t>(w, v, 1); }},
    {"--max-steps",
     [](MachineOptions& o, Words w, Words v) { o.max_steps = parse_number<uint64_t>(w, v, 1); }},
    {"--registers",
     [](MachineOptions& o, Words w, Words v) { o.registers = parse_number<uint32_t>(w, v, 1); }},
    {"--card", [](MachineOptions& o, Words, Words v) { o.card = v; }},
    {"--ignore", [](MachineOptions& o, Words, Words v) {
       for (std::string& name : parse_list(v)) o.ignored.push_back(std::move(name));
     }}};

}  // namespace

Options MachineOptions::launch_options() const {
  Options out;
  out.threads = threads;
  if (reversed) out.warp_order = out.cta_order = Order::kReversed;
  if (max_steps != 0) out.max_steps = max_steps;
  if (max_local != 0) out.max_local_bytes = max_local;
  if (!card.empty()) out.card = ptxvm::card(card);
  out.registers = registers;
  return out;
}

const std::string& option_value(const std::vector<std::string>& words, size_t& at,
                                const std::string& command) {
  if (at + 1 == words.size() || words[at + 1].empty()) {
    throw UsageError(words[at] + " needs a value; see ptxvm " + command + " --help");
  }
  return words[++at];
}

bool take_machine_option(const std::vector<std::string>& words, size_t& at,
                         const std::string& command, MachineOptions& out) {
  const std::string& word = words[at];
  if (const auto flag = kFlags.find(word); flag != kFlags.end()) {
    out.*flag->second.first = flag->second.second;
    return true;
  }
  const auto value = kValues.find(word);
  if (value == kValues.end()) return false;
  value->second(out, word, option_value(words, at, command));
  return true;
}

}  // namespace ptxvm::tools
