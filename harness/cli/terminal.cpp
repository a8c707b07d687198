#include "harness/cli/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace fa::cli {
namespace {

bool is_terminal(std::FILE* stream) {
  const char* kind = std::getenv("TERM");
  return ::isatty(::fileno(stream)) == 1 && kind && std::string_view(kind) != "dumb";
}

std::size_t columns() {
  winsize size{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  return known ? size.ws_col : 80;
}

/// What cannot be shown on stderr is no reason to stop.
void show(const std::string& text) {
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
}

std::string one_line(std::string_view text) {
  std::string line(text);
  std::replace(line.begin(), line.end(), '\n', ' ');
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

}  // namespace

void print_error(std::string_view text) {
  show(fmt::format("fa: error: {}\n", one_line(text)));
}

void print_note(std::string_view text) {
  show(fmt::format("fa: {}\n", one_line(text)));
}

std::string coloured(std::string_view text, Colour colour, std::FILE* stream) {
  // https://no-color.org: any value that is not empty.
  const char* unwanted = std::getenv("NO_COLOR");
  if ((unwanted && *unwanted) || !is_terminal(stream)) return std::string(text);
  const int code = colour == Colour::red ? 31 : colour == Colour::green ? 32 : 33;
  return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
}

Progress::Progress() : enabled_(is_terminal(stderr)) {}

Progress::~Progress() {
  clear();
}

void Progress::show(std::string_view text) {
  if (!enabled_) return;
  cli::show(fmt::format("\r\x1b[K{}", text.substr(0, columns() - 1)));
  shown_ = true;
}

void Progress::clear() {
  if (!shown_) return;
  cli::show("\r\x1b[K");
  shown_ = false;
}

}  // namespace fa::cli
