// SPDX-License-Identifier: MIT
#include "harness/measure/limits/card.h"

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <system_error>

#include "harness/io/file.h"
#include "harness/results/json.h"

namespace fa::limits {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLargestFile = std::size_t{1} << 24;

struct Card {
  fs::path file;
  std::string name = {};
  int sms = 0;
  std::map<std::string, double, std::less<>> per_clock = {};
};

fs::path limits_file() {
  const char* const chosen = std::getenv("FA_LIMITS");
  if (chosen && *chosen) return chosen;
  std::error_code error;
  const fs::path programs = fs::read_symlink("/proc/self/exe", error).parent_path();
  // Of cmake --install and of the Python wheel.
  for (const char* const place : {FA_LIMITS_FROM_PROGRAMS, "../measured/limits.json"}) {
    const fs::path installed = (programs / place).lexically_normal();
    if (fs::is_regular_file(installed, error)) return installed;
  }
  return FA_LIMITS_FILE;
}

[[noreturn]] void refuse(const fs::path& file, const std::string& what) {
  throw io::FileError(file.string() + ": " + what +
                      "; set FA_LIMITS to a file that `fa limits --json` wrote");
}

Card read_card() {
  Card card{limits_file()};
  try {
    const Json json = Json::parse(io::read_file(card.file, kLargestFile));
    card.name = json.at("device").at("name");
    card.sms = json.at("device").at("sms");
    for (const Json& row : json.at("rows")) {
      if (row.at("status") == "ok") card.per_clock[row.at("id")] = row.at("per_clock_sm");
    }
  } catch (const Json::exception& error) {
    refuse(card.file, std::string("holds no limits of a card (") + error.what() + ")");
  }
  if (card.sms < 1) refuse(card.file, "the card has " + std::to_string(card.sms) + " SMs");
  return card;
}

const Card& card() {
  static const Card read = read_card();
  return read;
}

}  // namespace

const std::string& card_name() {
  return card().name;
}

int card_sms() {
  return card().sms;
}

double card_per_clock(std::string_view loop) {
  const auto found = card().per_clock.find(loop);
  if (found == card().per_clock.end() || !(found->second > 0)) {
    refuse(card().file, "no rate of the loop " + std::string(loop));
  }
  return found->second;
}

}  // namespace fa::limits
