// SPDX-License-Identifier: MIT
#include "io/file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace ptxvm::io {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNotRegular = "not a regular file";

[[noreturn]] void fail(std::string_view what, const fs::path& path, std::string_view why) {
  throw FileError("cannot " + std::string(what) + " '" + path.string() + "': " + std::string(why));
}

[[noreturn]] void fail(std::string_view what, const fs::path& path, int error) {
  fail(what, path, std::generic_category().message(error));
}

/// A file descriptor that is closed.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return fd_; }
  bool open() const { return fd_ >= 0; }
  /// Some file systems say only here that they are full.
  bool close() { return ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

/// Signals that would end the process wait until the temporary file is gone.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

fs::path folder_of(const fs::path& target) {
  return target.has_parent_path() ? target.parent_path() : fs::path(".");
}

/// A file beside `target` that disappears unless it is renamed over it.
class Temporary {
 public:
  explicit Temporary(const fs::path& target)
      : target_(target), name_((folder_of(target) / ".fa-XXXXXX").string()), fd_(make()) {}
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  ~Temporary() {
    if (!name_.empty()) ::unlink(name_.c_str());
  }

  void write(std::string_view text) {
    while (!text.empty()) {
      const ssize_t written = ::write(fd_.get(), text.data(), text.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail("write", target_, errno);
      text.remove_prefix(static_cast<std::size_t>(written));
    }
  }

  void rename_over_target() {
    take_mode();
    if (!fd_.close()) fail("write", target_, errno);
    if (::rename(name_.c_str(), target_.c_str()) != 0) fail("replace", target_, errno);
    name_.clear();
  }

 private:
  int make() {
    const int fd = ::mkostemp(name_.data(), O_CLOEXEC);
    if (fd < 0) {
      const int error = errno;
      name_.clear();
      if (error == ENOENT)
        fail("write", target_, "there is no folder '" + folder_of(target_).string() + "'");
      fail("write", target_, error);
    }
    return fd;
  }

  /// mkostemp makes a private file; a new one gets what the umask allows, as any other.
  void take_mode() {
    struct stat old {};
    mode_t mode = 0;
    if (::stat(target_.c_str(), &old) == 0) {
      mode = old.st_mode & 07777;
      // Only root may give files away, and only root replaces those of others.
      if (::fchown(fd_.get(), old.st_uid, old.st_gid) != 0) mode &= 0777;
    } else {
      const mode_t mask = ::umask(0);
      ::umask(mask);
      mode = 0666 & ~mask;
    }
    if (::fchmod(fd_.get(), mode) != 0) fail("write", target_, errno);
  }

  fs::path target_;
  std::string name_;
  Descriptor fd_;
};

/// Throws what require_writable() says, short of trying; returns the end of the links.
fs::path checked_target(const fs::path& path) {
  if (path.empty()) throw RefusedFile("'' is not the name of a file");
  fs::path target = resolve_links(path);
  std::error_code error;
  const fs::file_status status = fs::status(target, error);
  if (fs::is_directory(status)) fail("write", path, EISDIR);
  if (fs::is_symlink(fs::symlink_status(target, error))) fail("write", path, ELOOP);
  if (!target.has_filename()) fail("write", path, kNotRegular);
  if (!fs::exists(status)) return target;
  if (!fs::is_regular_file(status)) fail("write", path, kNotRegular);
  if (::access(target.c_str(), W_OK) != 0) fail("write", path, errno);
  return target;
}

/// What is the same for two names of one file, whether or not it exists.
struct Identity {
  fs::path path;
  std::optional<std::pair<dev_t, ino_t>> inode;

  explicit Identity(const fs::path& name) {
    std::error_code error;
    const fs::path target = resolve_links(name);
    // A name of which nothing exists would stay relative.
    path = fs::weakly_canonical(fs::absolute(target, error), error);
    if (error) path = target.lexically_normal();
    struct stat held {};
    if (::stat(target.c_str(), &held) == 0) inode.emplace(held.st_dev, held.st_ino);
  }
  bool same(const Identity& other) const {
    return path == other.path || (inode && other.inode && *inode == *other.inode);
  }
};

}  // namespace

fs::path resolve_links(fs::path path) {
  constexpr int kMaxLinks = 40;
  std::error_code error;
  for (int i = 0; i < kMaxLinks && fs::is_symlink(fs::symlink_status(path, error)); ++i) {
    const fs::path target = fs::read_symlink(path, error);
    if (error) break;
    path = target.is_absolute() ? target : path.parent_path() / target;
  }
  return path;
}

void require_writable(const fs::path& path) {
  const fs::path target = checked_target(path);
  const SignalsBlocked blocked;
  // Whether the folder takes a new file is found out by making one.
  const Temporary probe(target);
}

void require_replaceable(const fs::path& path, std::string_view beginning) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.open() && errno == ENOENT) return;
  if (!file.open()) fail("read", path, errno);
  std::string held(beginning.size() + 1, '\0');
  std::size_t length = 0;
  while (length < held.size()) {
    const ssize_t got = ::read(file.get(), held.data() + length, held.size() - length);
    if (got < 0) fail("read", path, errno);
    if (got == 0) break;
    length += static_cast<std::size_t>(got);
  }
  held.resize(length);
  if (held.empty() || (!beginning.empty() && held.starts_with(beginning))) return;
  throw RefusedFile("'" + path.string() + "' exists" +
                    (beginning.empty() ? "" : " and holds something else") +
                    "; --overwrite replaces it");
}

