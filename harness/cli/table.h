// SPDX-License-Identifier: MIT
// Tables: for people, for spreadsheets, for pages.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace fa::cli {

enum class TableFormat { text, csv, markdown };

/// Rows of cells under named columns.
class Table {
 public:
  enum class Align { right, left };
  struct Column {
    std::string name;
    Align align = Align::right;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// As many cells as there are columns; missing ones at the end are empty.
  void add(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }
  /// Leaves out the last column where no row has anything in it.
  void drop_empty_column();
  const std::vector<Column>& columns() const { return columns_; }
  const std::vector<std::vector<std::string>>& rows() const { return rows_; }

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// The table with its columns aligned.
std::string text_table(const Table& table);
/// How wide what the commands print is, where it is folded.
inline constexpr std::size_t kColumns = 100;
/// The text in lines of at most so many columns, broken between words, each after `indent`.
std::string folded(std::string_view text, std::size_t columns, std::string_view indent);
/// A line a row, quoted as RFC 4180 says; without colours, and digits without spaces between them.
std::string csv_rows(const Table& table, std::string_view heading);
std::string markdown_table(const Table& table);

/// Prints tables in one format. CSV is the tables alone: one header for those with the same
/// columns, and the heading as the first cell of every row.
class TablePrinter {
 public:
  /// --format text|csv|markdown.
  CLI::Option* declare(CLI::App& app);
  TableFormat format() const { return format_; }

  /// A line or several of text beside the tables; not in CSV.
  void say(std::string_view text) const;
  /// `kind` is what the headings are: "problem"; it names their column in CSV.
  void print(const Table& table, const std::string& kind, const std::string& heading);

 private:
  TableFormat format_ = TableFormat::text;
  std::string header_;  ///< the last one, in CSV
};

}  // namespace fa::cli
