// SPDX-License-Identifier: MIT
#include "tools/launch_options.h"

#include <functional>
#include <map>

namespace ptxvm::tools {
namespace {

/// "64", "64,2" or "64,2,1".
Dim3 parse_dim3(const std::string& what, std::string_view text) {
  const std::string whole(text);
  Dim3 dim;
  uint32_t* const parts[] = {&dim.x, &dim.y, &dim.z};
  for (uint32_t* part : parts) {
    const size_t comma = text.find(',');
    *part = parse_number<uint32_t>(what, text.substr(0, comma), 1);
    if (comma == std::string_view::npos) return dim;
    text.remove_prefix(comma + 1);
  }
  throw UsageError(what + " '" + whole + "': at most three extents are allowed");
}

VariableWords parse_variable(const std::string& word) {
  const size_t equals = word.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw UsageError("--global '" + word + "': expected NAME=FILE.npy, or any --arg after the =");
  }
  VariableWords out{word.substr(0, equals), parse_argument(word.substr(equals + 1))};
  const auto* buffer = std::get_if<BufferArgument>(&out.value);
  const bool earlier = buffer && buffer->begin == BufferArgument::Begin::kEarlier;
  if (earlier || (!buffer && !std::holds_alternative<ValueArgument>(out.value))) {
    throw UsageError("--global '" + word +
                     "': allowed after the =: FILE.npy, inout:, out:, zero:, a scalar, raw:HEX");
  }
  return out;
}

class Reader {
 public:
  explicit Reader(const std::vector<std::string>& words) : words_(words) {
    out_.launches.emplace_back();
  }

  LaunchOptions read() {
    for (at_ = 0; at_ < words_.size(); ++at_) {
      const std::string& word = words_[at_];
      if (take_machine_option(words_, at_, "run", out_)) continue;
      if (const auto flag = flags_.find(word); flag != flags_.end()) {
        out_.*flag->second.first = flag->second.second;
      } else if (const auto option = options_.find(word); option != options_.end()) {
        option->second(word, option_value(words_, at_, "run"));
      } else if (word == "--then") {
        next_launch();
      } else if (word == "--cooperative") {
        launch().cooperative = true;
      } else if (word.starts_with("-") || !out_.file.empty()) {
        throw UsageError("'" + word + "' is not understood; see ptxvm run --help");
      } else {
        out_.file = word;
      }
    }
    if (out_.file.empty()) throw UsageError("run needs a PTX file");
    return std::move(out_);
  }

 private:
  using Value = const std::string&;

  LaunchWords& launch() { return out_.launches.back(); }

  /// What is not said again stays; arguments that are not given again are the same buffers.
  void next_launch() {
    LaunchWords next = launch();
    next.arguments.clear();
    out_.launches.push_back(std::move(next));
  }

  const std::vector<std::string>& words_;
  size_t at_ = 0;
  LaunchOptions out_;
  const std::map<std::string, std::pair<bool LaunchOptions::*, bool>> flags_{
      {"--by-line", {&LaunchOptions::by_line, true}},
      {"--overwrite", {&LaunchOptions::overwrite, true}},
      {"--json", {&LaunchOptions::json, true}},
      {"--no-hints", {&LaunchOptions::hints, false}}};
  const std::map<std::string, std::function<void(Value, Value)>> options_{
      {"--entry", [this](Value, Value v) { launch().entry = v; }},
      {"--grid", [this](Value w, Value v) { launch().grid = parse_dim3(w, v); }},
      {"--block", [this](Value w, Value v) { launch().block = parse_dim3(w, v); }},
      {"--cluster", [this](Value w, Value v) { launch().cluster = parse_dim3(w, v); }},
      {"--smem",
       [this](Value w, Value v) { launch().shared_bytes = parse_number<uint32_t>(w, v, 0); }},
      {"--arg", [this](Value, Value v) { launch().arguments.push_back(parse_argument(v)); }},
      {"--global", [this](Value, Value v) { out_.variables.push_back(parse_variable(v)); }}};
};

}  // namespace

LaunchOptions parse_launch(const std::vector<std::string>& words) {
  return Reader(words).read();
}

}  // namespace ptxvm::tools