void require_distinct(std::span<const NamedFile> written, std::span<const NamedFile> read) {
  std::vector<std::pair<const NamedFile*, Identity>> seen;
  const auto add = [&seen](const NamedFile& file, bool compare) {
    if (file.path.empty()) return;
    Identity identity(file.path);
    for (const auto& [other, held] : seen) {
      if (!compare || !identity.same(held)) continue;
      throw RefusedFile(file.option + " '" + file.path.string() + "' is the file of " +
                        other->option + "; it takes one of its own");
    }
    seen.emplace_back(&file, std::move(identity));
  };
  for (const NamedFile& file : read) add(file, false);
  for (const NamedFile& file : written) add(file, true);
}

FolderLock::FolderLock(const fs::path& file_in_it) {
  constexpr auto kPatience = std::chrono::minutes(1);
  constexpr auto kPause = std::chrono::milliseconds(5);
  const fs::path folder = folder_of(resolve_links(file_in_it));
  fd_ = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd_ < 0) fail("write", file_in_it, errno);
  const auto give_up = std::chrono::steady_clock::now() + kPatience;
  while (::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    const bool held = error == EWOULDBLOCK || error == EINTR;
    if (held && std::chrono::steady_clock::now() < give_up) {
      std::this_thread::sleep_for(kPause);
      continue;
    }
    ::close(fd_);
    if (held) fail("lock the folder of", file_in_it, "another process has held it for a minute");
    fail("lock the folder of", file_in_it, error);
  }
}

FolderLock::~FolderLock() {
  ::close(fd_);
}

void write_file(const fs::path& path, std::span<const std::string_view> parts) {
  const fs::path target = checked_target(path);
  const SignalsBlocked blocked;
  Temporary temporary(target);
  for (const std::string_view part : parts) temporary.write(part);
  temporary.rename_over_target();
}

void write_file(const fs::path& path, std::string_view text) {
  write_file(path, std::span(&text, 1));
}

void write_replaceable(const fs::path& path, std::span<const std::string_view> parts,
                       std::string_view beginning, bool overwrite) {
  const FolderLock lock(checked_target(path));
  if (!overwrite) require_replaceable(path, beginning);
  write_file(path, parts);
}

std::string read_file(const fs::path& path, std::size_t limit) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.open()) fail("read", path, errno);
  struct stat held {};
  if (::fstat(file.get(), &held) != 0) fail("read", path, errno);
  if (S_ISDIR(held.st_mode)) fail("read", path, EISDIR);
  if (!S_ISREG(held.st_mode)) fail("read", path, kNotRegular);
  std::string text;
  std::array<char, 1 << 16> block{};
  while (true) {
    const ssize_t got = ::read(file.get(), block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("read", path, errno);
    if (got == 0) return text;
    text.append(block.data(), static_cast<std::size_t>(got));
    if (text.size() > limit) {
      fail("read", path, "it has more than " + std::to_string(limit) + " bytes");
    }
  }
}

void prepare_process() {
  ::signal(SIGXFSZ, SIG_IGN);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // The lowest free number is given, and those below are open.
    if (::fcntl(fd, F_GETFD) < 0 && errno == EBADF) {
      [[maybe_unused]] const int opened = ::open("/", O_RDONLY | O_DIRECTORY);
    }
  }
}

}  // namespace ptxvm::io
