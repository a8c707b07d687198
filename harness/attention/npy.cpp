#include "harness/attention/npy.h"

#include <unistd.h>

#include <array>
#include <charconv>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace fa {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic{"\x93NUMPY", 6};
constexpr const char* kShapeText = "[B, H, N, D]";

[[noreturn]] void refuse(const fs::path& path, const std::string& what) {
  throw InputError(path.string() + ": " + what);
}

struct Header {
  std::string descr;
  bool fortran = false;
  std::vector<std::int64_t> shape;
};

// Parses the Python dictionary literal that describes the array.
class HeaderParser {
 public:
  HeaderParser(const fs::path& path, std::string_view text) : path_(path), text_(text) {}

  Header parse() {
    Header header;
    bool has_descr = false, has_order = false, has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr" && !has_descr) {
        has_descr = true;
        skip_space();
        if (position_ < text_.size() && text_[position_] == '[') {
          refuse(path_, "dtype is a structured type, allowed are '<f2' and '<f4'");
        }
        header.descr = quoted();
      } else if (key == "fortran_order" && !has_order) {
        has_order = true;
        header.fortran = boolean();
      } else if (key == "shape" && !has_shape) {
        has_shape = true;
        header.shape = tuple();
      } else {
        malformed("key '" + key + "', allowed are descr, fortran_order and shape, once each");
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (position_ != text_.size()) malformed("text after the closing brace");
    if (!has_descr) malformed("no key 'descr'");
    if (!has_order) malformed("no key 'fortran_order'");
    if (!has_shape) malformed("no key 'shape'");
    return header;
  }

 private:
  [[noreturn]] void malformed(const std::string& what) const {
    refuse(path_, "malformed .npy header: " + what);
  }

  void skip_space() {
    while (position_ < text_.size() &&
           (text_[position_] == ' ' || text_[position_] == '\n' || text_[position_] == '\t')) {
      ++position_;
    }
  }

  bool accept(char c) {
    skip_space();
    if (position_ == text_.size() || text_[position_] != c) return false;
    ++position_;
    return true;
  }

  void expect(char c) {
    if (!accept(c)) {
      malformed(std::string("expected '") + c + "' at character " + std::to_string(position_));
    }
  }

  std::string quoted() {
    skip_space();
    const char quote = position_ < text_.size() ? text_[position_] : '\0';
    if (quote != '\'' && quote != '"') {
      malformed("expected a quoted string at character " + std::to_string(position_));
    }
    const std::size_t end = text_.find(quote, position_ + 1);
    if (end == std::string_view::npos) malformed("unterminated string");
    std::string result(text_.substr(position_ + 1, end - position_ - 1));
    position_ = end + 1;
    return result;
  }

  bool boolean() {
    skip_space();
    for (const auto& [word, value] : {std::pair{"True", true}, std::pair{"False", false}}) {
      if (text_.substr(position_).starts_with(word)) {
        position_ += std::string_view(word).size();
        return value;
      }
    }
    malformed("fortran_order is neither True nor False");
  }

  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> values;
    expect('(');
    while (!accept(')')) {
      skip_space();
      std::int64_t value = 0;
      const char* begin = text_.data() + position_;
      const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
      if (error == std::errc::result_out_of_range) malformed("a dimension exceeds 64 bits");
      if (error != std::errc()) {
        malformed("shape is not a tuple of integers at character " + std::to_string(position_));
      }
      position_ += static_cast<std::size_t>(end - begin);
      values.push_back(value);
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return values;
  }

  const fs::path& path_;
  std::string_view text_;
  std::size_t position_ = 0;
};

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "(";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  }
  return text + (shape.size() == 1 ? ",)" : ")");
}

std::uint32_t little_endian(const unsigned char* bytes, int count) {
  std::uint32_t value = 0;
  for (int i = count - 1; i >= 0; --i) value = value << 8 | bytes[i];
  return value;
}

