// SPDX-License-Identifier: MIT
#include "harness/cli/arguments.h"

#include "harness/cli/exit_code.h"
#include "harness/tests/catch.h"

namespace fa::cli {
namespace {

std::string error_of(const std::string& text) {
  try {
    parse_integer("--x", text, 1, 100);
  } catch (const UsageError& error) {
    return error.what();
  }
  return {};
}

TEST_CASE("a list of gradients and of other passes has the other ones alone") {
  const Rung& gradients = *find_rung("69");
  Rung own = gradients;
  own.family = Family::own;
  const Problem problem{.batch = 1, .heads = 1, .seq_q = 128, .seq_kv = 128, .head_dim = 128};
  CHECK_FALSE(left_out(gradients, {&gradients, &own}, problem));
  CHECK_FALSE(left_out(own, {&gradients, &own}, problem));
  CHECK(left_out(gradients, {&gradients, find_rung("38")}, problem));
  CHECK(left_out(own, {&own, find_rung("38")}, problem));
}

TEST_CASE("numbers are parsed whole") {
  CHECK(parse_integer("--x", "12", 1, 100) == 12);
  CHECK(parse_integer("--x", "012", 1, 100) == 12);
  CHECK(parse_integer("--x", "-3", -5, 5) == -3);
  for (const char* bad : {"12abc", "", " 12", "12 ", "1.5", "0x10", "1e3", "+5", "-1", "0", "101",
                          "99999999999999999999"}) {
    CAPTURE(bad);
    CHECK(error_of(bad) == "--x '" + std::string(bad) + "' is not a whole number from 1 to 100");
  }
  CHECK(parse_seed("--seed", "18446744073709551615") == UINT64_MAX);
  CHECK_THROWS_AS(parse_seed("--seed", "-1"), UsageError);
}

TEST_CASE("lists of numbers") {
  CHECK(parse_integers("--x", "512,1024", 1, 5000) == std::vector<std::int64_t>{512, 1024});
  for (const char* bad : {"", ",", "512,", ",512", "512,,1024", "512;1024", "512,512", "0,1"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(parse_integers("--x", bad, 1, 5000), UsageError);
  }
}

TEST_CASE("suggestions are near, or none") {
  const std::vector<std::string> words{"all", "06_batched", "--seq", "--seed"};
  CHECK(nearest("06_batchd", words) == "06_batched");
  CHECK(nearest("--seeed", words) == "--seed");
  CHECK(nearest("--sqe", words) == "--seq");
  CHECK(nearest("al", words) == "all");
  CHECK(nearest("xyzzy", words).empty());
  CHECK(nearest("", words).empty());
}

TEST_CASE("rungs: ids, numbers, names, families, each once, in ladder order") {
  const auto ids = [](const std::vector<std::string>& words) {
    std::string text;
    for (const Rung* rung : select_rungs(words)) text += std::string(rung->id) + " ";
    return text;
  };
  CHECK(ids({"6"}) == "06 ");
  CHECK(ids({"06"}) == "06 ");
  CHECK(ids({"06_batched"}) == "06 ");
  CHECK(ids({"batched"}) == "06 ");
  CHECK(ids({"07", "1", "base"}) == "01 07 ");
  CHECK(ids({}) == ids({"all"}));
  CHECK(select_rungs({"all"}).size() == catalogue().size());
  CHECK(select_rungs({"ampere", "01"}) == select_rungs({"ampere"}));
  CHECK_THROWS_AS(select_rungs({"06x"}), UsageError);
  CHECK_THROWS_AS(select_rungs({"06", ""}), UsageError);
  CHECK_THROWS_AS(select_rung("all"), UsageError);
  CHECK(select_rung("6").id == "06");
}

}  // namespace
}  // namespace fa::cli
