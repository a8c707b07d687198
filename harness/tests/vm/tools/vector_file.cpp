#include "tools/vector_file.h"

#include <charconv>
#include <fstream>
#include <stdexcept>

namespace ptxvm_vectors {
namespace {

std::string hex(uint64_t v) {
  char text[17];
  const auto end = std::to_chars(text, text + sizeof text, v, 16).ptr;
  return std::string(text, end);
}

std::string join(const std::vector<uint64_t>& values) {
  std::string text;
  for (uint64_t v : values) text += (text.empty() ? "" : " ") + hex(v);
  return text;
}

std::string quote(const std::string& text) {
  return '"' + text + '"';
}

std::string object(const std::map<std::string, std::string>& fields) {
  std::string text;
  for (const auto& [key, value] : fields)
    text += (text.empty() ? "" : ",") + quote(key) + ":" + quote(value);
  return "{" + text + "}";
}

// Reads the subset of JSON that is written here: strings without escapes, arrays, objects.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  bool accept(char c) {
    if (text_.empty() || text_[0] != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!accept(c)) throw std::runtime_error(std::string("'") + c + "' expected");
  }
  std::string string() {
    expect('"');
    const size_t end = text_.find('"');
    if (end == std::string_view::npos) throw std::runtime_error("open string");
    std::string s(text_.substr(0, end));
    text_.remove_prefix(end + 1);
    return s;
  }
  std::vector<uint64_t> numbers() {
    const std::string s = string();
    std::vector<uint64_t> out;
    const char* at = s.data();
    const char* end = at + s.size();
    while (at < end) {
      uint64_t v = 0;
      const auto [next, error] = std::from_chars(at, end, v, 16);
      if (error != std::errc{}) throw std::runtime_error("not a number: " + s);
      out.push_back(v);
      at = next < end ? next + 1 : next;
    }
    return out;
  }
  // Calls f() for each element, with the commas taken care of.
  template <class F>
  void list(char open, char close, F f) {
    expect(open);
    if (accept(close)) return;
    do f();
    while (accept(','));
    expect(close);
  }
  template <class F>
  void fields(F f) {
    list('{', '}', [&] {
      const std::string key = string();
      expect(':');
      f(key);
    });
  }
  std::map<std::string, std::string> strings() {
    std::map<std::string, std::string> out;
    fields([&](const std::string& key) { out[key] = string(); });
    return out;
  }

 private:
  std::string_view text_;
};

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