std::string npy_header(const HostTensor& tensor) {
  const char* descr = tensor.dtype == Dtype::f16 ? "<f2" : "<f4";
  std::string dict = std::string("{'descr': '") + descr + "', 'fortran_order': False, 'shape': " +
                     shape_text({tensor.shape.begin(), tensor.shape.end()}) + ", }";
  // The format wants the data to start at a multiple of 64, after a newline.
  const std::size_t prefix = kMagic.size() + 4;
  dict.append(63 - (prefix + dict.size()) % 64, ' ');
  dict += '\n';
  std::string header(kMagic);
  header +=
      {'\x01', '\x00', static_cast<char>(dict.size() & 0xff), static_cast<char>(dict.size() >> 8)};
  return header + dict;
}

void require_finite(const fs::path& path, const HostTensor& tensor) {
  const std::int64_t index = find_non_finite(tensor);
  if (index < 0) return;
  refuse(path, std::to_string(tensor.at(index)) + " at " + describe_index(tensor.shape, index) +
                   "; all elements must be finite");
}

}  // namespace

HostTensor read_npy(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) refuse(path, "no such file");
  if (!fs::is_regular_file(status)) refuse(path, "not a regular file");
  const std::uintmax_t file_size = fs::file_size(path, error);
  std::ifstream file(path, std::ios::binary);
  if (error || !file) refuse(path, "cannot be opened for reading");

  std::array<unsigned char, 12> start{};
  file.read(reinterpret_cast<char*>(start.data()), 8);
  if (file.gcount() < 8) {
    refuse(path, "truncated: " + std::to_string(file_size) + " bytes, too short for a .npy file");
  }
  if (std::string_view(reinterpret_cast<const char*>(start.data()), 6) != kMagic) {
    refuse(path, "not a .npy file (it does not start with \\x93NUMPY)");
  }
  const int major = start[6], minor = start[7];
  if (major < 1 || major > 3 || minor != 0) {
    refuse(path, ".npy version " + std::to_string(major) + "." + std::to_string(minor) +
                     ", allowed are 1.0, 2.0 and 3.0");
  }
  const int length_bytes = major == 1 ? 2 : 4;
  file.read(reinterpret_cast<char*>(start.data()) + 8, length_bytes);
  const std::uint32_t length = little_endian(start.data() + 8, length_bytes);
  const std::uintmax_t data_start =
      8u + static_cast<unsigned>(length_bytes) + std::uintmax_t{length};
  if (!file || data_start > file_size) {
    refuse(path, "truncated: the header ends at byte " + std::to_string(data_start) +
                     ", the file has " + std::to_string(file_size));
  }
  std::string text(length, '\0');
  file.read(text.data(), length);
  if (!file) refuse(path, "cannot be read");

  const Header header = HeaderParser(path, text).parse();
  if (header.descr != "<f2" && header.descr != "<f4") {
    refuse(path, "dtype '" + header.descr +
                     "', allowed are '<f2' (float16) and '<f4' (float32), little-endian");
  }
  if (header.fortran) refuse(path, "Fortran order, allowed is C order (row-major)");
  if (header.shape.size() != 4) {
    refuse(path, "shape " + shape_text(header.shape) + " has rank " +
                     std::to_string(header.shape.size()) + ", allowed is rank 4, " + kShapeText);
  }
  const Dtype dtype = header.descr == "<f2" ? Dtype::f16 : Dtype::f32;
  Shape shape{};
  std::uintmax_t bytes = size_of(dtype);
  for (std::size_t i = 0; i < 4; ++i) {
    shape[i] = header.shape[i];
    if (shape[i] < 1) {
      refuse(path, "shape " + shape_text(header.shape) + ": every dimension must be at least 1");
    }
    // A header may claim any size; the product is only trusted while the file could hold it.
    if (static_cast<std::uintmax_t>(shape[i]) > file_size / bytes) {
      bytes = file_size + 1;
      break;
    }
    bytes *= static_cast<std::uintmax_t>(shape[i]);
  }
  const std::uintmax_t held = file_size - data_start;
  if (bytes > held) {
    refuse(path, "truncated: shape " + shape_text(header.shape) + " of " + to_string(dtype) +
                     " needs more than the " + std::to_string(held) + " bytes after the header");
  }
  if (bytes < held) {
    refuse(path, std::to_string(held - bytes) + " bytes follow the array of shape " +
                     shape_text(header.shape) + " and dtype " + to_string(dtype) +
                     ", allowed are none");
  }
  HostTensor tensor = make_tensor(dtype, shape);
  file.read(reinterpret_cast<char*>(tensor.bytes.data()), static_cast<std::streamsize>(bytes));
  if (!file) refuse(path, "cannot be read");
  return tensor;
}

