// SPDX-License-Identifier: MIT
#include "harness/io/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <string_view>

namespace fa::io {
namespace {

std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);  // or a handler may not set it

constexpr std::array kSignals{SIGINT, SIGTERM};
std::array<struct sigaction, kSignals.size()> before;

extern "C" void fa_io_on_signal(int /*number*/) {
  interrupted = true;
  constexpr std::string_view kNote = "\nstopping; once more to stop without results\n";
  [[maybe_unused]] const ssize_t shown = ::write(STDERR_FILENO, kNote.data(), kNote.size());
}

}  // namespace

InterruptScope::InterruptScope() {
  interrupted = false;
  struct sigaction action {};
  action.sa_handler = fa_io_on_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], nullptr, &before[i]);
    if (before[i].sa_handler != SIG_IGN) ::sigaction(kSignals[i], &action, nullptr);
  }
}

InterruptScope::~InterruptScope() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &before[i], nullptr);
  interrupted = false;
}

const std::atomic<bool>& interrupt_flag() {
  return interrupted;
}

void stop_if_interrupted() {
  if (interrupted) throw Interrupted();
}

}  // namespace fa::io
