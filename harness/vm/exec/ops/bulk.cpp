// SPDX-License-Identifier: MIT
// Bulk copies and tensor copies (PTX ISA 9.7.9.25.4 and 5), reductions by them, and what else
// completes on an mbarrier: st.async and red.async. Each lane issues a copy of its own. It is done
// as late as allowed: a load when no warp can go on without it, a store when a wait asks for its
// group. Copies into the shared memory of another block are loads whose source is not global.
#include <algorithm>
#include <array>
#include <cstring>

#include "exec/access.h"
#include "exec/async.h"
#include "exec/grid.h"
#include "exec/ops/lanes.h"
#include "exec/ops/update.h"
#include "memory/tensor_copy.h"
#include "memory/tensor_map.h"

namespace ptxvm {
namespace {

constexpr uint32_t kTensorAlignment = 128;

// A copy between its issue and its end. Plain copies are boxes of one row.
class BulkCopy : public PendingWork {
 public:
  WarpId warp;
  uint32_t instruction = 0, lane = 0;
  BulkKind kind = BulkKind::kLoad;
  bool tensor = false;
  uint64_t number = 0, group = 0;
  uint16_t home = 0;                  // rank of the block whose shared memory it writes or reads
  uint16_t mbarrier_home = 0;         // rank of the block that holds the mbarrier
  bool first = true;                  // of a multicast
  uint32_t shared = 0, mbarrier = 0;  // in these blocks
  std::byte* global = nullptr;        // base of the tensor, or the source or destination
  bool apart = false;                 // the source is not global memory
  SharedRange source;                 // but that of the block that has issued it
  std::array<std::byte, 16> value{};  // the source where `global` is null
  ops::ElementUpdate update;          // without a function: what stood there is replaced
  BoxCopy box;
  std::vector<BoxRow> rows;
  uint32_t total = 0;  // bytes

  void finish(Cta& cta) override {
    if (home != warp.cta_rank) {
      block_of(cta.cluster->blocks[warp.cta_rank].warps[warp.warp], instruction,
               static_cast<int>(lane), cluster_address(home, shared));
    }
    for (const BoxRow& row : rows) copy_row(cta, row);
    report(cta, BulkAction::kLand);
    if (kind == BulkKind::kLoad) {
      const uint32_t each = bytes_of_16(box.map.element);  // gaps do not count
      complete_transaction(cta.cluster->blocks[mbarrier_home], warp, instruction, mbarrier,
                           each == 16 ? total : total / 16 * each);
    }
  }

  bool is_store(uint32_t of_warp, uint32_t of_lane, uint64_t end) const override {
    return kind == BulkKind::kStore && warp.warp == of_warp && lane == of_lane && group < end;
  }

  void report(const Cta& cta, BulkAction action) const {
    if (!cta.launch->observed) return;
    BulkEvent e;
    e.warp = warp;
    e.instruction = instruction;
    e.action = action;
    e.kind = kind;
    e.lane = lane;
    e.copy = number;
    e.group = group;
    e.tensor = tensor;
    e.mbarrier = mbarrier;
    e.home = home;
    e.mbarrier_home = mbarrier_home;
    e.bytes = total;
    const std::vector<SharedRange> ranges = shared_ranges();
    e.shared = ranges;
    std::vector<GlobalRange> global_ranges;
    e.source = source;
    e.combines = update.combine != nullptr;
    if (first && !apart) {
      for (const BoxRow& row : rows) {
        if (row.inside != 0)
          global_ranges.push_back({box.map.base + row.global_offset, row.inside});
        if (!cta.launch->ordered && !global_ranges.empty()) break;
      }
    }
    e.global = global_ranges;
    if (action == BulkAction::kIssue && first && !apart) {
      for (const BoxRow& row : rows) e.global_bytes += row.inside;
      e.sectors = sectors_of(box, rows);
    }
    for (const auto& probe : *cta.probes) probe->bulk(e);
  }

