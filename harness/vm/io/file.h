// SPDX-License-Identifier: MIT
// The one way files are written: whole or not at all, and never over what somebody needs.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace ptxvm::io {

/// A name that no file may be written to, because of what it is or what is there. Exit code 2.
struct RefusedFile : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A file cannot be read or written; what was there before is intact. Exit code 3.
struct FileError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Where a chain of links ends, whether or not there is a file.
std::filesystem::path resolve_links(std::filesystem::path path);

/// Throws unless write_file() can work there: RefusedFile for an empty name, FileError for what is
/// not a regular file or cannot be replaced. Nothing there changes.
void require_writable(const std::filesystem::path& path);

/// Throws RefusedFile when there is a file that does not begin with `beginning`: it is not one that
/// a former run wrote. An empty file counts as none, an empty `beginning` allows none.
void require_replaceable(const std::filesystem::path& path, std::string_view beginning);

/// A file of a command line.
struct NamedFile {
  std::string option;  ///< "--json"
  std::filesystem::path path;
};

/// Throws RefusedFile when a file that is to be written is an input or another one to be written,
/// under whatever names. Empty paths are skipped.
void require_distinct(std::span<const NamedFile> written, std::span<const NamedFile> read = {});

/// Holds a folder against other processes that want to write there, for reading a file, changing it
/// and writing it. Throws FileError after waiting a minute.
class FolderLock {
 public:
  explicit FolderLock(const std::filesystem::path& file_in_it);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int fd_;
};

/// Writes the parts to a temporary file in the same folder and renames it: the file has the old or
/// the new contents at every moment. Links are followed, mode and owner of a file that exists are
/// kept. The calling thread receives no signal meanwhile.
void write_file(const std::filesystem::path& path, std::span<const std::string_view> parts);
void write_file(const std::filesystem::path& path, std::string_view text);

/// As write_file(), but where a file has appeared that is not to be replaced it throws RefusedFile.
void write_replaceable(const std::filesystem::path& path, std::span<const std::string_view> parts,
                       std::string_view beginning, bool overwrite);

/// The contents of a regular file of at most `limit` bytes. Throws FileError.
std::string read_file(const std::filesystem::path& path, std::size_t limit);

/// First thing in main(). Opens standard streams that the caller has closed, so that no file of
/// ours gets their numbers and what is printed; writing to them still fails. And a file that grows
/// beyond the limit of the process is an error of the write, not its end.
void prepare_process();

}  // namespace ptxvm::io
