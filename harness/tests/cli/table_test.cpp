// SPDX-License-Identifier: MIT
#include "harness/cli/table.h"

#include "harness/cli/terminal.h"
#include "harness/tests/catch.h"

namespace fa::cli {
namespace {

using enum Table::Align;

Table sample() {
  Table table({{"name", left}, {"count"}, {"status", left}});
  table.add({"one", "1 234 567", "\x1b[32mok\x1b[0m, \"best\""});
  table.add({"a|b", "8"});
  return table;
}

TEST_CASE("a last column without anything is left out") {
  Table table({{"name", left}, {"count"}, {"share"}});
  table.add({"one", "1"});
  table.add({"two", "2", ""});
  Table full = table;
  table.drop_empty_column();
  CHECK(text_table(table) == "name  count\none       1\ntwo       2\n");
  full.add({"three", "3", "0.5"});
  full.drop_empty_column();
  CHECK(full.columns().size() == 3);
}

TEST_CASE("text aligns columns, colours have no width") {
  Table table({{"name", left}, {"\x1b[32mcount\x1b[0m"}, {"x"}});
  table.add({"one", "1 234", "7"});
  table.add({"a", "\x1b[31m8\x1b[0m", "12"});
  CHECK(text_table(table) ==
        "name  \x1b[32mcount\x1b[0m   x\n"
        "one   1 234   7\n"
        "a         \x1b[31m8\x1b[0m  12\n");
}

TEST_CASE("CSV has no colours, quotes what must be, and numbers that programs read") {
  CHECK(csv_rows(sample(), "B=1, H=2") ==
        "\"B=1, H=2\",one,1234567,\"ok, \"\"best\"\"\"\n"
        "\"B=1, H=2\",a|b,8,\n");
}

TEST_CASE("Markdown keeps the bars apart") {
  CHECK(markdown_table(sample()) ==
        "| name | count | status |\n|---|---:|---|\n"
        "| one | 1 234 567 | ok, \"best\" |\n"
        "| a\\|b | 8 |  |\n");
}

TEST_CASE("text folds between words") {
  CHECK(folded("one two three four", 9, "  ") == "  one two\n  three\n  four\n");
  CHECK(folded("one two", 9, "  ") == "  one two\n");
  CHECK(folded("longer-than-that one", 9, "") == "longer-than-that\none\n");
}

TEST_CASE("progress says where the work is and what is left") {
  CHECK(progress_text(0, 0, 0, 0, 5).empty());
  CHECK(progress_text(0, 80, 0, 100, 0) == "1 of 80");
  CHECK(progress_text(10, 80, 25, 100, 20) == "11 of 80, 60 s left");
  CHECK(progress_text(10, 80, 25, 100, 60) == "11 of 80, 3 min left");
  CHECK(progress_text(80, 80, 100, 100, 60) == "80 of 80, 0 s left");
}

}  // namespace
}  // namespace fa::cli
