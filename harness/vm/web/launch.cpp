// SPDX-License-Identifier: MIT
#include "web/launch.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "num/half.h"
#include "ptxvm/launch.h"
#include "ptxvm/races.h"
#include "ptxvm/report.h"
#include "web/observers.h"
#include "web/texts.h"

namespace ptxvm::web {
namespace {

constexpr uint64_t kMaxElements = uint64_t{1} << 26;
constexpr uint64_t kShown = 64;

/// Elements of a buffer as numbers.
class Elements {
 public:
  static Elements of(const std::string& type) {
    if (type == "f16")
      return {2,
              [](const std::byte* p) {
                return static_cast<double>(num::half_to_float(as<uint16_t>(p)));
              },
              [](std::byte* p, double v) { put(p, num::float_to_half(static_cast<float>(v))); }};
    if (type == "f32") return plain<float>();
    if (type == "f64") return plain<double>();
    if (type == "i32") return plain<int32_t>();
    if (type == "u32") return plain<uint32_t>();
    throw std::invalid_argument("'" + type + "' is not f16, f32, f64, i32 or u32");
  }

  size_t size;
  double (*read)(const std::byte*);
  void (*write)(std::byte*, double);

 private:
  Elements(size_t bytes, double (*reader)(const std::byte*), void (*writer)(std::byte*, double))
      : size(bytes), read(reader), write(writer) {}

  template <class T>
  static T as(const std::byte* p) {
    T value;
    std::memcpy(&value, p, sizeof value);
    return value;
  }
  template <class T>
  static void put(std::byte* p, T value) {
    std::memcpy(p, &value, sizeof value);
  }
  template <class T>
  static Elements plain() {
    return {sizeof(T), [](const std::byte* p) { return static_cast<double>(as<T>(p)); },
            [](std::byte* p, double v) { put(p, static_cast<T>(v)); }};
  }
};

struct Buffer {
  std::string name, type;
  Address address;
};

void fill(std::span<std::byte> bytes, const Elements& elements, const std::string& how,
          uint64_t seed) {
  if (how == "zero" || how == "poison") return;
  if (how != "index" && how != "normal") {
    throw std::invalid_argument("'" + how + "' is not zero, poison, index or normal");
  }
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  for (uint64_t i = 0; i < bytes.size() / elements.size; ++i) {
    elements.write(&bytes[i * elements.size],
                   how == "index" ? static_cast<double>(i) : normal(random));
  }
}

/// Makes the buffers and remembers them.
class Arguments {
 public:
  explicit Arguments(Memory& memory) : memory_(memory) {}

  Argument operator()(const Json& json) {
    if (json.contains("buffer")) return buffer(json);
    const std::string kind = json.begin().key();
    const Json& value = json.begin().value();
    if (kind == "i32") return Argument::scalar(value.get<int32_t>());
    if (kind == "u32") return Argument::scalar(value.get<uint32_t>());
    if (kind == "i64") return Argument::scalar(value.get<int64_t>());
    if (kind == "u64") return Argument::scalar(value.get<uint64_t>());
    if (kind == "f32") return Argument::scalar(value.get<float>());
    if (kind == "f64") return Argument::scalar(value.get<double>());
    throw std::invalid_argument("'" + kind + "' is not a kind of argument");
  }

  /// The first `shown` elements of each.
  Json contents(uint64_t shown) const {
    Json json = Json::array();
    for (const Buffer& each : buffers_) {
      const Elements elements = Elements::of(each.type);
      const std::span<const std::byte> bytes = memory_.bytes(each.address);
      const uint64_t count = bytes.size() / elements.size;
      Json values = Json::array();
      for (uint64_t i = 0; i < std::min(count, shown); ++i) {
        const double value = elements.read(&bytes[i * elements.size]);
        values.push_back(std::isfinite(value) ? Json(value) : Json(std::to_string(value)));
      }
      json.push_back({{"name", each.name}, {"count", count}, {"values", std::move(values)}});
    }
    return json;
  }

 private:
  Argument buffer(const Json& json) {
    const std::string name = json.at("buffer"), type = json.at("type"), how = json.at("fill");
    const uint64_t count = json.at("count");
    if (count == 0 || count > kMaxElements) {
      throw std::invalid_argument("buffer '" + name + "' has " + std::to_string(count) +
                                  " elements; from 1 to " + std::to_string(kMaxElements) +
                                  " are allowed");
    }
    const Elements elements = Elements::of(type);
    const auto wanted = how == "poison" ? Fill::kPoison : Fill::kZero;
    const Address address =
        memory_.allocate(name, static_cast<size_t>(count) * elements.size, wanted);
    fill(memory_.bytes(address), elements, how, buffers_.size() + 1);
    buffers_.push_back({name, type, address});
    return Argument::pointer(address);
  }

  Memory& memory_;
  std::vector<Buffer> buffers_;
};

Dim3 dim3_of(const Json& json) {
  return {json.at(0), json.at(1), json.at(2)};
}

}  // namespace

Json launch_any(const Json& request, std::function<void(uint64_t, uint64_t)> progress) {
  const std::string entry = request.at("entry");
  const Module& module = module_of(entry);
  Memory memory;
  Arguments arguments(memory);
  LaunchConfig config;
  config.grid = dim3_of(request.at("grid"));
  config.block = dim3_of(request.at("block"));
  config.cluster = dim3_of(request.at("cluster"));
  config.dynamic_shared_bytes = request.at("shared");
  for (const Json& each : request.at("arguments")) config.arguments.push_back(arguments(each));

  Counters counters;
  Races races;
  Progress watched(std::move(progress));
  Options options;
  options.threads = 1;
  options.max_warp_steps = request.value("max_steps", options.max_warp_steps);
  options.observers = {&counters, &races, &watched};
  const LaunchResult result = launch(module, entry, config, memory, options);

  Json answer{{"counts", counts_json(counters.report().total)},
              {"launches", Json::array({launch_json(entry, counters.report(), "")})},
              {"findings", Json::array()},
              {"buffers", arguments.contents(request.value("shown", kShown))}};
  if (result.fault) {
    answer["fault"] = diagnostics_json(std::span(&result.fault->where, 1)).front();
  }
  for (const Finding& finding : result.findings) {
    answer["findings"].push_back(format(finding));
  }
  return answer;
}

}  // namespace ptxvm::web
