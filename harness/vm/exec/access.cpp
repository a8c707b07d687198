// SPDX-License-Identifier: MIT
#include "exec/access.h"

#include "exec/poison.h"

namespace ptxvm {
namespace {

struct Area {
  std::byte* host;
  uint64_t base, bytes;
};

std::string access_name(Space space, bool writes, uint32_t bytes) {
  return std::string(name(space)) + (writes ? " write of " : " read of ") + std::to_string(bytes) +
         (bytes == 1 ? " byte" : " bytes");
}

// Names the variable that holds an offset, or the nearest one below it.
std::string describe_variable(const std::vector<Variable>& variables, uint64_t offset) {
  const Variable* best = nullptr;
  for (const Variable& v : variables) {
    if (v.offset <= offset) best = &v;
  }
  if (!best) return {};
  std::string text = "'" + best->name + "'";
  if (offset != best->offset) text += " +" + std::to_string(offset - best->offset);
  return " (" + text + ")";
}

// `where` as the message has it: an address, and what holds it.
[[noreturn]] void misaligned(Warp& w, const Op& op, int lane, const std::string& access,
                             const std::string& where, uint32_t alignment) {
  raise(w, op, FaultKind::kMisaligned, lane,
        "misaligned " + access + " at " + where + ": the address must be a multiple of " +
            std::to_string(alignment));
}

[[noreturn]] void outside_buffer(Warp& w, const Op& op, int lane, uint64_t address, uint32_t bytes,
                                 bool writes, const Buffer* b) {
  std::string text = access_name(Space::kGlobal, writes, bytes) + " out of bounds: ";
  if (!b) {
    text += "no buffer near " + hex(address, 16);
  } else if (!b->host) {
    text += "buffer '" + b->name + "' has been released";
  } else if (address < b->address) {
    text += std::to_string(b->address - address) + " bytes before buffer '" + b->name + "' (" +
            std::to_string(b->bytes) + " bytes)";
  } else {
    text += "at +" + std::to_string(address - b->address) + " of buffer '" + b->name + "' (" +
            std::to_string(b->bytes) + " bytes)";
  }
  raise(w, op, FaultKind::kOutOfBounds, lane, std::move(text));
}

void resolve_global(Warp& w, const Op& op, uint32_t mask, uint32_t bytes, uint32_t alignment,
                    bool writes, Request& request) {
  const Memory& memory = *w.cta->launch->memory;
  const Buffer* b = nullptr;
  for_lanes(mask, [&](int lane) {
    const uint64_t address = request.wide[lane];
    if (!b || address - b->address >= b->bytes) b = memory.find(address);
    const uint64_t offset = b ? address - b->address : 0;
    if (!b || !b->host || b->bytes < bytes || offset > b->bytes - bytes) [[unlikely]] {
      outside_buffer(w, op, lane, address, bytes, writes, b);
    }
    if (address & (alignment - 1)) [[unlikely]] {
      misaligned(
          w, op, lane, access_name(Space::kGlobal, writes, bytes),
          hex(address, 16) + " (+" + std::to_string(offset) + " of buffer '" + b->name + "')",
          alignment);
    }
    request.host[lane] = b->host + offset;
  });
}

[[noreturn]] void outside_area(Warp& w, const Op& op, Space space, int lane, uint64_t address,
                               uint32_t bytes, bool writes, const Area& area) {
  const Program& program = *w.cta->launch->program;
  std::string text = access_name(space, writes, bytes) + " out of bounds: at ";
  if (address >= area.base) {
    text += "+" + std::to_string(address - area.base);
  } else {
    text += "address " + std::to_string(address) + ", below the first (" +
            std::to_string(area.base) + ")";
  }
  text += "; there are " + std::to_string(area.bytes) + " bytes";
  if (space == Space::kShared && address >= area.base) {
    text += describe_variable(program.shared_variables, address - area.base);
  }
  if (space == Space::kLocal) text += describe_variable(program.local_variables, address);
  raise(w, op, FaultKind::kOutOfBounds, lane, std::move(text));
}

[[noreturn]] void misaligned_in(Warp& w, const Op& op, Space space, int lane, uint64_t address,
                                uint64_t base, uint32_t bytes, uint32_t alignment, bool writes) {
  const Program& program = *w.cta->launch->program;
  std::string where = "+" + std::to_string(address);
  if (space == Space::kShared) where += describe_variable(program.shared_variables, address - base);
  if (space == Space::kLocal) where += describe_variable(program.local_variables, address);
  misaligned(w, op, lane, access_name(space, writes, bytes), where, alignment);
}

// An instruction of .shared wants an address in it. Of a generic one cards use the lower half.
bool lower_generic(Warp& w, const Op& op, uint32_t mask, Request& request) {
  bool any = false;
  for_lanes(mask, [&](int lane) {
    uint64_t& address = request.wide[lane];
    if (window_of(address) != kSharedWindow) return;
    address = static_cast<uint32_t>(address);
    any = true;
  });
  if (any && w.cta->launch->observed) {
    const GenericAddressEvent e{id_of(w), op.instruction};
    notify(w, [&](Probe& p) { p.generic_address(e); });
  }
  return any;
}

// Shared memory of any block of the cluster. Addresses of the own block lose its rank.
void resolve_cluster(Warp& w, const Op& op, uint32_t mask, uint32_t bytes, uint32_t alignment,
                     bool writes, Request& request) {
  for_lanes(mask, [&](int lane) {
    if (request.wide[lane] > UINT32_MAX) lower_generic(w, op, mask, request);
    const auto address = static_cast<uint32_t>(request.wide[lane]);
    if (request.wide[lane] > UINT32_MAX) {
      raise(w, op, FaultKind::kOutOfBounds, lane,
            access_name(Space::kShared, writes, bytes) +
                " out of bounds: " + hex(request.wide[lane], 16) + " is no shared address");
    }
    Cta& home = block_of(w, op.instruction, lane, address);
    const uint64_t local = address & kInBlock, offset = local - home.shared_base;
    if (home.shared_bytes < bytes || offset > home.shared_bytes - bytes) [[unlikely]] {
      outside_area(w, op, Space::kShared, lane, local, bytes, writes,
                   {home.shared, home.shared_base, home.shared_bytes});
    }
    if (address & (alignment - 1)) [[unlikely]] {
      misaligned_in(w, op, Space::kShared, lane, local, home.shared_base, bytes, alignment, writes);
    }
    request.narrow[lane] = &home == w.cta ? static_cast<uint32_t>(local) : address;
    request.host[lane] = home.shared + offset;
  });
}

}  // namespace

void drop_rank(const Warp& w, uint64_t& address) {
  const auto low = static_cast<uint32_t>(address);
  if (low == address && rank_of(low, w.cta->rank) == w.cta->rank) address = low & kInBlock;
}

Cta& block_of(const Warp& w, uint32_t instruction, int lane, uint32_t address) {
  const uint32_t rank = rank_of(address, w.cta->rank);
  const auto blocks = w.cta->cluster->blocks;
  if (rank >= blocks.size()) {
    raise(w, instruction, FaultKind::kOutOfBounds, lane,
          "shared address " + hex(address, 8) + " is of block " + std::to_string(rank) +
              ", and the cluster has " + std::to_string(blocks.size()));
  }
  Cta& home = blocks[rank];
  if (home.live_threads == 0) {
    raise(w, instruction, FaultKind::kInvalid, lane,
          "block " + std::to_string(rank) +
              " of the cluster has exited; its shared memory must not be used any more");
  }
  return home;
}

void require_own_block(const Warp& w, const Op& op, uint32_t mask, const Request& request,
                       const char* what) {
  for_lanes(mask, [&](int lane) {
    if (request.narrow[lane] >> kBlockShift == 0) return;
    raise(w, op, FaultKind::kInvalid, lane,
          std::string(what) + " is in the shared memory of another block");
  });
}

void report_update(Warp& w, const Op& op, Space space, uint32_t mask, uint32_t bytes,
                   const Request& request, Ref old) {
  Unwritten unwritten;
  report_access(w, op, space, AccessKind::kAtomic, mask, bytes, request, {}, &unwritten);
  if (old != kNoRef && unwritten.lanes != 0)
    set_poison(w, old, 0, {0, 0, unwritten.lanes, op.instruction});
}

void resolve(Warp& w, const Op& op, Space space, uint32_t mask, uint32_t bytes, uint32_t alignment,
             bool writes, Request& request) {
  if (space == Space::kGlobal) {
    resolve_global(w, op, mask, bytes, alignment, writes, request);
    return;
  }
  if (space == Space::kSharedCluster) {
    resolve_cluster(w, op, mask, bytes, alignment, writes, request);
    return;
  }
  const LaunchState& launch = *w.cta->launch;
  if (space == Space::kShared && launch.pools.size() > 1) {
    for_lanes(mask, [&](int lane) { drop_rank(w, request.wide[lane]); });
  }
  Area area{};
  switch (space) {
    case Space::kShared:
      area = {w.cta->shared, w.cta->shared_base, w.cta->shared_bytes};
      break;
    case Space::kLocal:
      area = {w.local, 0, launch.program->local_bytes};
      break;
    case Space::kParam:
      area = {const_cast<std::byte*>(launch.parameters.data()), 0, launch.parameters.size()};
      break;
    default:
      area = {const_cast<std::byte*>(launch.constants.data()), 0, launch.constants.size()};
  }
  if (writes && (space == Space::kParam || space == Space::kConst)) {
    raise(w, op, FaultKind::kInvalid, __builtin_ctz(mask),
          std::string(name(space)) + " memory cannot be written");
  }
  const uint64_t last = area.bytes - bytes;  // wraps when the area is smaller than the access
  const uint64_t stride = space == Space::kLocal ? area.bytes : 0;
  bool lowered = false;
  for_lanes(mask, [&](int lane) {
    if (lowered) return;
    const uint64_t address = request.wide[lane];
    const uint64_t offset = address - area.base;
    if (offset > last || area.bytes < bytes) [[unlikely]] {
      if (space == Space::kShared && lower_generic(w, op, mask, request)) {
        lowered = true;
        return resolve(w, op, space, mask, bytes, alignment, writes, request);
      }
      outside_area(w, op, space, lane, address, bytes, writes, area);
    }
    if (address & (alignment - 1)) [[unlikely]] {
      misaligned_in(w, op, space, lane, address, area.base, bytes, alignment, writes);
    }
    request.narrow[lane] = static_cast<uint32_t>(address);
    request.host[lane] = area.host + offset + static_cast<uint64_t>(lane) * stride;
  });
}

}  // namespace ptxvm
