#include "kernels/launch_plan.h"

namespace fa {

DeviceDescription h200_description() {
  return {.name = "NVIDIA H200",
          .sm = 90,
          .sms = 132,
          .l2_bytes = std::int64_t{60} << 20,
          .shared_bytes = 227 * 1024};
}

std::string to_string(const Tile& tile) {
  return std::to_string(tile.Br) + "x" + std::to_string(tile.Bc) + "w" + std::to_string(tile.warps);
}

std::optional<Unsupported> refuse_partial_tiles(const Problem& problem, const Tile& tile) {
  const auto refuse = [](const char* what, std::int64_t value, int multiple) {
    return Unsupported{std::string(what) + " " + std::to_string(value) +
                       " is not a multiple of the tile's " + std::to_string(multiple)};
  };
  if (problem.seq_q % tile.Br != 0) return refuse("seq_q", problem.seq_q, tile.Br);
  if (problem.seq_kv % tile.Bc != 0) return refuse("seq_kv", problem.seq_kv, tile.Bc);
  return std::nullopt;
}

}  // namespace fa
