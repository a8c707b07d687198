// SPDX-License-Identifier: MIT
#include "harness/io/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <array>
#include <chrono>
#include <thread>
#include <vector>

#include "harness/tests/catch.h"
#include "harness/tests/helpers.h"

namespace fa::io {
namespace {

namespace fs = std::filesystem;

mode_t mode_of(const fs::path& path) {
  struct stat held {};
  REQUIRE(::stat(path.c_str(), &held) == 0);
  return held.st_mode & 07777;
}

TEST_CASE("a file is replaced whole, with its mode") {
  const Folder folder;
  write_file(folder / "new", std::string(100000, 'x'));
  write_file(folder / "new", "short");
  CHECK(folder.read("new") == "short");
  folder.write("plain", "");
  CHECK(mode_of(folder / "new") == mode_of(folder / "plain"));

  REQUIRE(::chmod((folder / "new").c_str(), 0640) == 0);
  const std::array<std::string_view, 2> parts{"two ", "parts"};
  write_file(folder / "new", parts);
  CHECK(folder.read("new") == "two parts");
  CHECK(mode_of(folder / "new") == 0640);
  CHECK(folder.entries() == 2);
}

TEST_CASE("a name as long as the file system takes can be written") {
  const Folder folder;
  const std::string name(255, 'n');
  write_file(folder / name, "text");
  CHECK(folder.read(name) == "text");
}

TEST_CASE("links are followed, whether or not they lead to a file") {
  const Folder folder;
  folder.write("real", "old");
  fs::create_symlink("real", folder / "link");
  fs::create_symlink("later", folder / "early");
  write_file(folder / "link", "new");
  write_file(folder / "early", "first");
  CHECK(fs::is_symlink(folder / "link"));
  CHECK(fs::is_symlink(folder / "early"));
  CHECK(folder.read("real") == "new");
  CHECK(folder.read("later") == "first");
  fs::create_symlink("loop", folder / "loop");
  CHECK_THROWS_AS(write_file(folder / "loop", "x"), FileError);
}

TEST_CASE("what is not a regular file is refused and left alone") {
  const Folder folder;
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  fs::create_symlink("/dev/null", folder / "null");
  for (const fs::path& path : {folder / "pipe", folder / "null", fs::path("/dev/full")}) {
    CHECK(contains(message_of<FileError>([&] { require_writable(path); }), "not a regular file"));
    CHECK(contains(message_of<FileError>([&] { write_file(path, "x"); }), "not a regular file"));
  }
  CHECK(contains(message_of<FileError>([&] { require_writable(folder.path); }), "Is a directory"));
  CHECK(
      contains(message_of<FileError>([&] { write_file(folder / "no" / "f", "x"); }), "no folder"));
  CHECK(
      contains(message_of<FileError>([&] { require_writable(folder / "dir/"); }), "cannot write"));
  CHECK(contains(message_of<RefusedFile>([] { require_writable(""); }), "not the name of a file"));
  CHECK_NOTHROW(require_writable(folder / "new"));
  CHECK(fs::is_fifo(folder / "pipe"));
  CHECK(fs::is_character_file("/dev/full"));
  CHECK(folder.entries() == 2);
}

TEST_CASE("only a file with the right beginning is replaced") {
  const Folder folder;
  const fs::path ours = folder.write("ours", "magic 1");
  const fs::path notes = folder.write("notes", "my notes");
  const std::array<std::string_view, 1> text{"magic 2"};
  CHECK_NOTHROW(require_replaceable(folder / "none", "magic"));
  CHECK_NOTHROW(require_replaceable(folder.write("empty", ""), ""));
  CHECK_NOTHROW(require_replaceable(ours, "magic"));
  CHECK(contains(message_of<RefusedFile>([&] { require_replaceable(ours, ""); }), "--overwrite"));
  for (const fs::path& path : {notes, folder.write("start", "mag")}) {
    CHECK(contains(message_of<RefusedFile>([&] { require_replaceable(path, "magic"); }),
                   "holds something else; --overwrite replaces it"));
    CHECK_THROWS_AS(write_replaceable(path, text, "magic", false), RefusedFile);
  }
  CHECK(contains(
      message_of<FileError>([&] { write_replaceable(folder / "no" / "f", text, "magic", true); }),
      "cannot write"));
  write_replaceable(ours, text, "magic", false);
  CHECK(folder.read("ours") == "magic 2");
  CHECK(folder.read("notes") == "my notes");
  write_replaceable(notes, text, "magic", true);
  CHECK(folder.read("notes") == "magic 2");
}

TEST_CASE("an output is none of the other files, under whatever names") {
  const Folder folder;
  const fs::path q = folder.write("q", "q");
  fs::create_symlink("q", folder / "link");
  fs::create_hard_link(q, folder / "hard");
  const std::array<NamedFile, 2> read{{{"--q", q}, {"--k", ""}}};
  const auto refusal = [&](const fs::path& first, const fs::path& second) {
    const std::array<NamedFile, 2> written{{{"--output", first}, {"--json", second}}};
    return message_of<RefusedFile>([&] { require_distinct(written, read); });
  };
  CHECK(refusal(folder / "o", folder / "j").empty());
  CHECK(refusal("", "").empty());
  for (const char* name : {"q", "link", "hard", "./q"}) {
    CHECK(contains(refusal(folder / name, ""), "is the file of --q"));
  }
  CHECK(contains(refusal(folder / "o", folder.path / "." / "o"), "is the file of --output"));
  const fs::path here = fs::current_path();
  fs::current_path(folder.path);
  CHECK(contains(refusal("o", "./o"), "is the file of --output"));
  fs::current_path(here);
  // One file may be read twice.
  const std::array<NamedFile, 2> twice{{{"--q", q}, {"--k", q}}};
  CHECK_NOTHROW(require_distinct({}, twice));
}

TEST_CASE("a folder is held by one at a time") {
  const Folder folder;
  const fs::path file = folder.write("count", "0");
  std::vector<std::jthread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int times = 0; times < 5; ++times) {
        const FolderLock lock(file);
        write_file(file, std::to_string(std::stoi(read_file(file, 100)) + 1));
      }
    });
  }
  threads.clear();
  CHECK(folder.read("count") == "40");
  CHECK(folder.entries() == 1);
}

TEST_CASE("what is read is a regular file and bounded") {
  const Folder folder;
  CHECK(read_file(folder.write("text", "hello"), 5) == "hello");
  CHECK(
      contains(message_of<FileError>([&] { read_file(folder / "text", 4); }), "more than 4 bytes"));
  CHECK(contains(message_of<FileError>([] { read_file("/dev/zero", 4); }), "not a regular file"));
  CHECK(contains(message_of<FileError>([&] { read_file(folder.path, 4); }), "Is a directory"));
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK_THROWS_AS(read_file(folder / "pipe", 4), FileError);
}

}  // namespace
}  // namespace fa::io
