// SPDX-License-Identifier: MIT
#include "tools/wgmma_file.h"

#include <charconv>
#include <fstream>
#include <stdexcept>

#include "tools/json_lines.h"

namespace ptxvm_vectors {
namespace {

constexpr const char* kSchema = "ptxvm-wgmma-1";

using Column = std::vector<uint64_t>;

// `0-7 9 b-c`
std::string ranges(const std::vector<uint64_t>& numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size();) {
    size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    text += (i ? " " : "") + join({numbers[i]}) + (last > i ? "-" + join({numbers[last]}) : "");
    i = last + 1;
  }
  return text;
}

std::vector<uint64_t> parse_ranges(const std::string& text) {
  std::vector<uint64_t> out;
  const char* at = text.data();
  const char* end = at + text.size();
  const auto number = [&] {
    uint64_t v = 0;
    const auto [next, error] = std::from_chars(at, end, v, 16);
    if (error != std::errc{}) throw std::runtime_error("not a range: " + text);
    at = next;
    return v;
  };
  while (at < end) {
    const uint64_t first = number();
    uint64_t last = first;
    if (at < end && *at == '-') {
      ++at;
      last = number();
    }
    if (last < first || last - first >= kMostColumns)
      throw std::runtime_error("not a range: " + text);
    for (uint64_t v = first; v <= last; ++v) out.push_back(v);
    if (at < end) ++at;
  }
  return out;
}

void read_line(const std::string& line, WgmmaFile& file, std::vector<Column>& columns) {
  Reader in(line);
  std::string matrix;
  Matrix m;
  Column bits;
  bool column = false;
  WgmmaRecord record;
  in.fields([&](const std::string& key) {
    if (key == "schema") {
      if (in.string() != kSchema) throw std::runtime_error("another schema");
    } else if (key == "source") {
      file.source = in.strings();
    } else if (key == "matrix") {
      matrix = in.string();
    } else if (key == "columns") {
      m.columns = static_cast<int>(in.numbers().at(0));
    } else if (key == "column") {
      column = true;
      if (in.numbers().at(0) != columns.size()) throw std::runtime_error("columns out of order");
    } else if (key == "bits") {
      bits = in.numbers();
    } else if (key == "op") {
      record.op = in.string();
    } else if (key == "case") {
      record.name = in.string();
    } else if (key == "why") {
      record.why = in.string();
    } else if (key == "d") {
      for (uint64_t c : parse_ranges(in.string())) record.columns.push_back(columns.at(c));
    } else {
      throw std::runtime_error("unknown field " + key);
    }
  });
  if (!matrix.empty()) {
    m.bits = std::move(bits);
    file.matrices[matrix] = std::move(m);
  } else if (column) {
    columns.push_back(std::move(bits));
  } else if (!record.op.empty()) {
    file.records.push_back(std::move(record));
  }
}

}  // namespace

void write_wgmma(const WgmmaFile& file, const std::filesystem::path& path) {
  std::ofstream out(path);
  out << "{\"schema\":" << quote(kSchema) << ",\"source\":" << object(file.source) << "}\n";
  for (const auto& [name, m] : file.matrices) {
    out << "{\"matrix\":" << quote(name)
        << ",\"columns\":" << quote(join({static_cast<uint64_t>(m.columns)}))
        << ",\"bits\":" << quote(join(m.bits)) << "}\n";
  }
  std::map<Column, uint64_t> known;
  std::vector<std::string> cases;
  for (const WgmmaRecord& r : file.records) {
    std::vector<uint64_t> numbers;
    for (const Column& c : r.columns) {
      const auto [at, fresh] = known.try_emplace(c, known.size());
      if (fresh) {
        out << "{\"column\":" << quote(join({at->second})) << ",\"bits\":" << quote(join(c))
            << "}\n";
      }
      numbers.push_back(at->second);
    }
    cases.push_back("{\"op\":" + quote(r.op) + ",\"case\":" + quote(r.name) +
                    ",\"why\":" + quote(r.why) + ",\"d\":" + quote(ranges(numbers)) + "}\n");
  }
  for (const std::string& c : cases) out << c;
  if (!out) throw std::runtime_error("cannot write " + path.string());
}

WgmmaFile read_wgmma(const std::filesystem::path& path) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error("cannot read " + path.string());
  WgmmaFile file;
  std::vector<Column> columns;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    try {
      read_line(line, file, columns);
    } catch (const std::exception& error) {
      throw std::runtime_error(path.string() + ":" + std::to_string(number) + ": " + error.what());
    }
  }
  return file;
}

}  // namespace ptxvm_vectors
