// SPDX-License-Identifier: MIT
// Messages on stderr, progress on a terminal, colour where it is wanted.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <mutex>
#include <string>
#include <string_view>

namespace fa::cli {

/// "fa: error: text" on stderr. Line breaks in the text become spaces: an error is one line.
void print_error(std::string_view text);

/// "fa: text" on stderr.
void print_note(std::string_view text);

enum class Colour { red, green, yellow };

/// The text in colour when `stream` is a terminal that takes it and NO_COLOR is not set.
std::string coloured(std::string_view text, Colour colour, std::FILE* stream = stdout);

/// What long work is doing, on stderr. On a terminal one line that overwrites itself. Elsewhere, of
/// work in pieces, a plain line every ten seconds. May be called from several threads.
class Progress {
 public:
  Progress();
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// The work has this many pieces, of this cost together in any unit.
  void expect(std::size_t pieces, double cost);
  /// One piece of this cost is done.
  void advance(double cost);
  void show(std::string_view text);
  /// Removes the line, so that other output can follow.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  std::string position() const;

  const bool terminal_;
  std::mutex mutex_;
  bool shown_ = false;
  std::size_t pieces_ = 0, done_ = 0;
  double cost_ = 0, paid_ = 0;
  Clock::time_point start_ = Clock::now(), last_ = Clock::now();
};

/// "12 of 80, 3 min left": time by the cost that is paid after `seconds`.
std::string progress_text(std::size_t done, std::size_t pieces, double paid, double cost,
                          double seconds);

}  // namespace fa::cli
