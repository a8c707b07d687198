// Tables of counts for people.
#pragma once

#include <string>
#include <vector>

#include "ptxvm/report.h"

namespace fa::cli {

/// Counts, also for each tensor instruction; what carries over to machine code is marked.
std::string count_table(const ptxvm::Counts& counts);

/// Two counts side by side with the second's share of the first. Rows that are 0 in both are left
/// out.
std::string compare_table(const std::string& first_name, const ptxvm::Counts& first,
                          const std::string& second_name, const ptxvm::Counts& second);

/// "1234567" as "1 234 567".
std::string grouped(std::uint64_t number);

}  // namespace fa::cli
