// SPDX-License-Identifier: MIT
#include "tools/launch_options.h"

#include <charconv>
#include <cstdlib>
#include <limits>
#include <utility>

namespace ptxvm::tools {
namespace {

template <class T>
T parse_number(const std::string& what, std::string_view text, T low) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < low) {
    throw UsageError(what + " '" + std::string(text) + "' is not a number that it takes");
  }
  return value;
}

/// "64", "64,2" or "64,2,1".
Dim3 parse_dim3(const std::string& what, std::string_view text) {
  Dim3 dim;
  uint32_t* const parts[] = {&dim.x, &dim.y, &dim.z};
  for (uint32_t* part : parts) {
    const size_t comma = text.find(',');
    *part = parse_number<uint32_t>(what, text.substr(0, comma), 1);
    if (comma == std::string_view::npos) return dim;
    text.remove_prefix(comma + 1);
  }
  throw UsageError(what + " takes at most three extents");
}

/// Splits "NAME:TYPE"; the name may hold colons.
std::pair<std::string, ArrayType> parse_buffer(const std::string& word, size_t prefix) {
  const size_t colon = word.rfind(':');
  if (colon == std::string::npos || colon <= prefix) {
    throw UsageError("--arg '" + word + "': expected " + word.substr(0, prefix) +
                     "NAME:TYPE[EXTENTS], such as " + word.substr(0, prefix) +
                     "O.npy:float16[2,512,128]");
  }
  return {word.substr(prefix, colon - prefix), parse_type(word.substr(colon + 1))};
}

template <class T>
KernelArgument scalar(const std::string& word, size_t prefix) {
  return Scalar{Argument::scalar(parse_number<T>("--arg " + word.substr(0, prefix),
                                                 std::string_view(word).substr(prefix),
                                                 std::numeric_limits<T>::lowest()))};
}

KernelArgument parse_argument(const std::string& word) {
  const size_t prefix = word.find(':') + 1;
  const std::string kind = word.substr(0, prefix);
  if (kind == "i32:") return scalar<int32_t>(word, prefix);
  if (kind == "u32:") return scalar<uint32_t>(word, prefix);
  if (kind == "i64:") return scalar<int64_t>(word, prefix);
  if (kind == "u64:") return scalar<uint64_t>(word, prefix);
  if (kind == "f32:") return scalar<float>(word, prefix);
  if (kind == "f64:") return scalar<double>(word, prefix);
  if (kind == "out:") {
    auto [path, type] = parse_buffer(word, prefix);
    return OutputFile{std::move(path), std::move(type)};
  }
  if (kind == "zero:") {
    auto [name, type] = parse_buffer(word, prefix);
    return ZeroBuffer{std::move(name), std::move(type)};
  }
  if (word.ends_with(".npy")) return InputFile{word};
  throw UsageError("--arg '" + word +
                   "' is not understood; allowed: FILE.npy, out:FILE.npy:TYPE[EXTENTS], "
                   "zero:NAME:TYPE[EXTENTS], i32:N, u32:N, i64:N, u64:N, f32:X, f64:X");
}

}  // namespace

LaunchOptions parse_launch(const std::vector<std::string>& words) {
  LaunchOptions o;
  bool has_block = false;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const auto value = [&]() -> const std::string& {
      if (i + 1 == words.size()) throw UsageError(word + " needs a value");
      return words[++i];
    };
    if (word == "--entry") {
      o.entry = value();
    } else if (word == "--grid") {
      o.grid = parse_dim3(word, value());
    } else if (word == "--block") {
      o.block = parse_dim3(word, value());
      has_block = true;
    } else if (word == "--cluster") {
      o.cluster = parse_dim3(word, value());
    } else if (word == "--smem") {
      o.shared_bytes = parse_number<uint32_t>(word, value(), 0);
    } else if (word == "--threads") {
      o.threads = parse_number<int>(word, value(), 1);
    } else if (word == "--arg") {
      o.arguments.push_back(parse_argument(value()));
    } else if (word == "--by-line") {
      o.by_line = true;
    } else if (word == "--reversed") {
      o.reversed = true;
    } else if (word == "--overwrite") {
      o.overwrite = true;
    } else if (word == "--no-checkers") {
      o.checkers = false;
    } else if (word.starts_with("-") || !o.file.empty()) {
      throw UsageError("'" + word + "' is not understood; see ptxvm --help");
    } else {
      o.file = word;
    }
  }
  if (o.file.empty()) throw UsageError("run needs a PTX file");
  if (o.entry.empty()) throw UsageError("run needs --entry NAME; ptxvm list names the entries");
  if (!has_block) throw UsageError("run needs --block X[,Y,Z]");
  return o;
}

}  // namespace ptxvm::tools
