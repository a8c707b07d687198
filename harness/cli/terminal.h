// Messages on stderr, progress on a terminal, colour where it is wanted.
#pragma once

#include <cstdio>
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

/// One line on stderr that overwrites itself. Silent unless stderr is a terminal.
class Progress {
 public:
  Progress();
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(std::string_view text);
  /// Removes the line, so that other output can follow.
  void clear();

 private:
  bool enabled_;
  bool shown_ = false;
};

}  // namespace fa::cli
