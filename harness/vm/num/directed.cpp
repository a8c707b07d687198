// SPDX-License-Identifier: MIT
// Built with -frounding-math: the compiler must not move arithmetic across a change of mode.
#include "num/directed.h"

#include <cfenv>
#include <cmath>
#include <limits>

#include "ptxvm/diagnostic.h"

namespace ptxvm::num {
namespace {

class Mode {
 public:
  explicit Mode(Rounding mode) : saved_(std::fegetround()) {
#ifdef __EMSCRIPTEN__
    if (mode != Rounding::kNearest) throw Error("WebAssembly rounds to nearest only");
#endif
    constexpr int kModes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD, FE_TONEAREST};
    std::fesetround(kModes[static_cast<int>(mode)]);
  }
  ~Mode() {
    std::fesetround(saved_);
  }
  Mode(const Mode&) = delete;
  Mode& operator=(const Mode&) = delete;

 private:
  int saved_;
};

}  // namespace

// The operands go through volatile because a compiler may still fold constants it can see.
template <class T>
T add(T a, T b, Rounding mode) {
  const Mode m(mode);
  volatile T x = a, y = b;
  volatile T result = x + y;
  return result;
}

template <class T>
T multiply(T a, T b, Rounding mode) {
  const Mode m(mode);
  volatile T x = a, y = b;
  volatile T result = x * y;
  return result;
}

template <class T>
T divide(T a, T b, Rounding mode) {
  const Mode m(mode);
  volatile T x = a, y = b;
  volatile T result = x / y;
  return result;
}

template <class T>
T square_root(T a, Rounding mode) {
  const Mode m(mode);
  volatile T x = a;
  volatile T result = std::sqrt(static_cast<T>(x));
  return result;
}

template <>
float fuse(float a, float b, float c, Rounding mode) {
  const double product = static_cast<double>(a) * b;
  const float result = round_to_single(add_to_odd(product, c), mode);
  // An exact sum of zero is negative when rounded down, unless both terms are +0.
  const bool cancels = mode == Rounding::kDown && result == 0 && product == -double{c};
  return cancels && (product != 0 || std::signbit(product) || std::signbit(c)) ? -0.0f : result;
}

template <>
double fuse(double a, double b, double c, Rounding mode) {
  const Mode m(mode);
  volatile double x = a, y = b, z = c;
  volatile double result =
      std::fma(static_cast<double>(x), static_cast<double>(y), static_cast<double>(z));
  return result;
}

template <class T>
T from_integer(int64_t v, Rounding mode) {
  // Exact in every mode, so that WebAssembly has it too.
  constexpr int64_t kExact = int64_t{1} << std::numeric_limits<T>::digits;
  if (-kExact <= v && v <= kExact) return static_cast<T>(v);
  const Mode m(mode);
  volatile int64_t x = v;
  volatile T result = static_cast<T>(x);
  return result;
}

template <class T>
T from_integer(uint64_t v, Rounding mode) {
  if (v <= static_cast<uint64_t>(INT64_MAX)) return from_integer<T>(static_cast<int64_t>(v), mode);
  // Half the value with the lost bit kept as a sticky bit rounds the same.
  const T half = from_integer<T>(static_cast<int64_t>((v >> 1) | (v & 1)), mode);
  return half * 2;
}

template float add(float, float, Rounding);
template double add(double, double, Rounding);
template float multiply(float, float, Rounding);
template double multiply(double, double, Rounding);
template float divide(float, float, Rounding);
template double divide(double, double, Rounding);
template float square_root(float, Rounding);
template double square_root(double, Rounding);
template float from_integer(int64_t, Rounding);
template double from_integer(int64_t, Rounding);
template float from_integer(uint64_t, Rounding);
template double from_integer(uint64_t, Rounding);

}  // namespace ptxvm::num
