// SPDX-License-Identifier: MIT
#include "harness/attention/npy.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "harness/io/file.h"

namespace fa {
namespace {

namespace fs = std::filesystem;

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
  const std::size_t prefix = kNpyMagic.size() + 4;
  dict.append(63 - (prefix + dict.size()) % 64, ' ');
  dict += '\n';
  std::string header(kNpyMagic);
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

constexpr std::uint32_t kLongestHeader = 1
                                         << 16;  // NumPy itself refuses more than 10000 by default

/// A file whose header was read and fits its size.
class NpyFile {
 public:
  explicit NpyFile(const fs::path& path) : path_(path) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (!fs::exists(status)) refuse(path, "no such file");
    if (!fs::is_regular_file(status)) refuse(path, "not a regular file");
    file_size_ = fs::file_size(path, error);
    file_.open(path, std::ios::binary);
    if (error || !file_) refuse(path, "cannot be opened for reading");
    const Header header = HeaderParser(path, header_text()).parse();
    require_supported(header);
    dtype_ = header.descr == "<f2" ? Dtype::f16 : Dtype::f32;
    std::copy_n(header.shape.begin(), shape_.size(), shape_.begin());
    require_size(header);
  }

  /// Dtype and shape, no elements.
  HostTensor described() const { return {dtype_, shape_, {}}; }

  HostTensor read() {
    HostTensor tensor = make_tensor(dtype_, shape_);
    file_.read(reinterpret_cast<char*>(tensor.bytes.data()),
               static_cast<std::streamsize>(tensor.bytes.size()));
    if (!file_) refuse(path_, "cannot be read");
    return tensor;
  }

 private:
  std::string header_text() {
    std::array<unsigned char, 12> start{};
    file_.read(reinterpret_cast<char*>(start.data()), 8);
    if (file_.gcount() < 8) {
      refuse(path_,
             "truncated: " + std::to_string(file_size_) + " bytes, too short for a .npy file");
    }
    if (!std::string_view(reinterpret_cast<const char*>(start.data()), 8).starts_with(kNpyMagic)) {
      refuse(path_, "not a .npy file (it does not start with \\x93NUMPY)");
    }
    const int major = start[6], minor = start[7];
    if (major < 1 || major > 3 || minor != 0) {
      refuse(path_, ".npy version " + std::to_string(major) + "." + std::to_string(minor) +
                        ", allowed are 1.0, 2.0 and 3.0");
    }
    const int length_bytes = major == 1 ? 2 : 4;
    file_.read(reinterpret_cast<char*>(start.data()) + 8, length_bytes);
    const std::uint32_t length = little_endian(start.data() + 8, length_bytes);
    data_start_ = 8u + static_cast<unsigned>(length_bytes) + std::uintmax_t{length};
    if (!file_ || data_start_ > file_size_) {
      refuse(path_, "truncated: the header ends at byte " + std::to_string(data_start_) +
                        ", the file has " + std::to_string(file_size_));
    }
    if (length > kLongestHeader) {
      refuse(path_, "the header has " + std::to_string(length) + " bytes, at most " +
                        std::to_string(kLongestHeader) + " are allowed");
    }
    std::string text(length, '\0');
    file_.read(text.data(), length);
    if (!file_) refuse(path_, "cannot be read");
    return text;
  }

  void require_supported(const Header& header) const {
    if (header.descr != "<f2" && header.descr != "<f4") {
      refuse(path_, "dtype '" + header.descr +
                        "', allowed are '<f2' (float16) and '<f4' (float32), little-endian");
    }
    if (header.fortran) refuse(path_, "Fortran order, allowed is C order (row-major)");
    if (header.shape.size() != 4) {
      refuse(path_, "shape " + shape_text(header.shape) + " has rank " +
                        std::to_string(header.shape.size()) + ", allowed is rank 4, " + kShapeText);
    }
  }

  void require_size(const Header& header) const {
    std::uintmax_t bytes = size_of(dtype_);
    for (const std::int64_t extent : shape_) {
      if (extent < 1) {
        refuse(path_, "shape " + shape_text(header.shape) + ": every dimension must be at least 1");
      }
      // A header may claim any size; the product is only trusted while the file could hold it.
      if (static_cast<std::uintmax_t>(extent) > file_size_ / bytes) {
        bytes = file_size_ + 1;
        break;
      }
      bytes *= static_cast<std::uintmax_t>(extent);
    }
    const std::uintmax_t held = file_size_ - data_start_;
    if (bytes > held) {
      refuse(path_, "truncated: shape " + shape_text(header.shape) + " of " + to_string(dtype_) +
                        " needs more than the " + std::to_string(held) + " bytes after the header");
    }
    if (bytes < held) {
      refuse(path_, std::to_string(held - bytes) + " bytes follow the array of shape " +
                        shape_text(header.shape) + " and dtype " + to_string(dtype_) +
                        ", allowed are none");
    }
  }

  fs::path path_;
  std::uintmax_t file_size_ = 0, data_start_ = 0;
  std::ifstream file_;
  Dtype dtype_ = Dtype::f16;
  Shape shape_{};
};

}  // namespace

HostTensor read_npy_header(const fs::path& path) {
  return NpyFile(path).described();
}

HostTensor read_npy(const fs::path& path) {
  return NpyFile(path).read();
}

void write_npy(const fs::path& path, const HostTensor& tensor, bool overwrite) {
  const std::string header = npy_header(tensor);
  const std::array<std::string_view, 2> parts{
      header, {reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size()}};
  io::write_replaceable(path, parts, "", overwrite);
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
    // Query heads may share a head of K and V.
    const bool heads = lengths ? a.shape[1] == b.shape[1] : a.shape[1] % b.shape[1] == 0;
    const bool same = a.shape[0] == b.shape[0] && heads && a.shape[3] == b.shape[3] &&
                      (!lengths || a.shape[2] == b.shape[2]);
    if (!same) {
      throw InputError(b_name + ": shape " + to_string(b.shape) + " does not match " +
                       to_string(a.shape) + " of " + a_name +
                       (lengths ? "; K and V must have the same shape"
                                : "; K may have another N, and a number of heads that divides "
                                  "that of Q, in " +
                                      std::string(kShapeText)));
    }
  };
  compare(q, q_name, k, k_name, false);
  compare(k, k_name, v, v_name, true);
  if (q.shape[3] > 65536) {
    throw InputError(q_name + ": head_dim " + std::to_string(q.shape[3]) + ", at most 65536");
  }
  return {.batch = q.shape[0],
          .heads = q.shape[1],
          .seq_q = q.shape[2],
          .seq_kv = k.shape[2],
          .head_dim = static_cast<int>(q.shape[3]),
          .causal = causal,
          .dtype = q.dtype,
          .own_kv_heads = k.shape[1] == q.shape[1] ? 0 : k.shape[1]};
}

Problem npy_problem(const fs::path& q, const fs::path& k, const fs::path& v, bool causal) {
  return problem_of(read_npy_header(q), read_npy_header(k), read_npy_header(v), causal, q.string(),
                    k.string(), v.string());
}

Inputs load_inputs(const fs::path& q, const fs::path& k, const fs::path& v) {
  Inputs inputs{read_npy(q), read_npy(k), read_npy(v)};
  require_finite(q, inputs.q);
  require_finite(k, inputs.k);
  require_finite(v, inputs.v);
  return inputs;
}

}  // namespace fa
