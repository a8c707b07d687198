#include "kernels/catalogue.h"

#include <algorithm>
#include <charconv>
#include <stdexcept>

namespace fa {

// Every kernel file defines its kernels_<name> (FA_RUNG of kernels/rung.h).
#define RUNG(name, ...) extern const RungKernels kernels_##name;
#include "kernels/catalogue.def"
#undef RUNG

namespace {

constexpr std::string_view id_of(std::string_view name) {
  return name.substr(0, name.find('_'));
}

const Rung kLadder[] = {
#define RUNG(name, parent, family, min_sm, dtype, causal, ragged, lse, diff_budget, idea) \
  {id_of(#name), #name,  parent, Family::family, min_sm, Dtype::dtype,                    \
   causal,       ragged, lse,    diff_budget,    idea,   &kernels_##name},
#include "kernels/catalogue.def"
#undef RUNG
};

// In a function, so that it is there before the static objects that fill it.
std::vector<Rung>& own_rungs() {
  static std::vector<Rung> rungs;
  return rungs;
}

std::vector<Rung> whole_catalogue() {
  std::vector<Rung> rungs(std::begin(kLadder), std::end(kLadder));
  // Static objects of several files are made in an order that is the linker's.
  std::sort(own_rungs().begin(), own_rungs().end(),
            [](const Rung& a, const Rung& b) { return a.name < b.name; });
  for (const Rung& own : own_rungs()) {
    for (const Rung& other : rungs) {
      if (own.id != other.id) continue;
      throw std::runtime_error("the rungs " + std::string(other.name) + " and " +
                               std::string(own.name) + " have the same id, '" +
                               std::string(own.id) + "'; rename one of them");
    }
    rungs.push_back(own);
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

}  // namespace

const char* to_string(Family family) {
  switch (family) {
    case Family::fp32:
      return "fp32";
    case Family::ampere:
      return "ampere";
    case Family::hopper:
      return "hopper";
    case Family::own:
      return "own";
  }
  return "";
}

std::vector<int> Rung::head_dims() const {
  std::vector<int> dims;
  for (const Instance& instance : kernels->instances) dims.push_back(instance.head_dim);
  std::sort(dims.begin(), dims.end());
  dims.erase(std::unique(dims.begin(), dims.end()), dims.end());
  return dims;
}

const Instance* Rung::find_instance(int head_dim, std::string_view tile) const {
  for (const Instance* instance : find_instances(head_dim, /*tuned=*/true))
    if (tile.empty() || to_string(instance->tile) == tile) return instance;
  return nullptr;
}

std::vector<const Instance*> Rung::find_instances(int head_dim, bool tuned) const {
  std::vector<const Instance*> found;
  for (const Instance& instance : kernels->instances)
    if (instance.head_dim == head_dim) found.push_back(&instance);
  if (!tuned || found.empty()) return found;
  for (const Instance& instance : kernels->tuned) {
    const bool known = std::any_of(found.begin(), found.end(), [&](const Instance* other) {
      return other->tile == instance.tile;
    });
    if (instance.head_dim == head_dim && !known) found.push_back(&instance);
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

OwnRung::OwnRung(const Rung& row) {
  own_rungs().push_back(row);
}

const Rung* find_rung(std::string_view id) {
  for (const Rung& rung : catalogue())
    if (rung.id == id) return &rung;
  return nullptr;
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

PlanResult make_plan(const Rung& rung, const Problem& problem, const DeviceDescription& device,
                     std::string_view tile) {
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
  if (problem.dtype != rung.dtype)
    return refuse(std::string("dtype ") + to_string(problem.dtype) + " is not its " +
                  to_string(rung.dtype));
  if (problem.causal && !rung.causal) return refuse("causal is not what this rung computes");
  if (problem.lse && !rung.lse) return refuse("the log-sum-exp is not what this rung writes");
  const Instance* instance = rung.find_instance(problem.head_dim);
  if (instance == nullptr)
    return refuse("head_dim " + std::to_string(problem.head_dim) + " is not one of " +
                  join(rung.head_dims()));
  if (!tile.empty()) {
    instance = rung.find_instance(problem.head_dim, tile);
    if (instance == nullptr) {
      std::string tiles;
      for (const Instance* i : rung.find_instances(problem.head_dim, true))
        tiles += (tiles.empty() ? "" : ", ") + to_string(i->tile);
      return refuse("tile " + std::string(tile) + " is not one of " + tiles);
    }
  }
  PlanResult result = rung.kernels->plan(problem, *instance, device);
  if (const auto* unsupported = std::get_if<Unsupported>(&result))
    return refuse(unsupported->reason);
  return result;
}

}  // namespace fa
