// SPDX-License-Identifier: MIT
#include "harness/attention/npy.h"

#include <filesystem>
#include <limits>
#include <string>

#include "harness/io/file.h"
#include "harness/tests/catch.h"
#include "harness/tests/helpers.h"

using namespace fa;
namespace fs = std::filesystem;

namespace {

std::string npy(const std::string& dict, int data_bytes, int major = 1) {
  std::string bytes = "\x93NUMPY";
  bytes += static_cast<char>(major);
  bytes += '\0';
  const auto size = dict.size();
  for (int i = 0; i < (major == 1 ? 2 : 4); ++i) bytes += static_cast<char>(size >> (8 * i) & 255);
  return bytes + dict + std::string(static_cast<std::size_t>(data_bytes), '\0');
}

const std::string kGood = "{'descr': '<f2', 'fortran_order': False, 'shape': (1, 2, 3, 4), }\n";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

}  // namespace

TEST_CASE("what is written is read back, bit for bit") {
  const Folder folder;
  for (const Dtype dtype : {Dtype::f16, Dtype::f32}) {
    HostTensor tensor = make_tensor(dtype, {2, 3, 5, 8});
    for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, 0.37f * static_cast<float>(i));
    tensor.set(7, std::numeric_limits<float>::quiet_NaN());
    write_npy(folder / "t.npy", tensor, /*overwrite=*/true);
    CHECK(bitwise_equal(read_npy(folder / "t.npy"), tensor));
    CHECK(folder.entries() == 1);
    // The data start where numpy wants them.
    CHECK((folder.read("t.npy").size() - tensor.bytes.size()) % 64 == 0);
  }
}

TEST_CASE("all header versions and spellings are read") {
  const Folder folder;
  for (const int major : {1, 2, 3}) {
    CHECK(read_npy(folder.write("a.npy", npy(kGood, 48, major))).shape == Shape{1, 2, 3, 4});
  }
  const std::string other = "{ \"shape\":(1,2,3,4),'fortran_order':False ,\"descr\":\"<f4\"}   \n";
  CHECK(read_npy(folder.write("b.npy", npy(other, 96))).dtype == Dtype::f32);
}

TEST_CASE("each malformation has its own message") {
  const Folder folder;
  auto refusal = [&](const std::string& bytes) {
    const fs::path path = folder.write("bad.npy", bytes);
    std::string message = message_of<InputError>([&] { read_npy(path); });
    CHECK(message.starts_with(path.string() + ": "));
    CHECK(!contains(message, "\n"));
    return message;
  };
  auto with = [&](const std::string& from, const std::string& to, int bytes = 48) {
    return refusal(npy(replaced(kGood, from, to), bytes));
  };
  CHECK(contains(refusal(""), "truncated: 0 bytes"));
  CHECK(contains(refusal("PK\x03\x04 zip archive"), "not a .npy file"));
  CHECK(contains(refusal(npy(kGood, 48, 4)), ".npy version 4.0, allowed are 1.0, 2.0 and 3.0"));
  CHECK(contains(refusal(npy(kGood, 48).substr(0, 30)), "truncated: the header ends at byte"));
  CHECK(contains(refusal(std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12)), "truncated"));
  CHECK(contains(with("<f2", "<f8"), "dtype '<f8', allowed are '<f2'"));
  CHECK(contains(with("<f2", ">f2"), "dtype '>f2'"));
  CHECK(contains(with("'<f2'", "[('x', '<f2')]"), "structured"));
  CHECK(contains(with("False", "True"), "Fortran order, allowed is C order"));
  CHECK(contains(with("False", "0"), "neither True nor False"));
  CHECK(contains(with("(1, 2, 3, 4)", "(6, 4)"), "shape (6, 4) has rank 2, allowed is rank 4"));
  CHECK(contains(with("(1, 2, 3, 4)", "(24,)"), "shape (24,) has rank 1"));
  CHECK(contains(with("(1, 2, 3, 4)", "()"), "rank 0"));
  CHECK(contains(with("3, 4", "0, 4", 0), "(1, 2, 0, 4): every dimension must be at least 1"));
  CHECK(contains(with("3, 4", "-3, 4"), "every dimension must be at least 1"));
  CHECK(contains(with("3, 4", "99999999999999999999, 4"), "exceeds 64 bits"));
  CHECK(contains(with("(1, 2", "(4611686018427387904, 8"), "truncated: shape"));
  CHECK(contains(with("(1, 2", "(1, x"), "not a tuple of integers"));
  CHECK(contains(refusal(npy(kGood, 47)), "needs more than the 47 bytes after the header"));
  CHECK(contains(refusal(npy(kGood, 50)), "2 bytes follow the array"));
  CHECK(contains(with("'shape': (1, 2, 3, 4), ", ""), "no key 'shape'"));
  CHECK(contains(with("descr", "dtype"), "key 'dtype'"));
  CHECK(contains(with("'<f2'", "'<f2"), "malformed .npy header"));
  CHECK(contains(with("}", ""), "malformed .npy header: expected a quoted string"));
  CHECK(contains(with("}", "} x"), "text after the closing brace"));
  CHECK(contains(message_of<InputError>([&] { read_npy(folder / "none"); }), "no such file"));
  CHECK(contains(message_of<InputError>([&] { read_npy(folder / ""); }), "not a regular file"));
}

