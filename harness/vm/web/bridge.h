// SPDX-License-Identifier: MIT
// What the C++20 library of older emscripten releases lacks (Debian's 3.1.6 has libc++ 13), so that
// the machine's sources need no second form. Included before every file of the WebAssembly build;
// each part vanishes where the library has its own.
#pragma once

#include <atomic>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <version>

namespace std {

#ifndef __cpp_lib_bit_cast
template <class To, class From>
requires(sizeof(To) == sizeof(From) && is_trivially_copyable_v<To> &&
         is_trivially_copyable_v<From>) constexpr To bit_cast(const From& from) noexcept {
  return __builtin_bit_cast(To, from);
}
#endif

#ifndef __cpp_lib_jthread
/// Without stop tokens.
class jthread : public thread {
 public:
  using thread::thread;
  jthread(jthread&&) noexcept = default;
  ~jthread() {
    if (joinable()) join();
  }
};
#endif

#ifndef __cpp_lib_atomic_ref
/// For the single thread that there is.
template <class T>
class atomic_ref {
 public:
  explicit atomic_ref(T& target) : target_(target) {}
  T load(memory_order = memory_order_seq_cst) const { return target_; }
  void store(T value, memory_order = memory_order_seq_cst) const { target_ = value; }
  T exchange(T value, memory_order = memory_order_seq_cst) const {
    return std::exchange(target_, value);
  }
  T fetch_add(T value, memory_order = memory_order_seq_cst) const {
    return std::exchange(target_, static_cast<T>(target_ + value));
  }
  bool compare_exchange_weak(T& expected, T wanted, memory_order = memory_order_seq_cst,
                             memory_order = memory_order_seq_cst) const {
    // By bits, as the real one has it: a NaN equals itself.
    if (std::memcmp(&target_, &expected, sizeof(T)) == 0) {
      target_ = wanted;
      return true;
    }
    expected = target_;
    return false;
  }
  bool compare_exchange_strong(T& expected, T wanted, memory_order = memory_order_seq_cst,
                               memory_order = memory_order_seq_cst) const {
    return compare_exchange_weak(expected, wanted);
  }

 private:
  T& target_;
};
#endif

#ifndef __cpp_lib_to_chars
template <class T>
requires is_floating_point_v<T> from_chars_result from_chars(const char* first, const char* last,
                                                             T& value) {
  const string text(first, last);  // strtod wants a terminator
  // from_chars takes neither white space nor a plus sign.
  if (text.empty() || text[0] == '+' || isspace(static_cast<unsigned char>(text[0])) != 0) {
    return {first, errc::invalid_argument};
  }
  char* end = nullptr;
  errno = 0;
  const double parsed = strtod(text.c_str(), &end);
  if (end == text.c_str()) return {first, errc::invalid_argument};
  const char* const stop = first + (end - text.c_str());
  if (errno == ERANGE) return {stop, errc::result_out_of_range};
  value = static_cast<T>(parsed);
  return {stop, errc{}};
}
#endif

}  // namespace std