void write_npy(const fs::path& path, const HostTensor& tensor) {
  auto fail = [&](const std::string& what) -> void {
    throw OutputError(path.string() + ": cannot be written: " + what);
  };
  std::error_code error;
  // Renaming over a link would replace the link, over a device node the device.
  fs::path target = fs::is_symlink(path, error) ? fs::weakly_canonical(path, error) : path;
  const fs::file_status status = fs::status(target, error);
  if (fs::exists(status) && !fs::is_regular_file(status)) fail("it exists and is not a file");
  fs::path temporary = target;
  temporary += ".tmp." + std::to_string(getpid());

  std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
  if (!file) fail("no file can be created in its folder");
  const std::string header = npy_header(tensor);
  file.write(header.data(), static_cast<std::streamsize>(header.size()));
  file.write(reinterpret_cast<const char*>(tensor.bytes.data()),
             static_cast<std::streamsize>(tensor.bytes.size()));
  file.close();
  if (!file) {
    fs::remove(temporary, error);
    fail("the write failed (is the disk full?)");
  }
  fs::rename(temporary, target, error);
  if (error) {
    const std::string why = error.message();
    fs::remove(temporary, error);
    fail(why);
  }
}

Problem problem_of(const HostTensor& q, const HostTensor& k, const HostTensor& v, bool causal,
                   const std::string& q_name, const std::string& k_name,
                   const std::string& v_name) {
  auto compare = [](const HostTensor& a, const std::string& a_name, const HostTensor& b,
                    const std::string& b_name, bool lengths) {
    if (a.dtype != b.dtype) {
      throw InputError(b_name + ": dtype " + to_string(b.dtype) + " does not match " +
                       to_string(a.dtype) + " of " + a_name);
    }
    const bool same = a.shape[0] == b.shape[0] && a.shape[1] == b.shape[1] &&
                      a.shape[3] == b.shape[3] && (!lengths || a.shape[2] == b.shape[2]);
    if (!same) {
      throw InputError(b_name + ": shape " + to_string(b.shape) + " does not match " +
                       to_string(a.shape) + " of " + a_name +
                       (lengths ? "; K and V must have the same shape"
                                : "; Q and K may differ in N only, in " + std::string(kShapeText)));
    }
  };
  compare(q, q_name, k, k_name, false);
  compare(k, k_name, v, v_name, true);
  if (q.shape[3] > 65536) {
    throw InputError(q_name + ": head_dim " + std::to_string(q.shape[3]) + ", at most 65536");
  }
  return {q.shape[0], q.shape[1], q.shape[2], k.shape[2], static_cast<int>(q.shape[3]),
          causal,     q.dtype};
}

LoadedProblem load_problem(const fs::path& q, const fs::path& k, const fs::path& v, bool causal) {
  Inputs inputs{read_npy(q), read_npy(k), read_npy(v)};
  const Problem problem =
      problem_of(inputs.q, inputs.k, inputs.v, causal, q.string(), k.string(), v.string());
  require_finite(q, inputs.q);
  require_finite(k, inputs.k);
  require_finite(v, inputs.v);
  return {problem, std::move(inputs)};
}

}  // namespace fa