 private:
  // A load fills the whole box; a store reads only what the tensor has.
  std::vector<SharedRange> shared_ranges() const {
    if (kind == BulkKind::kPrefetch) return {};
    if (kind == BulkKind::kLoad) return {{shared, total}};
    std::vector<SharedRange> ranges;
    for (const BoxRow& row : rows) {
      for_chunks(box, row, shared, [&](uint32_t offset, uint32_t address, uint32_t bytes) {
        const auto [begin, end] = inside(row, offset, bytes);
        if (end == begin) return;
        const uint32_t at = address + (begin - offset);
        if (!ranges.empty() && ranges.back().address + ranges.back().bytes == at) {
          ranges.back().bytes += end - begin;
        } else {
          ranges.push_back({at, end - begin});
        }
      });
    }
    return ranges;
  }

  // The part of a chunk of a row that the tensor has, in bytes of the row.
  static std::pair<uint32_t, uint32_t> inside(const BoxRow& row, uint32_t offset, uint32_t bytes) {
    const uint32_t begin = std::clamp(row.first, offset, offset + bytes);
    return {begin, std::clamp(row.first + row.inside, begin, offset + bytes)};
  }

  void copy_row(const Cta& cta, const BoxRow& row) const {
    if (kind == BulkKind::kStore && row.inside == 0) return;
    const std::byte* const in = (global ? global : value.data()) + row.global_offset;
    for_chunks(box, row, shared, [&](uint32_t offset, uint32_t address, uint32_t bytes) {
      std::byte* const at = cta.shared + (address - cta.shared_base);
      const auto [begin, end] = inside(row, offset, bytes);
      if (kind == BulkKind::kStore) {
        if (end > begin) {
          move(const_cast<std::byte*>(in) + (begin - row.first), at + (begin - offset),
               end - begin);
        }
        return;
      }
      if (end - begin != bytes) std::memset(at, 0, bytes);
      if (end > begin) move(at + (begin - offset), in + (begin - row.first), end - begin);
    });
  }

