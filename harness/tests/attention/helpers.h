// SPDX-License-Identifier: MIT
// Shared by the tests of this folder.
#pragma once

#include <string>

namespace fa {

/// The message of the exception of type E that `action` throws; "" when it throws none.
template <class E, class Action>
std::string message_of(const Action& action) {
  try {
    action();
  } catch (const E& error) {
    return error.what();
  }
  return "";
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace fa
