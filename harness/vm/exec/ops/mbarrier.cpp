// SPDX-License-Identifier: MIT
// mbarrier (PTX ISA 9.7.13.15). The counts live beside shared memory; the object in shared memory
// holds an image of them, so that a barrier that was overwritten is found when it is next used.
#include <utility>

#include "exec/access.h"
#include "exec/async.h"
#include "exec/ops/lanes.h"

namespace ptxvm {
namespace {

void store_word(Cta& cta, uint32_t address, uint64_t word) {
  std::memcpy(cta.shared + (address - cta.shared_base), &word, sizeof word);
}

std::string at(uint32_t address) {
  return "at shared address " + std::to_string(address);
}

// A barrier and the block that holds it.
struct Home {
  Cta& cta;
  uint32_t address;  // in that block
  Mbarrier& barrier;
};

MbarrierEvent event(const WarpId& by, uint32_t instruction, MbarrierAction action, const Cta& home,
                    uint32_t address, const Mbarrier& b) {
  MbarrierEvent e;
  e.home = home.rank;
  e.warp = by;
  e.instruction = instruction;
  e.action = action;
  e.address = address;
  e.phase = b.phase;
  return e;
}

void report(const Cta& cta, const MbarrierEvent& e) {
  for (const auto& probe : *cta.probes) probe->mbarrier(e);
}

// Goes on to the next phase when the current one is complete, and renews the image.
void settle(Cta& cta, const WarpId& by, uint32_t instruction, uint32_t address, Mbarrier& b) {
  if (b.complete()) {
    if (cta.launch->observed) {
      report(cta, event(by, instruction, MbarrierAction::kPhase, cta, address, b));
    }
    b.next_phase();
  }
  store_word(cta, address, b.word());
}

// The barrier at an address of a block, which must be valid.
Mbarrier& find(const Warp& w, Cta& cta, uint32_t instruction, int lane, uint32_t address) {
  auto it = cta.async.mbarriers.find(address);
  if (it == cta.async.mbarriers.end()) {
    raise(w, instruction, FaultKind::kInvalid, lane,
          "no mbarrier has been initialised " + at(address));
  }
  uint64_t word;
  std::memcpy(&word, cta.shared + (address - cta.shared_base), sizeof word);
  if (word != it->second.word()) {
    raise(w, instruction, FaultKind::kInvalid, lane,
          "the mbarrier " + at(address) + " has been overwritten");
  }
  return it->second;
}

// The barrier at an address as an operand gives it, which may be of another block.
Home find_home(Warp& w, uint32_t instruction, int lane, uint32_t address) {
  Cta& cta = block_of(w, instruction, lane, address);
  const uint32_t local = address & kInBlock;
  return {cta, local, find(w, cta, instruction, lane, local)};
}

// What the modifiers of an operation say.
struct Use {
  Space space = Space::kGeneric;
  bool ordered = true;
  bool no_complete = false, drop = false;  // of an arrival
  bool parity = false;                     // of a wait: for a parity, not for a state
  bool complete = false;                   // of a transaction: bytes come instead of being expected
  bool no_increment = false;               // of the arrival of copies
};

Use read_use(Modifiers& m) {
  Use use;
  if (m.flag("shared::cluster")) {
    use.space = Space::kSharedCluster;
  } else if (m.choice({"shared", "shared::cta"}) >= 0) {
    use.space = Space::kShared;
  }
  use.ordered = m.choice({"acquire", "release", "relaxed"}) != 2;
  m.choice({"cta", "cluster"});
  return use;
}

// Shared addresses of the lanes; of other blocks only where `anywhere`.
void addresses(Warp& w, const Op& op, size_t position, Request& request, bool anywhere = false) {
  lane_addresses(w, op.r[position], op.r[position + 1], request.wide);
  for_spaces(op.aux.as<Use>().space, w.mask, request, [&](Space s, uint32_t lanes) {
    if (s != Space::kShared && s != Space::kSharedCluster) {
      raise(w, op, FaultKind::kInvalid, __builtin_ctz(lanes),
            "the address of an mbarrier is not in shared memory");
    }
    resolve(w, op, s, lanes, 8, 8, true, request);
    if (!anywhere) require_own_block(w, op, lanes, request, "an mbarrier that is used like this");
  });
}

template <bool kObserved>
Step init(Warp& w, const Op& op) {
  Request request;
  addresses(w, op, 0, request);
  const uint32_t* counts = w.at<uint32_t>(op.r[2]);
  Cta& cta = *w.cta;
  for_lanes(w.mask, [&](int lane) {
    const uint32_t count = counts[lane], address = request.narrow[lane];
    if (count == 0 || count > kMbarrierMaxCount) {
      raise(w, op, FaultKind::kInvalid, lane,
            "an mbarrier for " + std::to_string(count) + " arrivals; from 1 to " +
                std::to_string(kMbarrierMaxCount) + " are allowed");
    }
    auto [it, fresh] = cta.async.mbarriers.try_emplace(address);
    // Several threads that initialise it the same way before its use do no harm.
    Mbarrier unused;
    unused.expected = unused.pending = count;
    if (!fresh && (it->second.phase != 0 || it->second.word() != unused.word())) {
      raise(w, op, FaultKind::kInvalid, lane,
            "there is already an mbarrier " + at(address) + "; mbarrier.inval ends its use");
    }
    it->second = unused;
    store_word(cta, address, it->second.word());
    if constexpr (kObserved) {
      auto e = event(id_of(w), op.instruction, MbarrierAction::kInit, cta, address, it->second);
      e.mask = 1u << lane;
      e.count = count;
      report(cta, e);
    }
  });
  return Step::kNext;
}

template <bool kObserved>
Step inval(Warp& w, const Op& op) {
  Request request;
  addresses(w, op, 0, request);
  Cta& cta = *w.cta;
  for_lanes(w.mask, [&](int lane) {
    const uint32_t address = request.narrow[lane];
    const Mbarrier b = find(w, cta, op.instruction, lane, address);
    cta.async.mbarriers.erase(address);
    store_word(cta, address, ~uint64_t{0});
    if constexpr (kObserved) {
      auto e = event(id_of(w), op.instruction, MbarrierAction::kInvalidate, cta, address, b);
      e.mask = 1u << lane;
      report(cta, e);
    }
  });
  return Step::kNext;
}

void change_bytes(const Warp& w, uint32_t instruction, int lane, Mbarrier& b, uint32_t address,
                  int64_t change) {
  b.bytes += change;
  if (b.bytes > kMbarrierMaxBytes || b.bytes < -kMbarrierMaxBytes) {
    raise(w, instruction, FaultKind::kInvalid, lane,
          "the mbarrier " + at(address) + " would wait for " + std::to_string(b.bytes) +
              " bytes; the limit is " + std::to_string(kMbarrierMaxBytes));
  }
}

template <bool kObserved>
void expect(Warp& w, const Op& op, int lane, const Home& home, uint32_t bytes) {
  change_bytes(w, op.instruction, lane, home.barrier, home.address, bytes);
  if constexpr (kObserved) {
    auto e = event(id_of(w), op.instruction, MbarrierAction::kExpect, home.cta, home.address,
                   home.barrier);
    e.mask = 1u << lane;
    e.bytes = bytes;
    e.ordered = op.aux.as<Use>().ordered;
    report(*w.cta, e);
  }
}

void arrive(const Warp& w, uint32_t instruction, const Use& use, int lane, const Home& home,
            uint32_t count, bool by_copy, uint64_t commit = 0) {
  Mbarrier& b = home.barrier;
  const uint32_t address = home.address;
  if (count == 0 || count > b.pending) {
    raise(w, instruction, FaultKind::kInvalid, lane,
          std::to_string(count) + (count == 1 ? " arrival" : " arrivals") + " at the mbarrier " +
              at(address) + ", of which phase " + std::to_string(b.phase) + " misses " +
              std::to_string(b.pending));
  }
  if (use.drop && count > b.expected) {
    raise(w, instruction, FaultKind::kInvalid, lane,
          "the mbarrier " + at(address) + " has fewer arrivals to drop");
  }
  if (w.cta->launch->observed) {
    auto e = event(id_of(w), instruction, MbarrierAction::kArrive, home.cta, address, b);
    e.mask = lane < 0 ? 0 : 1u << lane;
    e.count = count;
    e.ordered = use.ordered;
    e.by_copy = by_copy;
    e.commit = commit;
    report(*w.cta, e);
  }
  b.pending -= count;
  if (use.drop) b.expected -= count;
  if (use.no_complete && b.complete()) {
    raise(w, instruction, FaultKind::kInvalid, lane,
          "a .noComplete arrival completes the phase of the mbarrier " + at(address));
  }
  settle(home.cta, id_of(w), instruction, address, b);
}

template <bool kObserved, bool kExpects>
Step arrive_op(Warp& w, const Op& op) {
  Request request;
  addresses(w, op, 1, request, true);
  const uint32_t* values = op.r[3] == kNoRef ? nullptr : w.at<uint32_t>(op.r[3]);
  const auto use = op.aux.as<Use>();
  uint64_t states[32];
  for_lanes(w.mask, [&](int lane) {
    const Home home = find_home(w, op.instruction, lane, request.narrow[lane]);
    states[lane] = home.barrier.state();
    if constexpr (kExpects) expect<kObserved>(w, op, lane, home, values[lane]);
    arrive(w, op.instruction, use, lane, home, kExpects || !values ? 1 : values[lane], false);
  });
  uint64_t* d = w.at<uint64_t>(op.r[0]);
  for_lanes(w.mask, [&](int lane) { d[lane] = states[lane]; });
  return Step::kNext;
}

template <bool kObserved>
Step transact(Warp& w, const Op& op) {
  Request request;
  addresses(w, op, 0, request, true);
  const uint32_t* values = w.at<uint32_t>(op.r[2]);
  for_lanes(w.mask, [&](int lane) {
    const Home home = find_home(w, op.instruction, lane, request.narrow[lane]);
    if (op.aux.as<Use>().complete) {
      complete_transaction(home.cta, id_of(w), op.instruction, home.address, values[lane]);
      return;
    }
    expect<kObserved>(w, op, lane, home, values[lane]);
    settle(home.cta, id_of(w), op.instruction, home.address, home.barrier);
  });
  return Step::kNext;
}

// Whether the phase that lane waits for is complete. Only the current phase and the one before it
// can be asked for.
bool is_complete(Warp& w, const Op& op, int lane, const Mbarrier& b, Ref wanted) {
  if (op.aux.as<Use>().parity) {
    const uint32_t parity = w.at<uint32_t>(wanted)[lane];
    if (parity > 1) {
      raise(w, op, FaultKind::kInvalid, lane, "a parity is 0 or 1, not " + std::to_string(parity));
    }
    return (b.phase & 1) != parity;
  }
  const uint64_t phase = state_phase(w.at<uint64_t>(wanted)[lane]);
  if (phase != b.phase && phase + 1 != b.phase) {
    raise(w, op, FaultKind::kInvalid, lane,
          "the state is not of the current phase of this mbarrier, or the one before");
  }
  return phase != b.phase;
}

template <bool kObserved, bool kBlocks>
Step wait(Warp& w, const Op& op) {
  Request request;
  addresses(w, op, 1, request);
  uint32_t done = 0;
  for_lanes(w.mask, [&](int lane) {
    const Mbarrier& b = find(w, *w.cta, op.instruction, lane, request.narrow[lane]);
    if (is_complete(w, op, lane, b, op.r[3])) done |= 1u << lane;
  });
  // try_wait suspends the warp, but not for ever.
  const bool late = std::exchange(w.timed_out, false);
  if (done != 0) w.timeouts = 0;
  if (kBlocks && done == 0 && !late) return Step::kRetry;
  w.set_predicate(op.r[0], done);
  if constexpr (kObserved) {
    for (uint32_t rest = w.mask; rest != 0;) {
      const int first = __builtin_ctz(rest);
      const uint32_t address = request.narrow[first];
      uint32_t same = 0;
      for_lanes(rest, [&](int lane) {
        if (request.narrow[lane] == address && (done >> lane & 1) == (done >> first & 1)) {
          same |= 1u << lane;
        }
      });
      const Mbarrier& b = w.cta->async.mbarriers.at(address);
      auto e = event(id_of(w), op.instruction,
                     done >> first & 1 ? MbarrierAction::kWait : MbarrierAction::kMiss, *w.cta,
                     address, b);
      if (e.action == MbarrierAction::kWait) --e.phase;
      e.mask = same;
      e.ordered = op.aux.as<Use>().ordered;
      report(*w.cta, e);
      rest &= ~same;
    }
  }
  if (done != 0 || kBlocks) return Step::kNext;
  // The answer is no: others get their turn before the warp asks again.
  w.pc = static_cast<uint32_t>(&op - w.code) + 1;
  w.status = WarpStatus::kPolling;
  return Step::kYield;
}

// cp.async.mbarrier.arrive: an arrival that comes when the lane's copies have landed.
class CopyArrival : public PendingWork {
 public:
  CopyArrival(const Warp& w, uint32_t instruction, uint32_t lane, uint32_t address)
      : warp_(w.index),
        instruction_(instruction),
        lane_(lane),
        address_(address),
        end_(w.copies.issued) {}

