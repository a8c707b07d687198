// SPDX-License-Identifier: MIT
#include "harness/cli/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
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
  // The virtual machine's own messages say so already.
  constexpr std::string_view kError = "error: ";
  if (text.starts_with(kError)) text.remove_prefix(kError.size());
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

std::string progress_text(std::size_t done, std::size_t pieces, double paid, double cost,
                          double seconds) {
  if (pieces == 0) return {};
  std::string position = fmt::format("{} of {}", std::min(done + 1, pieces), pieces);
  if (paid <= 0 || seconds < 1) return position;
  const double left = seconds * std::max(cost - paid, 0.0) / paid;
  return left < 90 ? fmt::format("{}, {:.0f} s left", position, std::ceil(left))
                   : fmt::format("{}, {:.0f} min left", position, std::ceil(left / 60));
}

Progress::Progress() : terminal_(is_terminal(stderr)) {}

Progress::~Progress() {
  clear();
}

void Progress::expect(std::size_t pieces, double cost) {
  const std::lock_guard lock(mutex_);
  pieces_ = pieces, cost_ = cost;
  start_ = last_ = Clock::now();
}

void Progress::advance(double cost) {
  const std::lock_guard lock(mutex_);
  ++done_;
  paid_ += cost;
}

std::string Progress::position() const {
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  return progress_text(done_, pieces_, paid_, cost_, seconds);
}

void Progress::show(std::string_view text) {
  const std::lock_guard lock(mutex_);
  constexpr auto kPlainInterval = std::chrono::seconds(10);
  constexpr auto kRefresh = std::chrono::milliseconds(100);
  const Clock::duration since = Clock::now() - last_;
  if (terminal_ ? shown_ && pieces_ > 0 && since < kRefresh
                : pieces_ == 0 || since < kPlainInterval) {
    return;
  }
  const std::string where = position();
  const std::string line = fmt::format("{}{}{}", where, where.empty() ? "" : ": ", text);
  last_ = Clock::now();
  if (!terminal_) {
    print_note(line);
    return;
  }
  cli::show(fmt::format("\r\x1b[K{}", line.substr(0, columns() - 1)));
  shown_ = true;
}

void Progress::clear() {
  const std::lock_guard lock(mutex_);
  if (!shown_) return;
  cli::show("\r\x1b[K");
  shown_ = false;
}

}  // namespace fa::cli