TEST_CASE("a header of four gigabytes is refused before it is read") {
  const Folder folder;
  const fs::path path =
      folder.write("long.npy", std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12));
  fs::resize_file(path, std::uintmax_t{5} << 30);  // it takes no room
  CHECK(contains(message_of<InputError>([&] { read_npy(path); }),
                 "the header has 4294967295 bytes, at most 65536 are allowed"));
}

TEST_CASE("a write that fails leaves what was there") {
  const Folder folder;
  const HostTensor tensor = make_tensor(Dtype::f16, {1, 1, 1, 4}, 1.0f);
  auto failure = [&](const fs::path& path) {
    return message_of<io::FileError>([&] { write_npy(path, tensor); });
  };
  CHECK(contains(failure(folder / "no/such/folder.npy"), "cannot write"));
  fs::create_directory(folder / "taken");
  CHECK(contains(failure(folder / "taken"), "Is a directory"));
  CHECK(contains(failure("/dev/null"), "not a regular file"));
  CHECK(folder.entries() == 1);

  folder.write("notes.npy", "my notes");
  CHECK(contains(message_of<io::RefusedFile>([&] { write_npy(folder / "notes.npy", tensor); }),
                 "--overwrite"));
  write_npy(folder / "notes.npy", tensor, true);
  CHECK(bitwise_equal(read_npy(folder / "notes.npy"), tensor));

  write_npy(folder / "real.npy", make_tensor(Dtype::f32, {1, 1, 1, 1}, 2.0f));
  fs::create_symlink("real.npy", folder / "link.npy");
  CHECK_THROWS_AS(write_npy(folder / "link.npy", tensor), io::RefusedFile);
  write_npy(folder / "link.npy", tensor, true);
  CHECK(fs::is_symlink(folder / "link.npy"));
  CHECK(bitwise_equal(read_npy(folder / "real.npy"), tensor));
}

TEST_CASE("three files make a problem") {
  const Folder folder;
  auto save = [&](const std::string& name, Dtype dtype, const Shape& shape, float value = 0.5f) {
    write_npy(folder / name, make_tensor(dtype, shape, value));
    return folder / name;
  };
  const auto q = save("q.npy", Dtype::f16, {2, 3, 5, 64});
  const auto k = save("k.npy", Dtype::f16, {2, 3, 7, 64});
  CHECK(npy_problem(q, k, k, true) == Problem{2, 3, 5, 7, 64, true, Dtype::f16});
  const auto shared = save("g.npy", Dtype::f16, {2, 1, 7, 64});
  CHECK(npy_problem(q, shared, shared, true).kv_heads() == 1);

  auto refusal = [&](const fs::path& a, const fs::path& b, const fs::path& c) {
    return message_of<InputError>([&] { npy_problem(a, b, c, false); });
  };
  CHECK(contains(refusal(q, save("d.npy", Dtype::f32, {2, 3, 7, 64}), k),
                 "dtype float32 does not match float16"));
  CHECK(contains(refusal(q, save("h.npy", Dtype::f16, {2, 4, 7, 64}), k),
                 "shape [2, 4, 7, 64] does not match [2, 3, 5, 64]"));
  CHECK(contains(refusal(q, k, save("n.npy", Dtype::f16, {2, 3, 8, 64})),
                 "K and V must have the same shape"));
  const auto inf = save("i.npy", Dtype::f16, {2, 3, 7, 64}, std::numeric_limits<float>::infinity());
  CHECK(contains(message_of<InputError>([&] { load_inputs(q, k, inf); }),
                 "inf at batch 0, head 0, row 0, column 0"));
  CHECK(bitwise_equal(load_inputs(q, k, k).v, read_npy(k)));
}
