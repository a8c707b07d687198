#include "kernels/catalogue.h"

#include <algorithm>
#include <charconv>

namespace fa {

namespace {

constexpr std::string_view id_of(std::string_view name) {
  return name.substr(0, name.find('_'));
}

const Rung kCatalogue[] = {
#define RUNG(name, parent, family, status, min_sm, dtype, causal, ragged, lse, diff_budget, idea) \
  {id_of(#name), #name,  parent, Family::family, Status::status, min_sm,         Dtype::dtype,    \
   causal,       ragged, lse,    diff_budget,    idea,           &kernels_##name},
#include "kernels/catalogue.def"
#undef RUNG
};

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
  }
  return "";
}

const char* to_string(Status status) {
  switch (status) {
    case Status::step:
      return "step";
    case Status::flat:
      return "flat";
    case Status::regression:
      return "regression";
    case Status::branch:
      return "branch";
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

const Instance* Rung::find_instance(int head_dim, bool masked, std::string_view tile) const {
  for (const Instance& instance : kernels->instances)
    if (instance.takes(head_dim, masked) && (tile.empty() || to_string(instance.tile) == tile))
      return &instance;
  return nullptr;
}

std::span<const Rung> catalogue() {
  return kCatalogue;
}

const Rung* find_rung(std::string_view id) {
  for (const Rung& rung : kCatalogue)
    if (rung.id == id) return &rung;
  return nullptr;
}

std::vector<const Rung*> match_rungs(std::string_view word) {
  std::vector<const Rung*> matches;
  for (const Rung& rung : kCatalogue) {
    const std::string_view short_name = rung.name.substr(rung.id.size() + 1);
    int number = 0, id_number = -1;
    const auto parsed = std::from_chars(word.data(), word.data() + word.size(), number);
    const bool is_number = parsed.ec == std::errc{} && parsed.ptr == word.data() + word.size();
    const auto id_parsed =
        std::from_chars(rung.id.data(), rung.id.data() + rung.id.size(), id_number);
    const bool id_is_number = id_parsed.ptr == rung.id.data() + rung.id.size();
    if (word == "all" || word == to_string(rung.family) || word == rung.id || word == rung.name ||
        word == short_name || (is_number && id_is_number && number == id_number))
      matches.push_back(&rung);
  }
  return matches;
}

PlanResult make_plan(const Rung& rung, const Problem& problem, std::string_view tile) {
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
  const Instance* instance = rung.find_instance(problem.head_dim, problem.causal);
  if (instance == nullptr)
    return refuse("head_dim " + std::to_string(problem.head_dim) + " is not one of " +
                  join(rung.head_dims()));
  if (!tile.empty()) {
    instance = rung.find_instance(problem.head_dim, problem.causal, tile);
    if (instance == nullptr) {
      std::string tiles;
      for (const Instance& i : rung.kernels->instances)
        if (i.takes(problem.head_dim, problem.causal))
          tiles += (tiles.empty() ? "" : ", ") + to_string(i.tile);
      return refuse("tile " + std::string(tile) + " is not one of " + tiles);
    }
  }
  PlanResult result = rung.kernels->plan(problem, *instance);
  if (const auto* unsupported = std::get_if<Unsupported>(&result))
    return refuse(unsupported->reason);
  return result;
}

}  // namespace fa
