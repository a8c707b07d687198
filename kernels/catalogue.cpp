#include "kernels/catalogue.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <stdexcept>
#include <utility>

namespace fa {

#define RUNG(family, name) extern const Rung rung_##name;
#include "kernels/ladder.def"
#undef RUNG

namespace {

using enum Capabilities;

constexpr std::pair<Family, const Rung*> kLadder[] = {
#define RUNG(family, name) {Family::family, &rung_##name},
#include "kernels/ladder.def"
#undef RUNG
};

// In a function, so that it is there before the static objects that fill it.
std::vector<const Rung*>& registered() {
  static std::vector<const Rung*> rungs;
  return rungs;
}

/// Those that the ladder does not list, by name: static objects of several files are made in an
/// order that is the linker's.
std::vector<const Rung*> own_rungs() {
  std::vector<const Rung*> own = registered();
  std::erase_if(own, [](const Rung* rung) {
    return std::any_of(std::begin(kLadder), std::end(kLadder),
                       [&](const auto& listed) { return listed.second == rung; });
  });
  std::sort(own.begin(), own.end(), [](auto* a, auto* b) { return a->name < b->name; });
  return own;
}

std::vector<Rung> whole_catalogue() {
  std::vector<Rung> rungs;
  for (const auto& [family, rung] : kLadder) rungs.emplace_back(*rung).family = family;
  for (const Rung* own : own_rungs()) {
    for (const Rung& other : rungs) {
      if (own->id != other.id) continue;
      throw std::runtime_error("the rungs " + std::string(other.name) + " and " +
                               std::string(own->name) + " have the same id, '" +
                               std::string(own->id) + "'; rename one of them");
    }
    rungs.push_back(*own);
  }
  return rungs;
}

// CUDA's limit on grid.y and grid.z, which carry heads and batch.
constexpr std::int64_t kMaxGridYZ = 65535;

std::string join(const std::vector<int>& values) {
  std::string text;
  for (const int value : values) text += (text.empty() ? "" : ", ") + std::to_string(value);
  return text;
}

std::string capability_text(int sm) {
  return std::to_string(sm / 10) + "." + std::to_string(sm % 10);
}

/// "; 08, 09 do": the rungs of the ladder that have all this for the problem and run on the device,
/// with the verb for one or for several; empty when there is none.
std::string rungs_with(Capabilities wanted, const Problem& problem, const DeviceDescription& device,
                       const char* one, const char* several) {
  std::string ids;
  int count = 0;
  for (const Rung& rung : catalogue()) {
    if (rung.family == Family::own || !types_match(rung, problem) || device_refusal(rung, device) ||
        !has(rung.capabilities, wanted) || problem.seq_q > rung.most_queries() ||
        !rung.find_instance(problem.head_dim, problem.dtype))
      continue;
    ids += (count++ == 0 ? "; " : ", ") + std::string(rung.id);
  }
  return count == 0 ? "" : ids + (count == 1 ? one : several);
}

/// Where the problem needs what the rung lacks, all of it: "06_batched computes no causal mask; 08,
/// 09 do".
std::optional<std::string> lacking(const Rung& rung, const Problem& problem,
                                   const DeviceDescription& device) {
  const Capabilities needed = needs_of(problem);
  if (has(rung.capabilities, needed)) return std::nullopt;
  constexpr std::pair<Capabilities, const char*> kWhat[] = {
      {causal, " computes no causal mask"},
      {grouped, " takes no heads of K and V that query heads share"},
      {lengths, " takes no lengths that differ over the batch"},
      {paged, " takes no pages"},
      {e4m3, " takes no K and V of float8_e4m3"},
      {strided, " takes contiguous tensors only"},
      {windowed, " computes no window"},
      {sinks, " takes no sinks"},
      {packed, " takes no packed batch"},
      {lse, " writes no log-sum-exp"}};
  std::string all;
  for (const auto& [capability, what] : kWhat) {
    if (!has(needed, capability) || has(rung.capabilities, capability)) continue;
    all += (all.empty() ? std::string(rung.name) : ",") + what;
  }
  return all + rungs_with(needed, problem, device, " does", " do");
}

}  // namespace

const char* to_string(Family family) {
  switch (family) {
    case Family::fp32:
      return "fp32";
    case Family::ampere:
      return "ampere";
    case Family::hopper:
      return "hopper";
    case Family::decode:
      return "decode";
    case Family::backward:
      return "backward";
    case Family::blackwell:
      return "blackwell";
    case Family::own:
      return "own";
  }
  return "";
}

const char* to_string(Target target) {
  switch (target) {
    case Target::sm_80:
      return "sm_80";
    case Target::sm_90a:
      return "sm_90a";
    case Target::sm_100a:
      return "sm_100a";
  }
  return "";
}

bool runs_on(Target target, int sm) {
  return target == Target::sm_80 ? sm >= 80 : sm == (target == Target::sm_90a ? 90 : 100);
}

void set_types(const Rung& rung, Problem& problem) {
  if (!rung.takes(problem.dtype) && problem.dtype == Dtype::f16) problem.dtype = rung.dtype;
  problem.e4m3 = has(rung.capabilities, e4m3);
  problem.backward = has(rung.capabilities, backward);
}

bool types_match(const Rung& rung, const Problem& problem) {
  return rung.takes(problem.dtype) && has(rung.capabilities, e4m3) == problem.e4m3 &&
         has(rung.capabilities, backward) == problem.backward;
}

bool Rung::takes(Dtype wanted) const {
  return wanted == dtype || std::any_of(instances.begin(), instances.end(),
                                        [&](const Instance& i) { return dtype_of(i) == wanted; });
}

std::int64_t Rung::most_queries() const {
  if (family != Family::decode) return INT32_MAX;
  return has(capabilities, few_queries) ? kFewQueries : 1;
}

std::vector<int> Rung::head_dims() const {
  std::vector<int> dims;
  for (const Instance& instance : instances) dims.push_back(instance.head_dim);
  std::sort(dims.begin(), dims.end());
  dims.erase(std::unique(dims.begin(), dims.end()), dims.end());
  return dims;
}

const Instance* Rung::find_instance(int head_dim, Dtype wanted, std::string_view tile) const {
  for (const Instance* instance : find_instances(head_dim, wanted, /*with_tuned=*/true))
    if (tile.empty() || to_string(instance->tile) == tile) return instance;
  return nullptr;
}

std::vector<const Instance*> Rung::find_instances(int head_dim, Dtype wanted,
                                                  bool with_tuned) const {
  std::vector<const Instance*> found;
  for (const Instance& instance : instances)
    if (instance.head_dim == head_dim && dtype_of(instance) == wanted) found.push_back(&instance);
  if (!with_tuned || found.empty()) return found;
  for (const Instance& instance : tuned) {
    const bool known = std::any_of(found.begin(), found.end(), [&](const Instance* other) {
      return other->tile == instance.tile;
    });
    if (instance.head_dim == head_dim && dtype_of(instance) == wanted && !known)
      found.push_back(&instance);
  }
  return found;
}

bool has_tuned_tiles() {
#ifdef FA_TUNE
  return true;
#else
  return false;
#endif
}

std::span<const Rung> catalogue() {
  static const std::vector<Rung> rungs = whole_catalogue();
  return rungs;
}

Registration::Registration(const Rung& rung) {
  registered().push_back(&rung);
}

const Rung* find_rung(std::string_view id) {
  for (const Rung& rung : catalogue())
    if (rung.id == id) return &rung;
  return nullptr;
}

bool left_out(const Rung& rung, const std::vector<const Rung*>& of, const Problem& problem) {
  const auto is_backward = [](const Rung* each) {
    return has(each->capabilities, Capabilities::backward);
  };
  if (is_backward(&rung)) return !std::all_of(of.begin(), of.end(), is_backward);
  return rung.family == Family::decode && problem.seq_q > kFewQueries &&
         std::any_of(of.begin(), of.end(),
                     [&](const Rung* other) { return other->family != rung.family; });
}

std::vector<const Rung*> match_rungs(std::string_view word) {
  std::vector<const Rung*> matches;
  for (const Rung& rung : catalogue()) {
    const std::string_view short_name = rung.name.substr(rung.id.size() + 1);
    int number = 0, id_number = -1;
    const auto parsed = std::from_chars(word.data(), word.data() + word.size(), number);
    const bool is_number = parsed.ec == std::errc{} && parsed.ptr == word.data() + word.size();
    const auto id_parsed =
        std::from_chars(rung.id.data(), rung.id.data() + rung.id.size(), id_number);
    const bool id_is_number = id_parsed.ptr == rung.id.data() + rung.id.size();
    const bool on_ladder = rung.family != Family::own;
    if ((word == "all" && on_ladder) || word == to_string(rung.family) || word == rung.id ||
        word == rung.name || word == short_name ||
        (is_number && id_is_number && number == id_number))
      matches.push_back(&rung);
  }
  return matches;
}

std::optional<std::string> device_refusal(const Rung& rung, const DeviceDescription& device,
                                          const Instance* instance) {
  const std::string name(rung.name);
  if (!device.all_targets && !runs_on(rung.target, device.sm)) {
    const char* const only = rung.target == Target::sm_90a ? "9.0" : "10.0";
    return name +
           (rung.target == Target::sm_80
                ? " needs compute capability 8.0 or newer; "
                : std::string(" runs on compute capability ") + only +
                      " alone, because its code is for " + to_string(rung.target) + "; ") +
           device.name + " has " + capability_text(device.sm);
  }
  const auto fits = [&](const Instance* each) { return each->shared_bytes <= device.shared_bytes; };
  if (instance == nullptr || fits(instance)) return std::nullopt;
  const std::vector<const Instance*> tiles =
      rung.find_instances(instance->head_dim, rung.dtype_of(*instance), true);
  const auto other = std::find_if(tiles.begin(), tiles.end(), fits);
  return name + ": tile " + to_string(instance->tile) + " needs " +
         std::to_string(instance->shared_bytes) + " bytes of shared memory a block, " +
         device.name + " allows " + std::to_string(device.shared_bytes) +
         (other == tiles.end() ? "" : "; --tile " + to_string((*other)->tile) + " fits");
}

namespace {

/// `tile` is for the message where there is no such instance.
PlanResult plan_instance(const Rung& rung, const Instance* instance, std::string_view tile,
                         const Problem& problem, const DeviceDescription& device) {
  if (auto why = device_refusal(rung, device, instance)) return Unsupported{std::move(*why)};
  const auto refuse = [&](const std::string& why) {
    return Unsupported{std::string(rung.name) + ": " + why};
  };
  for (const auto& [what, value] : {std::pair{"batch", problem.batch},
                                    {"heads", problem.heads},
                                    {"seq_q", problem.seq_q},
                                    {"seq_kv", problem.seq_kv}}) {
    if (value < 1) return refuse(std::string(what) + " " + std::to_string(value) + " is below 1");
  }
  for (const auto& [what, value] : {std::pair{"batch", problem.batch}, {"heads", problem.heads}}) {
    if (value > kMaxGridYZ)
      return refuse(std::string(what) + " " + std::to_string(value) + " is above " +
                    std::to_string(kMaxGridYZ) + ", the grid's limit");
  }
  for (const auto& [what, value] :
       {std::pair{"seq_q", problem.seq_q}, {"seq_kv", problem.seq_kv}}) {
    if (value > INT32_MAX)
      return refuse(std::string(what) + " " + std::to_string(value) + " is above " +
                    std::to_string(INT32_MAX));
  }
  if (const std::string error = cache_error(problem); !error.empty()) return refuse(error);
  if (!rung.takes(problem.dtype))
    return refuse(std::string("dtype ") + to_string(problem.dtype) + " is not its " +
                  to_string(rung.dtype));
  if (has(rung.capabilities, backward) != problem.backward)
    return refuse(problem.backward ? "it computes no gradients" : "it computes gradients only");
  if (has(rung.capabilities, e4m3) && !problem.e4m3)
    return refuse(std::string("K and V of ") + to_string(problem.dtype) + " are not its " +
                  to_string(Dtype::e4m3));
  if (problem.seq_q > rung.most_queries())
    return refuse("seq_q " + std::to_string(problem.seq_q) + " is above " +
                  std::to_string(rung.most_queries()) +
                  ", the new queries against a cache of seq_kv keys that it takes");
  if (rung.find_instance(problem.head_dim, problem.dtype) == nullptr)
    return refuse("head_dim " + std::to_string(problem.head_dim) + " is not one of " +
                  join(rung.head_dims()));
  if (auto why = lacking(rung, problem, device)) return Unsupported{std::move(*why)};
  if (instance == nullptr) {
    std::string tiles;
    for (const Instance* each : rung.find_instances(problem.head_dim, problem.dtype, true))
      tiles += (tiles.empty() ? "" : ", ") + to_string(each->tile);
    return refuse("tile " + std::string(tile) + " is not one of " + tiles);
  }
  PlanResult result = rung.plan(problem, *instance, device);
  if (const auto* unsupported = std::get_if<Unsupported>(&result)) {
    const bool partial = !has(rung.capabilities, ragged) &&
                         refuse_partial_tiles(problem, instance->tile).has_value();
    return refuse(unsupported->reason +
                  (partial ? rungs_with(needs_of(problem) | ragged, problem, device,
                                        " takes any length", " take any length")
                           : ""));
  }
  for (const Launch& launch : std::get<LaunchPlan>(result).launches) {
    const auto [x, y, z] = launch.grid;
    if (x > INT32_MAX || y > kMaxGridYZ || z > kMaxGridYZ)
      return refuse("its grid of " + std::to_string(x) + " x " + std::to_string(y) + " x " +
                    std::to_string(z) + " thread blocks is above " + std::to_string(INT32_MAX) +
                    " x " + std::to_string(kMaxGridYZ) + " x " + std::to_string(kMaxGridYZ));
  }
  std::get<LaunchPlan>(result).deterministic = has(rung.capabilities, Capabilities::deterministic);
  return result;
}

}  // namespace

PlanResult make_plan(const Rung& rung, const Instance& instance, const Problem& problem,
                     const DeviceDescription& device) {
  return plan_instance(rung, &instance, {}, problem, device);
}

PlanResult make_plan(const Rung& rung, const Problem& problem, const DeviceDescription& device,
                     std::string_view tile) {
  return plan_instance(rung, rung.find_instance(problem.head_dim, problem.dtype, tile), tile,
                       problem, device);
}

}  // namespace fa
