// SPDX-License-Identifier: MIT
#include "harness/capi/capi.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/cli/bench_command.h"
#include "harness/cli/terminal.h"
#include "harness/results/problem_json.h"

static_assert(sizeof(fa_peer) == 88);
static_assert(offsetof(fa_peer, unavailable_reason) == 16);
static_assert(offsetof(fa_peer, supports) == 24);
static_assert(offsetof(fa_peer, launch) == 32);
static_assert(offsetof(fa_peer, user) == 40);
static_assert(offsetof(fa_peer, matmul) == 48);
static_assert(offsetof(fa_peer, copy_bytes) == 72);
static_assert(offsetof(fa_peer, device_bytes) == 80);
static_assert(sizeof(fa_tensors) == 72);

namespace {

using Message = std::array<char, 512>;

std::string text_of(fa::Problem problem) {
  problem.own_scale = problem.scale();
  fa::Json json = fa::to_json(problem);
  json["device"] = fa::current_gpu();
  return json.dump();
}

std::string text_of(const Message& message, const char* otherwise) {
  std::string text(message.data(), strnlen(message.data(), message.size()));
  return text.empty() ? otherwise : text;
}

/// Calls the peer and turns its code into an exception.
void launch_peer(const fa_peer& peer, const fa::Problem& problem, const fa::PeerTensors& given,
                 fa::GpuStream stream) {
  const fa_tensors tensors{given.q,   given.k,   given.v,   given.o,  given.lse,
                           given.d_o, given.d_q, given.d_k, given.d_v};
  Message message{};
  const int code = peer.launch(peer.user, text_of(problem).c_str(), &tensors, stream,
                               message.data(), static_cast<std::int32_t>(message.size()));
  if (code == FA_PEER_OK) return;
  const std::string text = text_of(message, "the peer gave no reason");
  if (code == FA_PEER_UNSUPPORTED) throw fa::PeerUnsupported(text);
  if (code == FA_PEER_OUT_OF_MEMORY) throw fa::OutOfMemory(text);
  throw fa::DeviceError(text);
}

std::string unsupported_by_peer(const fa_peer& peer, const fa::Problem& problem) {
  if (problem.e4m3) return "timed with K and V of float16 only";
  Message message{};
  const int code = peer.supports(peer.user, text_of(problem).c_str(), message.data(),
                                 static_cast<std::int32_t>(message.size()));
  return code == FA_PEER_OK ? "" : text_of(message, "the peer gave no reason");
}

fa::Peer to_peer(const fa_peer& given) {
  if (!given.id || !*given.id) throw fa::cli::UsageError("a peer has no id");
  fa::Peer peer;
  peer.id = given.id;
  peer.variant = given.variant ? given.variant : "";
  peer.matmul = {given.matmul[0], given.matmul[1], given.matmul[2]};
  peer.copy_bytes = given.copy_bytes;
  if (given.unavailable_reason) {
    peer.unavailable_reason = given.unavailable_reason;
    return peer;
  }
  if (!given.launch) throw fa::cli::UsageError("peer '" + peer.id + "' has no launch callback");
  if (given.supports) {
    peer.unsupported = [&given](const fa::Problem& problem) {
      return unsupported_by_peer(given, problem);
    };
  }
  if (given.device_bytes) {
    peer.device_bytes = [&given]() -> std::optional<std::int64_t> {
      return *given.device_bytes < 0 ? std::nullopt : std::optional(*given.device_bytes);
    };
  }
  peer.launch = [&given](const fa::Problem& problem, const fa::PeerTensors& tensors,
                         fa::GpuStream stream) { launch_peer(given, problem, tensors, stream); };
  return peer;
}

}  // namespace

extern "C" {

int32_t fa_api_version(void) {
  return FA_API_VERSION;
}

int32_t fa_bench(int32_t argc, const char* const* argv, const fa_peer* peers, int32_t n_peers) {
  try {
    std::vector<std::string> words{"bench"};
    for (int32_t i = 0; i < argc; ++i) words.emplace_back(argv[i]);
    std::vector<fa::Peer> given;
    given.reserve(static_cast<std::size_t>(std::max(n_peers, 0)));
    for (int32_t i = 0; i < n_peers; ++i) given.push_back(to_peer(peers[i]));
    return static_cast<int32_t>(fa::cli::run_command_line(words, [&] {
      std::vector<fa::cli::Entry> entries;
      entries.push_back(fa::cli::bench_entry(std::move(given), words));
      return entries;
    }));
  } catch (const std::exception& error) {
    fa::cli::print_error(error.what());
    return static_cast<int32_t>(fa::cli::Exit::usage);
  }
}

}  // extern "C"
