// SPDX-License-Identifier: MIT
#include "harness/cli/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "harness/cli/arguments.h"

namespace fa::cli {
namespace {

constexpr std::string_view kEscape = "\x1b[";

/// Without colours.
std::string plain(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    if (!text.substr(at).starts_with(kEscape)) {
      result += text[at++];
      continue;
    }
    const std::size_t end = text.find('m', at);
    at = end == std::string_view::npos ? text.size() : end + 1;
  }
  return result;
}

std::string padding(std::string_view cell, std::size_t width) {
  const std::size_t shown = plain(cell).size();
  return std::string(width - std::min(width, shown), ' ');
}

/// "1 234 567" is a number for people; programs get 1234567.
std::string joined_digits(std::string text) {
  if (text.find_first_not_of("0123456789 ") == std::string::npos) std::erase(text, ' ');
  return text;
}

std::string csv_cell(std::string_view text) {
  std::string cell = joined_digits(plain(text));
  if (cell.find_first_of(",\"\n") == std::string::npos) return cell;
  std::string quoted = "\"";
  for (const char c : cell) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string markdown_cell(std::string_view text) {
  std::string cell;
  for (const char c : plain(text)) cell += c == '|' ? std::string("\\|") : std::string(1, c);
  return cell;
}

std::string csv_header(const Table& table, const std::string& kind) {
  std::string text = csv_cell(kind);
  for (const Table::Column& column : table.columns())
    text.append(",").append(csv_cell(column.name));
  return text + "\n";
}

std::string without_trailing_spaces(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

void Table::add(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

void Table::drop_empty_column() {
  if (!std::all_of(rows_.begin(), rows_.end(), [](const auto& row) { return row.back().empty(); }))
    return;
  columns_.pop_back();
  for (auto& row : rows_) row.pop_back();
}

std::string text_table(const Table& table) {
  std::vector<std::string> names;
  std::vector<std::size_t> widths;
  for (const Table::Column& column : table.columns()) {
    names.push_back(column.name);
    widths.push_back(plain(column.name).size());
  }
  for (const auto& row : table.rows()) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], plain(row[i]).size());
    }
  }
  const auto line = [&](const std::vector<std::string>& row) {
    std::string text;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string space = padding(row[i], widths[i]);
      const bool left = table.columns()[i].align == Table::Align::left;
      text.append(i == 0 ? "" : "  ").append(left ? row[i] + space : space + row[i]);
    }
    return without_trailing_spaces(text) + "\n";
  };
  std::string text = line(names);
  for (const auto& row : table.rows()) text += line(row);
  return text;
}

std::string folded(std::string_view text, std::size_t columns, std::string_view indent) {
  std::string result, line(indent);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string_view word = text.substr(at, end - at);
    const bool first = line.size() == indent.size();
    if (!first && line.size() + 1 + word.size() > columns) {
      result.append(line).append("\n");
      line = indent;
    }
    if (line.size() > indent.size()) line += ' ';
    line += word;
    at = end + 1;
  }
  return result + line + "\n";
}

std::string csv_rows(const Table& table, std::string_view heading) {
  std::string text;
  for (const auto& row : table.rows()) {
    text += csv_cell(heading);
    for (const std::string& cell : row) text.append(",").append(csv_cell(cell));
    text += "\n";
  }
  return text;
}

std::string markdown_table(const Table& table) {
  std::string text = "|";
  const auto add = [&text](const std::string& cell) {
    text.append(" ").append(markdown_cell(cell)).append(" |");
  };
  for (const Table::Column& column : table.columns()) add(column.name);
  text += "\n|";
  for (const Table::Column& column : table.columns()) {
    text += column.align == Table::Align::left ? "---|" : "---:|";
  }
  for (const auto& row : table.rows()) {
    text += "\n|";
    for (const std::string& cell : row) add(cell);
  }
  return text + "\n";
}

CLI::Option* TablePrinter::declare(CLI::App& app) {
  return add_choice<TableFormat>(
      app, "--format", format_,
      {{"text", TableFormat::text}, {"csv", TableFormat::csv}, {"markdown", TableFormat::markdown}},
      "How tables are printed (default text)");
}

void TablePrinter::say(std::string_view text) const {
  if (format_ != TableFormat::csv) fmt::print("{}", text);
}

void TablePrinter::print(const Table& table, const std::string& kind, const std::string& heading) {
  switch (format_) {
    case TableFormat::text:
      fmt::print("{}{}", heading.empty() ? "" : heading + "\n", text_table(table));
      break;
    case TableFormat::markdown:
      fmt::print("{}{}\n", heading.empty() ? "" : "**" + heading + "**\n\n", markdown_table(table));
      break;
    case TableFormat::csv: {
      const std::string header = csv_header(table, kind);
      if (header != header_) fmt::print("{}{}", header_.empty() ? "" : "\n", header);
      header_ = header;
      fmt::print("{}", csv_rows(table, heading));
      break;
    }
  }
  std::fflush(stdout);
}

}  // namespace fa::cli