  void move(std::byte* to, const std::byte* from, uint32_t bytes) const {
    if (!update.combine) {
      std::memcpy(to, from, bytes);
      return;
    }
    for (uint32_t i = 0; i + update.bytes <= bytes; i += update.bytes) {
      update.combine(to + i, from + i, nullptr);
    }
  }
};

constexpr uint8_t kToAll = 0xff;  // a multicast to every block of the cluster

struct Form {
  BulkKind kind = BulkKind::kLoad;
  uint8_t count = 1;        // coordinates in a tensor, elements of st.async
  uint8_t multicast = 0;    // where its mask is in the list, or kToAll
  bool paired : 1 = false;  // the mbarrier may be in either block of a pair
  bool reduces : 1 = false;
  bool from_shared : 1 = false;  // the source of a load
  bool four_rows : 1 = false;    // tile::gather4 and tile::scatter4
  ops::Update update = {};       // of a reduction
  Type type = Type::kNone;       // of a reduction or st.async
};

// What the lanes of one request have in common.
struct Issue {
  Warp& w;
  const Op& op;
  Form form;
  bool tensor;
};

[[noreturn]] void invalid(const Issue& i, int lane, std::string message) {
  raise(i.w, i.op, FaultKind::kInvalid, lane, std::move(message));
}

// Without clusters an H200 takes st.async, red.async and copies from shared to shared memory for
// illegal instructions, even towards the thread's own block.
void require_clusters(const Issue& i) {
  if (i.w.cta->launch->clustered) return;
  invalid(i, __builtin_ctz(i.w.mask),
          "the launch has no clusters, which st.async, red.async and copies from shared to shared "
          "memory need, even within a block");
}

// Addresses of an operand, which must be in shared memory: of any block of the cluster for loads.
void shared_addresses(const Issue& i, size_t position, uint32_t alignment, Request& request,
                      uint32_t bytes = 8) {
  lane_addresses(i.w, i.op.list[position], i.op.list[position + 1], request.wide);
  const Space space = i.form.kind == BulkKind::kLoad ? Space::kSharedCluster : Space::kShared;
  resolve(i.w, i.op, space, i.w.mask, bytes, alignment, true, request);
}

// The rest of a shared area whose first bytes have been checked.
void check_shared(const Issue& i, int lane, uint32_t address, uint64_t bytes) {
  const Cta& cta = block_of(i.w, i.op.instruction, lane, address);
  address &= kInBlock;
  if (address - cta.shared_base + bytes > cta.shared_bytes) {
    raise(i.w, i.op, FaultKind::kOutOfBounds, lane,
          "the copy of " + std::to_string(bytes) + " bytes at shared +" +
              std::to_string(address - cta.shared_base) + " goes out of bounds; there are " +
              std::to_string(cta.shared_bytes) + " bytes");
  }
}

std::unique_ptr<BulkCopy> start(const Issue& i, int lane) {
  auto copy = std::make_unique<BulkCopy>();
  copy->warp = id_of(i.w);
  copy->instruction = i.op.instruction;
  copy->lane = static_cast<uint32_t>(lane);
  copy->kind = i.form.kind;
  copy->home = i.w.cta->rank;
  copy->tensor = i.tensor;
  if (i.form.kind != BulkKind::kPrefetch) copy->number = i.w.cta->async.copies++;
  copy->group = i.w.bulk_groups[static_cast<size_t>(lane)];
  return copy;
}

void launch(const Issue& i, std::unique_ptr<BulkCopy> copy) {
  copy->report(*i.w.cta, BulkAction::kIssue);
  if (i.form.kind == BulkKind::kPrefetch) return;
  Cta& home = i.w.cta->cluster->blocks[copy->home];
  home.pending.push_back(std::move(copy));
}

// A load goes to one block, which also holds the barrier, or to the same place in several.
void send(const Issue& i, int lane, std::unique_ptr<BulkCopy> copy, const Request& to,
          const Request& counting) {
  if (i.form.kind != BulkKind::kLoad) return launch(i, std::move(copy));
  const uint32_t shared = to.narrow[lane], barrier = counting.narrow[lane];
  Warp& w = i.w;
  const auto blocks = w.cta->cluster->blocks;
  copy->shared = shared & kInBlock;
  copy->mbarrier = barrier & kInBlock;
  const uint32_t home = rank_of(shared, w.cta->rank), with = rank_of(barrier, w.cta->rank);
  uint32_t mask = 1u << home;
  if (i.form.paired ? with / 2 != home / 2 : with != home) {
    invalid(i, lane,
            "the copy goes to block " + std::to_string(home) +
                " of the cluster, its mbarrier is in " +
                (i.form.paired ? "block " + std::to_string(with) + ", which is not of the same pair"
                               : std::string("another one")));
  }
  if (i.form.multicast == kToAll) {
    mask = (1u << blocks.size()) - 1;
  } else if (i.form.multicast != 0) {
    mask = w.at<uint32_t>(i.op.list[i.form.multicast])[lane] & 0xffff;
    if (mask == 0 || mask >> blocks.size() != 0) {
      invalid(i, lane,
              "a multicast to the blocks " + hex(mask, 4) + " of a cluster of " +
                  std::to_string(blocks.size()));
    }
  }
  bool first = true;
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const auto rank = static_cast<uint32_t>(__builtin_ctz(rest));
    // Of each pair that the copy goes to the block of the same parity.
    const uint32_t barrier_rank = i.form.paired ? rank / 2 * 2 + with % 2 : rank;
    block_of(w, i.op.instruction, lane, cluster_address(rank, copy->shared));
    Cta& target = block_of(w, i.op.instruction, lane, cluster_address(barrier_rank, 0));
    require_mbarrier(w, i.op, lane, target, copy->mbarrier);
    copy->mbarrier_home = static_cast<uint16_t>(barrier_rank);
    auto own = std::make_unique<BulkCopy>(*copy);
    own->home = static_cast<uint16_t>(rank);
    own->first = first;
    launch(i, std::move(own));
    first = false;
  }
}

// A copy of which nothing is inside. An H100 has been seen to access the address of coordinates 0
// all the same.
void require_base(const Issue& i, int lane, Address base) {
  if (i.form.kind == BulkKind::kPrefetch) return;
  const Buffer* b = i.w.cta->launch->memory->find(base);
  if (b && b->host && base >= b->address && base < b->address + b->bytes) return;
  raise(i.w, i.op, FaultKind::kOutOfBounds, lane,
        "the box lies wholly outside of the tensor, and cards access the address of coordinates 0 "
        "all the same: " +
            hex(base, 16) + ", where there is no buffer");
}

// Checks that what the tensor has of the box lies in one buffer.
void resolve_tensor(const Issue& i, int lane, BulkCopy& copy) {
  copy.rows = copy.box.rows();
  uint64_t low = UINT64_MAX, high = 0;
  for (const BoxRow& row : copy.rows) {
    if (row.inside == 0) continue;
    low = std::min(low, row.global_offset);
    high = std::max(high, row.global_offset + row.inside);
  }
  const Address base = copy.box.map.base;
  if (low > high) return require_base(i, lane, base);
  const Buffer* b = i.w.cta->launch->memory->find(base + low);
  if (!b || !b->host || base + low < b->address || base + high > b->address + b->bytes) {
    raise(i.w, i.op, FaultKind::kOutOfBounds, lane,
          "the tensor map reaches out of bounds: its box covers bytes " + std::to_string(low) +
              " to " + std::to_string(high) + " from " + hex(base, 16) +
              (b ? ", in buffer '" + b->name + "' (" + std::to_string(b->bytes) + " bytes)"
                 : ", where there is no buffer"));
  }
  // Counted from the box: the map's base may lie outside of the buffer.
  for (BoxRow& row : copy.rows)
    if (row.inside != 0) row.global_offset -= low;
  copy.box.map.base += low;
  copy.global = b->host + (base + low - b->address);
}

// The tensor map and the coordinates at `position` of the operand list.
void read_map(const Issue& i, size_t position, Request& request, std::array<BoxCopy, 32>& boxes) {
  const uint32_t dimensions = i.form.four_rows ? 2 : i.form.count;
  lane_addresses(i.w, i.op.list[position], i.op.list[position + 1], request.wide);
  for_spaces(Space::kGeneric, i.w.mask, request, [&](Space space, uint32_t lanes) {
    resolve(i.w, i.op, space, lanes, kTensorMapBytes, kTensorMapAlignment, false, request);
  });
  for_lanes(i.w.mask, [&](int lane) {
    const auto map = decode_tensor_map({request.host[lane], kTensorMapBytes});
    if (!map) invalid(i, lane, "there is no tensor map at this address");
    // The host's maps are good; one that the kernel has edited may lack something.
    if (const std::string problem = problem_of(*map); !problem.empty()) {
      invalid(i, lane, "the tensor map cannot be used: " + problem);
    }
    if (map->rank != dimensions) {
      invalid(i, lane,
              "the tensor map has " + std::to_string(map->rank) + " dimensions, the instruction " +
                  std::to_string(dimensions));
    }
    if (i.form.four_rows && map->box[1] != 1) {
      invalid(i, lane,
              "the tensor map's box has " + std::to_string(map->box[1]) +
                  " rows; a copy of four rows takes one of 1");
    }
    BoxCopy& box = boxes[static_cast<size_t>(lane)];
    box.map = *map;
    box.four_rows = i.form.four_rows;
    const uint32_t span[] = {0, 32, 64, 128, 128};
    const uint32_t wanted = span[static_cast<size_t>(map->swizzle)];
    if (wanted != 0 && box.shared_row_bytes() != wanted) {
      invalid(i, lane,
              "a swizzled box has rows of " + std::to_string(box.shared_row_bytes()) +
                  " bytes; only rows of " + std::to_string(wanted) +
                  ", as wide as the swizzle, are modelled");
    }
    for (uint32_t d = 0; d < i.form.count; ++d) {
      box.at[d] = static_cast<int32_t>(i.w.at<uint32_t>(i.op.list[position + 2 + d])[lane]);
    }
    if (const auto bits = static_cast<int32_t>(part_bits(map->element)); bits != 0) {
      if (box.at[0] % 16 != 0) {
        invalid(i, lane,
                "the first coordinate of elements of " + std::to_string(bits) +
                    " bits is a multiple of 16, not " + std::to_string(box.at[0]));
      }
      box.at[0] = box.at[0] / 8 * bits;
    }
  });
}

// The tensor map says what is combined.
ops::ElementUpdate update_of_tensor(const Issue& i, int lane, const TensorMap& map) {
  constexpr Type kTypes[] = {Type::kNone, Type::kNone, Type::kU32,  Type::kS32,  Type::kU64,
                             Type::kS64,  Type::kF16,  Type::kF32,  Type::kNone, Type::kF64,
                             Type::kBf16, Type::kNone, Type::kNone, Type::kNone};
  const auto element = static_cast<size_t>(map.element);
  Type type = element < std::size(kTypes) ? kTypes[element] : Type::kNone;
  if (map.element == MapElement::kUnknown) {
    if (i.form.update > ops::Update::kXor) {
      invalid(i, lane, "the tensor map does not say the type of its elements, which this needs");
    }
    type = map.element_bytes == 8 ? Type::kB64 : Type::kB32;
  }
  const ops::ElementUpdate update = ops::element_update(i.form.update, type);
  if (!update.combine || update.bytes != map.element_bytes) {
    invalid(i, lane, "there is no such reduction of elements of the tensor map's type");
  }
  return update;
}

// Operands: [shared], [map, {coordinates}], [mbarrier] for a load; [map, ...], [shared] for a
// store; [map, ...] for a prefetch. Of four rows the coordinates are the first column and the rows.
Step tensor(Warp& w, const Op& op) {
  const Issue i{w, op, op.aux.as<Form>(), true};
  const uint32_t coordinates = i.form.count;
  const bool load = i.form.kind == BulkKind::kLoad;
  auto boxes = std::make_unique<std::array<BoxCopy, 32>>();
  Request map, shared, barrier;
  read_map(i, load ? 2 : 0, map, *boxes);
  if (i.form.kind != BulkKind::kPrefetch) {
    shared_addresses(i, load ? 0 : 2 + coordinates, kTensorAlignment, shared);
  }
  if (load) shared_addresses(i, 4 + coordinates, 8, barrier);
  for_lanes(w.mask, [&](int lane) {
    auto copy = start(i, lane);
    copy->box = (*boxes)[static_cast<size_t>(lane)];
    copy->total = static_cast<uint32_t>(copy->box.bytes());
    if (i.form.kind != BulkKind::kPrefetch) {
      copy->shared = shared.narrow[lane];
      check_shared(i, lane, copy->shared, copy->total);
    }
    if (i.form.reduces) copy->update = update_of_tensor(i, lane, copy->box.map);
    resolve_tensor(i, lane, *copy);
    send(i, lane, std::move(copy), shared, barrier);
  });
  return Step::kNext;
}

void plain_box(BulkCopy& copy, uint32_t bytes) {
  copy.total = bytes;
  copy.box.map.element_bytes = 1;
  copy.box.map.rank = 1;
  copy.box.map.box[0] = bytes;
  copy.rows = {BoxRow{0, 0, bytes, 0}};
}

// Operands: [shared], [global], size, [mbarrier] for a load; [global], [shared], size for a store;
// [global], size for a prefetch. The source of a load may be shared memory too.
Step plain(Warp& w, const Op& op) {
  const Issue i{w, op, op.aux.as<Form>(), false};
  const bool load = i.form.kind == BulkKind::kLoad, prefetch = i.form.kind == BulkKind::kPrefetch;
  const bool peer = i.form.from_shared;
  if (peer) require_clusters(i);
  const uint32_t* sizes = w.at<uint32_t>(op.list[prefetch ? 2 : 4]);
  Request shared, barrier;
  if (!prefetch) shared_addresses(i, load ? 0 : 2, 16, shared);
  if (load) shared_addresses(i, 5, 8, barrier);
  for_lanes(w.mask, [&](int lane) {
    const uint32_t bytes = sizes[lane];
    if (bytes == 0 || bytes % 16 != 0) {
      invalid(i, lane,
              "a bulk copy of " + std::to_string(bytes) + " bytes; the size is a multiple of 16");
    }
    Request other;
    lane_addresses(w, op.list[load ? 2 : 0], op.list[load ? 3 : 1], other.wide);
    resolve(w, op, peer ? Space::kShared : Space::kGlobal, 1u << lane, bytes, 16,
            i.form.kind == BulkKind::kStore, other);
    auto copy = start(i, lane);
    plain_box(*copy, bytes);
    copy->global = other.host[lane];
    copy->apart = peer;
    if (peer) copy->source = {other.narrow[lane], bytes};
    copy->box.map.base = other.wide[lane];
    if (i.form.reduces) copy->update = ops::element_update(i.form.update, i.form.type);
    if (!prefetch) {
      copy->shared = shared.narrow[lane];
      check_shared(i, lane, copy->shared, bytes);
    }
    send(i, lane, std::move(copy), shared, barrier);
  });
  return Step::kNext;
}

// st.async and red.async: [shared], the elements, [mbarrier].
Step elements(Warp& w, const Op& op) {
  const Issue i{w, op, op.aux.as<Form>(), false};
  require_clusters(i);
  const uint32_t count = i.form.count;
  const auto each = static_cast<uint32_t>(bits(i.form.type) / 8), bytes = each * count;
  Request shared, barrier;
  shared_addresses(i, 0, bytes, shared, bytes);
  shared_addresses(i, 2 + count, 8, barrier);
  for_lanes(w.mask, [&](int lane) {
    auto copy = start(i, lane);
    plain_box(*copy, bytes);
    copy->apart = true;
    for (uint32_t k = 0; k < count; ++k) {
      const Ref ref = op.list[2 + k];
      const uint64_t value =
          ref & kRefWide ? w.at<uint64_t>(ref)[lane] : uint64_t{w.at<uint32_t>(ref)[lane]};
      std::memcpy(copy->value.data() + k * each, &value, each);
    }
    if (i.form.reduces) copy->update = ops::element_update(i.form.update, i.form.type);
    send(i, lane, std::move(copy), shared, barrier);
  });
  return Step::kNext;
}

// What clusterlaunchcontrol.try_cancel answers: where the first block of the cancelled cluster
// would have been, and whether there is one.
using Response = std::array<uint32_t, 4>;

// Operands: [shared] for the response, [mbarrier].
Step cancel(Warp& w, const Op& op) {
  const Issue i{w, op, op.aux.as<Form>(), false};
  Request shared, barrier;
  shared_addresses(i, 0, 16, shared, 16);
  shared_addresses(i, 2, 8, barrier);
  LaunchState& launch = *w.cta->launch;
  for_lanes(w.mask, [&](int lane) {
    if (w.refused) {
      invalid(i, lane, "the warp has seen that a request to cancel failed, and makes another one");
    }
    auto copy = start(i, lane);
    plain_box(*copy, 16);
    copy->apart = true;
    Response response{~0u, ~0u, ~0u, 0};
    if (const auto found = launch.work->cancel(w.cta->cluster->position)) {
      const Dim3 at = first_block(launch, launch.work->index_of(*found));
      response = {at.x, at.y, at.z, 1};
    }
    std::memcpy(copy->value.data(), response.data(), sizeof response);
    send(i, lane, std::move(copy), shared, barrier);
  });
  return Step::kNext;
}

// One of the four words of a response, which is in two registers of 64 bits.
uint32_t word_of(const Warp& w, const Ref* response, uint32_t word, int lane) {
  return static_cast<uint32_t>(w.at<uint64_t>(response[word / 2])[lane] >> word % 2 * 32);
}

// Operands: predicate, response.
Step is_cancelled(Warp& w, const Op& op) {
  uint32_t yes = 0;
  for_lanes(w.mask, [&](int lane) {
    if (word_of(w, &op.r[1], 3, lane) != 0) yes |= 1u << lane;
  });
  w.refused |= (w.mask & ~yes) != 0;
  w.set_predicate(op.r[0], yes);
  return Step::kNext;
}

// Operands: a word, response. The PTX ISA does not say what a failed request gives: here all ones.
Step first_word(Warp& w, const Op& op) {
  uint32_t* d = w.at<uint32_t>(op.r[0]);
  const auto word = op.aux.as<uint32_t>();
  for_lanes(w.mask, [&](int lane) { d[lane] = word_of(w, &op.r[1], word, lane); });
  return Step::kNext;
}

// Operands: four words, response. The fourth word has no meaning.
Step first_words(Warp& w, const Op& op) {
  for (uint32_t word = 0; word < 4; ++word) {
    uint32_t* d = w.at<uint32_t>(op.list[word]);
    for_lanes(w.mask,
              [&](int lane) { d[lane] = word == 3 ? ~0u : word_of(w, op.list + 4, word, lane); });
  }
  return Step::kNext;
}

void report_group(const Warp& w, const Op& op, int lane, BulkAction action, uint64_t group,
                  bool read_only) {
  BulkEvent e;
  e.warp = id_of(w);
  e.instruction = op.instruction;
  e.action = action;
  e.kind = BulkKind::kStore;
  e.lane = static_cast<uint32_t>(lane);
  e.group = group;
  e.read_only = read_only;
  notify(w, [&](Probe& p) { p.bulk(e); });
}

template <bool kObserved>
Step commit(Warp& w, const Op& op) {
  for_lanes(w.mask, [&](int lane) {
    const uint64_t group = w.bulk_groups[static_cast<size_t>(lane)]++;
    if constexpr (kObserved) report_group(w, op, lane, BulkAction::kCommit, group, false);
  });
  return Step::kNext;
}

template <bool kObserved>
Step wait(Warp& w, const Op& op) {
  Cta& cta = *w.cta;
  const uint64_t allowed = op.r[0];
  for_lanes(w.mask, [&](int lane) {
    const uint64_t committed = w.bulk_groups[static_cast<size_t>(lane)];
    const uint64_t end = committed - std::min(committed, allowed);
    for (size_t k = 0; k < cta.pending.size();) {
      if (!cta.pending[k]->is_store(w.index, static_cast<uint32_t>(lane), end)) {
        ++k;
        continue;
      }
      const std::unique_ptr<PendingWork> work = std::move(cta.pending[k]);
      cta.pending.erase(cta.pending.begin() + static_cast<std::ptrdiff_t>(k));
      work->finish(cta);
    }
    if constexpr (kObserved) {
      report_group(w, op, lane, BulkAction::kWait, allowed, op.aux.as<bool>());
    }
  });
  return Step::kNext;
}

// The value is opaque: a cache hint has no effect here.
Step make_policy(Warp& w, const Op& op) {
  uint64_t* d = w.at<uint64_t>(op.r[0]);
  for_lanes(w.mask, [&](int lane) { d[lane] = uint64_t{1} << 60; });
  return Step::kNext;
}

Step nothing(Warp&, const Op&) {
  return Step::kNext;
}

void read_space(Modifiers& m) {
  m.choice({"shared::cluster", "shared::cta"});
  m.ignore_cache_hints();
}

Bound tensor_code(Modifiers& m, Form form) {
  read_space(m);
  form.four_rows = m.choice({"tile", "tile::gather4", "tile::scatter4"}) > 0;
  const int dimensions = m.choice({"1d", "2d", "3d", "4d", "5d"}) + 1;
  form.paired = m.choice({"cta_group::1", "cta_group::2"}) == 1;
  form.count = static_cast<uint8_t>(form.four_rows ? 1 + BoxCopy::kGathered : dimensions);
  if (m.flag("multicast::cluster")) form.multicast = static_cast<uint8_t>(form.count + 6);
  return ops::code(tensor, form);
}

Bound plain_code(Modifiers& m, Form form) {
  read_space(m);
  if (m.flag("multicast::cluster")) form.multicast = 7;
  return ops::code(plain, form);
}

Form reduction(Modifiers& m, BulkKind kind) {
  Form form{kind};
  form.reduces = true;
  form.update = ops::update_of(m);
  form.type = m.type();
  return form;
}

}  // namespace