  void finish(Cta& cta) override {
    Warp& w = cta.warps[warp_];
    land_copies(w, 1u << lane_, end_, cta.launch->observed);
    const int lane = static_cast<int>(lane_);
    Use use;
    use.ordered = false;
    arrive(w, instruction_, use, lane, find_home(w, instruction_, lane, address_), 1, true);
  }

 private:
  uint16_t warp_;
  uint32_t instruction_, lane_, address_;
  uint64_t end_;  // of the copies that it waits for
};

Step copy_arrive(Warp& w, const Op& op) {
  Request request;
  addresses(w, op, 0, request);
  Cta& cta = *w.cta;
  for_lanes(w.mask, [&](int lane) {
    const uint32_t address = request.narrow[lane];
    Mbarrier& b = find(w, cta, op.instruction, lane, address);
    // Without .noinc the arrival is one more than the barrier was made for.
    if (!op.aux.as<Use>().no_increment) {
      ++b.pending;
      store_word(cta, address, b.word());
    }
    w.copies.tracked[static_cast<size_t>(lane)] = w.copies.issued;
    cta.pending.push_back(
        std::make_unique<CopyArrival>(w, op.instruction, static_cast<uint32_t>(lane), address));
  });
  return Step::kNext;
}

Step pending_count(Warp& w, const Op& op) {
  uint32_t* d = w.at<uint32_t>(op.r[0]);
  const uint64_t* state = w.at<uint64_t>(op.r[1]);
  for_lanes(w.mask, [&](int lane) { d[lane] = state_pending(state[lane]); });
  return Step::kNext;
}

}  // namespace

void require_mbarrier(const Warp& w, const Op& op, int lane, Cta& home, uint32_t address) {
  find(w, home, op.instruction, lane, address);
}

void arrive_for_commit(const Warp& w, uint32_t instruction, Cta& home, uint32_t address,
                       uint64_t number) {
  Use use;
  use.ordered = false;
  arrive(w, instruction, use, -1, {home, address, find(w, home, instruction, -1, address)}, 1,
         false, number);
}

void complete_transaction(Cta& cta, const WarpId& by, uint32_t instruction, uint32_t address,
                          uint32_t bytes) {
  const Warp& w = cta.cluster->blocks[by.cta_rank].warps[by.warp];
  Mbarrier& b = find(w, cta, instruction, -1, address);
  if (cta.launch->observed) {
    auto e = event(by, instruction, MbarrierAction::kComplete, cta, address, b);
    e.bytes = bytes;
    report(cta, e);
  }
  change_bytes(w, instruction, -1, b, address, -static_cast<int64_t>(bytes));
  settle(cta, by, instruction, address, b);
}

namespace ops {

Bound mbarrier_init(Modifiers& m) {
  return {init<false>, init<true>, read_use(m)};
}
Bound mbarrier_inval(Modifiers& m) {
  return {inval<false>, inval<true>, read_use(m)};
}

Bound mbarrier_arrive(Modifiers& m) {
  Use use = read_use(m);
  use.no_complete = m.flag("noComplete");
  use.drop = m.choice({"arrive", "arrive_drop"}) == 1;
  return {arrive_op<false, false>, arrive_op<true, false>, use};
}

Bound mbarrier_arrive_tx(Modifiers& m) {
  Use use = read_use(m);
  use.drop = m.choice({"arrive", "arrive_drop"}) == 1;
  return {arrive_op<false, true>, arrive_op<true, true>, use};
}

Bound mbarrier_tx(Modifiers& m) {
  Use use = read_use(m);
  use.complete = m.choice({"expect_tx", "complete_tx"}) == 1;
  return {transact<false>, transact<true>, use};
}

Bound mbarrier_wait(Modifiers& m) {
  Use use = read_use(m);
  use.parity = m.flag("parity");
  if (m.flag("try_wait")) return {wait<false, true>, wait<true, true>, use};
  return {wait<false, false>, wait<true, false>, use};
}

Bound mbarrier_pending(Modifiers&) {
  return code(pending_count);
}

Bound cp_async_mbarrier(Modifiers& m) {
  Use use = read_use(m);
  use.no_increment = m.flag("noinc");
  return code(copy_arrive, use);
}

}  // namespace ops
}  // namespace ptxvm
