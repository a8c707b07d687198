// SPDX-License-Identifier: MIT
// Functions that the machine provides: vprintf, __assertfail, malloc, free.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "exec/access.h"
#include "exec/calls.h"

namespace ptxvm {

void Printed::add(uint32_t block, const std::string& text) {
  const std::lock_guard lock(mutex_);
  if (bytes_ >= kMost) return;
  bytes_ += text.size();
  if (!pieces_.empty() && pieces_.back().first == block) {
    pieces_.back().second += text;
  } else {
    pieces_.emplace_back(block, text);
  }
}

std::string Printed::take() {
  std::stable_sort(pieces_.begin(), pieces_.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string all;
  for (const auto& [block, text] : pieces_) all += text;
  if (all.size() > kMost) all.resize(kMost);
  return all;
}

namespace {

constexpr size_t kLongestString = size_t{1} << 16;

// What one lane passes, and the memory that its pointers reach.
class Caller {
 public:
  Caller(Warp& w, const Op& op, int lane)
      : w_(w), op_(op), lane_(lane), program_(*w.cta->launch->program) {
    site_ = &program_.calls[op.r[0]];
  }

  template <class T>
  T argument(size_t i) const {
    T v{};
    if (i < site_->arguments.size() && site_->arguments[i].bytes >= sizeof v) {
      std::memcpy(&v, local() + at(site_->arguments[i]), sizeof v);
    }
    return v;
  }

  template <class T>
  void give(T value) const {
    if (site_->returns.empty() || site_->returns[0].bytes < sizeof value) return;
    std::memcpy(local() + at(site_->returns[0]), &value, sizeof value);
  }

  template <class T>
  T read(uint64_t address) const {
    T v;
    Request request;
    request.wide[lane_] = address;
    for_spaces(Space::kGeneric, 1u << lane_, request, [&](Space space, uint32_t lanes) {
      resolve(w_, op_, space, lanes, sizeof v, sizeof v, false, request);
      std::memcpy(&v, request.host[lane_], sizeof v);
    });
    return v;
  }

  std::string string(uint64_t address) const {
    std::string text;
    for (char c; text.size() < kLongestString && (c = read<char>(address++)) != '\0';) text += c;
    return text;
  }

  std::string place() const {
    const Dim3 block = w_.cta->launch->block, at = w_.cta->position;
    const uint32_t thread = w_.index * 32u + static_cast<uint32_t>(lane_);
    const auto show = [](uint32_t x, uint32_t y, uint32_t z) {
      return "[" + std::to_string(x) + "," + std::to_string(y) + "," + std::to_string(z) + "]";
    };
    return "block: " + show(at.x, at.y, at.z) + ", thread: " +
           show(thread % block.x, thread / block.x % block.y, thread / block.x / block.y);
  }

 private:
  uint64_t at(const CallSite::Passed& p) const { return w_.at<uint64_t>(p.address)[lane_]; }
  std::byte* local() const {
    return w_.local + size_t{program_.local_bytes} * static_cast<size_t>(lane_);
  }

  Warp& w_;
  const Op& op_;
  int lane_;
  const Program& program_;
  const CallSite* site_;
};

// printf's conversions, with their arguments taken from a buffer in which each is aligned to its
// own size.
class Format {
 public:
  Format(const Caller& caller, uint64_t format, uint64_t arguments)
      : caller_(caller), format_(caller.string(format)), next_(arguments) {}

  std::string text() {
    for (size_t i = 0; i < format_.size(); ++i) {
      if (format_[i] != '%') {
        out_ += format_[i];
      } else if (i + 1 < format_.size() && format_[i + 1] == '%') {
        out_ += format_[++i];
      } else {
        i = conversion(i);
      }
    }
    return std::move(out_);
  }
  int count() const { return count_; }

 private:
  template <class T>
  T next() {
    next_ = (next_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    const T v = caller_.read<T>(next_);
    next_ += sizeof(T);
    return v;
  }

  template <class T>
  void print(const std::string& spec, T value) {
    char buffer[512];
    const int n = std::snprintf(buffer, sizeof buffer, spec.c_str(), value);
    if (n > 0) out_.append(buffer, std::min(static_cast<size_t>(n), sizeof buffer - 1));
    ++count_;
  }

  // From a '%'; the index of its last character.
  size_t conversion(size_t begin) {
    std::string spec = "%";
    size_t i = begin + 1;
    int longs = 0;
    for (; i < format_.size() && std::strchr("-+ #0123456789.*", format_[i]) != nullptr; ++i) {
      if (format_[i] == '*') {
        spec += std::to_string(next<int>());
      } else {
        spec += format_[i];
      }
    }
    for (; i < format_.size() && std::strchr("hljztL", format_[i]) != nullptr; ++i) {
      if (format_[i] == 'l' || format_[i] == 'j' || format_[i] == 'z' || format_[i] == 't') ++longs;
    }
    if (i >= format_.size() || spec.size() > 64) {
      out_ += format_.substr(begin);
      return format_.size();
    }
    const char c = format_[i];
    switch (c) {
      case 'd':
      case 'i':
        longs ? print(spec + "lld", next<long long>()) : print(spec + "d", next<int>());
        break;
      case 'u':
      case 'o':
      case 'x':
      case 'X':
        longs ? print(spec + "ll" + c, next<unsigned long long>())
              : print(spec + c, next<unsigned>());
        break;
      case 'c':
        print(spec + c, next<int>());
        break;
      case 'p':
        print(spec + "p", reinterpret_cast<const void*>(next<uint64_t>()));
        break;
      case 's': {
        const std::string value = caller_.string(next<uint64_t>());
        print(spec + "s", value.c_str());
        break;
      }
      case 'f':
      case 'F':
      case 'e':
      case 'E':
      case 'g':
      case 'G':
      case 'a':
      case 'A':
        print(spec + c, next<double>());
        break;
      default:
        out_ += format_.substr(begin, i - begin + 1);
    }
    return i;
  }

  const Caller& caller_;
  std::string format_, out_;
  uint64_t next_;
  int count_ = 0;
};

void print(Warp& w, const Caller& caller) {
  Format format(caller, caller.argument<uint64_t>(0), caller.argument<uint64_t>(1));
  w.cta->launch->printed->add(w.cta->index, format.text());
  caller.give(format.count());
}

[[noreturn]] void fail_assertion(Warp& w, const Op& op, int lane, const Caller& caller) {
  const std::string text = caller.string(caller.argument<uint64_t>(1)) + ":" +
                           std::to_string(caller.argument<uint32_t>(2)) + ": " +
                           caller.string(caller.argument<uint64_t>(3)) + ": " + caller.place() +
                           " Assertion `" + caller.string(caller.argument<uint64_t>(0)) +
                           "` failed.";
  w.cta->launch->printed->add(w.cta->index, text + "\n");
  raise(w, op, FaultKind::kTrap, lane, text);
}

void release(Warp& w, const Op& op, int lane, const Caller& caller) {
  const auto address = caller.argument<uint64_t>(0);
  if (address == 0 || w.cta->launch->memory->heap_release(address)) return;
  raise(w, op, FaultKind::kInvalid, lane,
        "free of " + hex(address, 16) + ", which malloc has not given or which is free already");
}

}  // namespace

void call_system(Warp& w, const Op& op) {
  const System system = w.cta->launch->program->calls[op.r[0]].system;
  for_lanes(w.mask, [&](int lane) {
    const Caller caller(w, op, lane);
    switch (system) {
      case System::kPrintf:
        return print(w, caller);
      case System::kAssert:
        fail_assertion(w, op, lane, caller);
      case System::kMalloc:
        return caller.give(w.cta->launch->memory->heap_allocate(caller.argument<uint64_t>(0)));
      case System::kFree:
        return release(w, op, lane, caller);
      case System::kNone:
        return;
    }
  });
}

}  // namespace ptxvm
