// SPDX-License-Identifier: MIT
// Members of a struct as data. FA_FIELD declares one and says in the same place what files, schemas
// and the command line make of it, so that nothing else lists the members.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

namespace fa {

/// What is known of a member besides its type.
struct FieldFacts {
  const char* name = "";      ///< of the member
  const char* doc = "";       ///< a sentence or a part of one
  const char* key = nullptr;  ///< in files, where it is not `name`; "": its members stand there
  bool if_set = false;        ///< not written where it has its initial value
  bool some_rows = false;     ///< what writes a row decides whether it has the field
  bool exact = false;         ///< written with all digits
  std::int64_t least = 0;     ///< of a number in a file
  std::int64_t most = std::numeric_limits<std::int64_t>::max();  ///< on the command line
  const char* yes = nullptr;     ///< a bool is written as this word where it is true
  const char* rules = "{}";      ///< JSON schema beside what follows from the type
  const char* option = nullptr;  ///< of the command line
  const char* help = "";         ///< of the option

  constexpr const char* in_files() const { return key ? key : name; }
};

// Rules that many fields have.
inline constexpr const char* kPositive = R"({"exclusiveMinimum": 0})";
inline constexpr const char* kSomeText = R"({"minLength": 1})";

template <class Struct, class Value>
struct Field : FieldFacts {
  // Without the name, nvcc writes parentheses here, of which GCC warns.
  using Member = Value Struct::*;
  Member member;

  constexpr Field(Value Struct::*which, const FieldFacts& facts)
      : FieldFacts(facts), member(which) {}
};

/// First in a struct with fields.
#define FA_FIELDS(Struct)                     \
  using Self = Struct;                        \
  static constexpr int kFirstLine = __LINE__; \
  bool operator==(const Self&) const = default

/// A member, at most kMostLines below FA_FIELDS: its type, name, initial value, doc and what else
/// of FieldFacts it has.
#define FA_FIELD(type, member_name, initial, text, ...)                                 \
  type member_name = initial;                                                           \
  static constexpr auto field(std::integral_constant<int, __LINE__> /*line*/) {         \
    return ::fa::Field(&Self::member_name,                                              \
                       {.name = #member_name, .doc = text __VA_OPT__(, ) __VA_ARGS__}); \
  }
inline constexpr int kMostLines = 150;

template <class Struct>
concept HasFields = requires {
  Struct::kFirstLine;
};

/// Calls `visit` with every field of the struct, in their order.
template <HasFields Struct, class Visit>
constexpr void each_field(const Visit& visit) {
  const auto at = [&]<int line>(std::integral_constant<int, line> place) {
    if constexpr (requires { Struct::field(place); }) visit(Struct::field(place));
  };
  [&]<int... lines>(std::integer_sequence<int, lines...>) {
    (at(std::integral_constant<int, Struct::kFirstLine + lines>()), ...);
  }
  (std::make_integer_sequence<int, kMostLines>());
}

}  // namespace fa