namespace ops {

Bound tensor_load(Modifiers& m) {
  return tensor_code(m, {BulkKind::kLoad});
}
Bound tensor_store(Modifiers& m) {
  return tensor_code(m, {BulkKind::kStore});
}
Bound tensor_prefetch(Modifiers& m) {
  return tensor_code(m, {BulkKind::kPrefetch});
}
Bound bulk_load(Modifiers& m) {
  return plain_code(m, {BulkKind::kLoad});
}
Bound bulk_store(Modifiers& m) {
  return plain_code(m, {BulkKind::kStore});
}
Bound bulk_prefetch(Modifiers& m) {
  return plain_code(m, {BulkKind::kPrefetch});
}

// Between the shared memories of two blocks.
Bound bulk_peer(Modifiers& m) {
  Form form;
  form.from_shared = true;
  return plain_code(m, form);
}
Bound bulk_reduce(Modifiers& m) {
  return plain_code(m, reduction(m, BulkKind::kStore));
}
Bound bulk_reduce_peer(Modifiers& m) {
  Form form = reduction(m, BulkKind::kLoad);
  form.from_shared = true;
  return plain_code(m, form);
}
// The tensor map says the type.
Bound tensor_reduce(Modifiers& m) {
  return tensor_code(m, reduction(m, BulkKind::kStore));
}

Bound store_async(Modifiers& m) {
  m.flag("weak");
  m.flag("shared::cluster");
  Form form;
  form.count = static_cast<uint8_t>(m.vector());
  form.type = m.type();
  return code(elements, form);
}
Bound reduce_async(Modifiers& m) {
  m.flag("shared::cluster");
  return code(elements, reduction(m, BulkKind::kLoad));
}

Bound try_cancel(Modifiers& m) {
  m.flag("shared::cta");
  Form form;
  if (m.flag("multicast::cluster::all")) form.multicast = kToAll;
  return code(cancel, form);
}
Bound is_canceled(Modifiers&) {
  return code(is_cancelled);
}
Bound first_ctaid(Modifiers& m) {
  if (m.vector() != 1) return code(first_words);
  return code(first_word, static_cast<uint32_t>(m.choice(
                              {"get_first_ctaid::x", "get_first_ctaid::y", "get_first_ctaid::z"})));
}

Bound bulk_commit(Modifiers&) {
  return {commit<false>, commit<true>};
}
Bound bulk_wait(Modifiers& m) {
  return {wait<false>, wait<true>, m.flag("read")};
}

Bound prefetch_tensormap(Modifiers& m) {
  m.choice({"const", "param"});
  return code(nothing);
}

Bound createpolicy(Modifiers& m) {
  m.ignore_cache_hints();
  return code(make_policy);
}

// What the range covers does not matter here, where no cache is.
Bound createpolicy_range(Modifiers& m) {
  m.flag("global");
  m.ignore_cache_hints();
  return code([](Warp& w, const Op& op) {
    const uint32_t* primary = w.at<uint32_t>(op.r[3]);
    const uint32_t* total = w.at<uint32_t>(op.r[4]);
    for_lanes(w.mask, [&](int lane) {
      if (primary[lane] <= total[lane]) return;
      raise(w, op, FaultKind::kInvalid, lane,
            "the primary range has " + std::to_string(primary[lane]) +
                " bytes; it is a part of the whole, which has " + std::to_string(total[lane]));
    });
    return make_policy(w, op);
  });
}

}  // namespace ops
}  // namespace ptxvm
