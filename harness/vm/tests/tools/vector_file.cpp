// SPDX-License-Identifier: MIT
#include "tools/vector_file.h"

#include <fstream>
#include <stdexcept>

#include "tools/json_lines.h"

namespace ptxvm_vectors {
namespace {

void read_line(const std::string& line, VectorFile& file) {
  Reader in(line);
  InputSet set;
  Record record;
  in.fields([&](const std::string& key) {
    if (key == "schema") {
      if (in.string() != "ptxvm-vectors-1") throw std::runtime_error("another schema");
    } else if (key == "group") {
      file.group = in.string();
    } else if (key == "source") {
      file.source = in.strings();
    } else if (key == "notes") {
      file.notes = in.strings();
    } else if (key == "set") {
      set.name = in.string();
    } else if (key == "rows") {
      in.list('[', ']', [&] {
        in.expect('[');
        Row row;
        row.values = in.numbers();
        in.expect(',');
        row.why = in.string();
        in.expect(']');
        set.rows.push_back(std::move(row));
      });
    } else if (key == "op") {
      record.op = in.string();
    } else if (key == "form") {
      record.form = in.string();
    } else if (key == "in") {
      record.set = in.string();
    } else if (key == "out") {
      in.list('[', ']', [&] { record.out.push_back(in.numbers()); });
    } else {
      throw std::runtime_error("unknown field " + key);
    }
  });
  if (!set.name.empty()) file.sets[set.name] = std::move(set);
  if (!record.op.empty()) file.records.push_back(std::move(record));
}

}  // namespace

void write(const VectorFile& file, const std::filesystem::path& path) {
  std::ofstream out(path);
  out << "{\"schema\":\"ptxvm-vectors-1\",\"group\":" << quote(file.group)
      << ",\"source\":" << object(file.source) << ",\"notes\":" << object(file.notes) << "}\n";
  for (const auto& [name, set] : file.sets) {
    out << "{\"set\":" << quote(name) << ",\"rows\":[";
    for (size_t i = 0; i < set.rows.size(); ++i) {
      out << (i ? "," : "") << "[" << quote(join(set.rows[i].values)) << ","
          << quote(set.rows[i].why) << "]";
    }
    out << "]}\n";
  }
  for (const Record& r : file.records) {
    out << "{\"op\":" << quote(r.op) << ",\"form\":" << quote(r.form) << ",\"in\":" << quote(r.set)
        << ",\"out\":[";
    for (size_t i = 0; i < r.out.size(); ++i) out << (i ? "," : "") << quote(join(r.out[i]));
    out << "]}\n";
  }
  if (!out) throw std::runtime_error("cannot write " + path.string());
}

VectorFile read(const std::filesystem::path& path) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error("cannot read " + path.string());
  VectorFile file;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    try {
      read_line(line, file);
    } catch (const std::runtime_error& error) {
      throw std::runtime_error(path.string() + ":" + std::to_string(number) + ": " + error.what());
    }
  }
  return file;
}

}  // namespace ptxvm_vectors
