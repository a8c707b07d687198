// SPDX-License-Identifier: MIT
// The timing policy on a stopwatch of our own: no GPU, no real time.
#include "harness/measure/timing/rounds.h"

#include <algorithm>
#include <csignal>
#include <map>
#include <stdexcept>

#include "harness/device/gpu.h"
#include "harness/io/interrupt.h"
#include "harness/tests/catch.h"

namespace fa {
namespace {

/// A launch "runs" by setting its duration.
struct FakeStopwatch final : Stopwatch {
  double running = 0;
  double now = 0;
  int expire = 0;         ///< measurements that fail first
  int longest = 1 << 30;  ///< launches of a train before the device waits for the host
  bool recordable = true;
  bool short_records = false;  ///< the device waits between two of them, too
  int records = 0;             ///< how often something was recorded
  int recorded = 1;            ///< launches that the last one stood for
  std::vector<double> gaps;
  std::vector<int> trains;

  double untimed(const Launch& launch) override {
    launch();
    now += running;
    return running;
  }
  std::optional<double> single(const Launch& launch) override {
    launch();
    if (expire-- > 0) return std::nullopt;
    now += running;
    return running;
  }
  std::optional<double> train(const Launch& launch, int count, int ahead) override {
    REQUIRE(ahead >= 1);
    recorded = 1;
    for (int i = 0; i < count; ++i) launch();
    const double ms = running * (count * recorded);
    if (expire-- > 0 || count > longest || (ahead == 1 && short_records)) {
      return std::nullopt;
    }
    trains.push_back(count);
    now += ms;
    return ms;
  }
  std::optional<Launch> record(const Launch& launch, int count) override {
    ++records;
    if (!recordable) return std::nullopt;
    return [this, launch, count] {
      launch();
      recorded = count;
    };
  }
  void idle(double ms) override {
    gaps.push_back(ms);
    now += ms;
  }
};

struct Log final : TimingObserver {
  std::vector<std::string> lines;
  bool open = false;
  void begin(std::size_t item, Phase phase, int round) override {
    REQUIRE_FALSE(open);
    open = true;
    lines.push_back(std::to_string(round) + ":" + std::to_string(item) +
                    (phase == Phase::spaced ? "s" : "b"));
  }
  void end() override {
    REQUIRE(open);
    open = false;
  }
};

TEST_CASE("the gap follows the duration between two limits") {
  const TimingPolicy policy;
  CHECK(idle_gap_ms(policy, 0.01) == policy.gap_min_ms);
  CHECK(idle_gap_ms(policy, 12) == 12);
  CHECK(idle_gap_ms(policy, 800) == policy.gap_max_ms);
}

TEST_CASE("items are interleaved, every second round backwards") {
  FakeStopwatch stopwatch;
  Log log;
  const std::vector<TimedItem> items{{"a", [&] { stopwatch.running = 10; }},
                                     {"b", [&] { stopwatch.running = 20; }}};
  const TimingPolicy policy{.rounds = 3};
  const auto times = time_interleaved(items, policy, stopwatch, &log);
  CHECK(log.lines == std::vector<std::string>{"0:0s", "0:0b", "0:1s", "0:1b", "1:1s", "1:1b",
                                              "1:0s", "1:0b", "2:0s", "2:0b", "2:1s", "2:1b"});
  Log other;
  time_interleaved(items, {.rounds = 2, .backwards = true}, stopwatch, &other);
  CHECK(other.lines == std::vector<std::string>{"0:1s", "0:1b", "0:0s", "0:0b",  //
                                                "1:0s", "1:0b", "1:1s", "1:1b"});
  REQUIRE(times.size() == 2);
  for (const double ms : times[0].spaced) CHECK(ms == 10);
  for (const double ms : times[1].spaced) CHECK(ms == 20);
  CHECK(times[0].back_to_back == std::vector<double>{10, 10, 10});
  CHECK(times[1].back_to_back == std::vector<double>{20, 20, 20});
}

TEST_CASE("a slow kernel gets one sample and two back-to-back launches a round") {
  FakeStopwatch stopwatch;
  const std::vector<TimedItem> items{{"slow", [&] { stopwatch.running = 800; }}};
  const TimingPolicy policy{.rounds = 4};
  const auto times = time_interleaved(items, policy, stopwatch);
  CHECK(times[0].spaced.size() == 4);
  CHECK(times[0].back_to_back.size() == 4);
  // Two launches of warm-up; per round one sample, one lead, two timed.
  CHECK(stopwatch.now < 800 * (2 + 4 * 4) + 4 * policy.gap_max_ms + 1);
}

TEST_CASE("a fast kernel gets many samples, and trains without a rest") {
  FakeStopwatch stopwatch;
  stopwatch.recordable = false;
  const std::vector<TimedItem> items{{"fast", [&] { stopwatch.running = 0.05; }}};
  const TimingPolicy policy{.rounds = 2};
  const auto times = time_interleaved(items, policy, stopwatch);
  CHECK(times[0].spaced.size() == 2 * static_cast<std::size_t>(policy.spaced_max));
  CHECK(stopwatch.trains == std::vector<int>{1000, 2400, 1000, 2400});
}

TEST_CASE("short launches are recorded once and replayed, however fast the host is") {
  FakeStopwatch stopwatch;
  const auto launch = [&](double ms, int longest) {
    return [&stopwatch, ms, longest] { stopwatch.running = ms, stopwatch.longest = longest; };
  };
  const std::vector<TimedItem> items{{"rung", launch(0.05, 1 << 30)}, {"peer", launch(0.1, 100)}};
  const TimingPolicy policy{.rounds = 2};
  const auto times = time_interleaved(items, policy, stopwatch);
  CHECK(stopwatch.records == 2);
  for (const ItemTimes& item : times) {
    CHECK(item.recorded);
    CHECK(item.back_to_back.size() == 2);
  }
  for (const double ms : times[0].back_to_back) CHECK(ms == Approx(0.05));
  for (const double ms : times[1].back_to_back) CHECK(ms == Approx(0.1));
  // Nothing but records of 100.
  CHECK(stopwatch.trains == std::vector<int>{10, 24, 5, 12, 5, 12, 10, 24});
}

TEST_CASE("what a short train is enough for is not recorded") {
  FakeStopwatch stopwatch;
  const std::vector<TimedItem> items{
      {"slow", [&] { stopwatch.running = 20; }},
      {.name = "part", .launch = [&] { stopwatch.running = 0.01; }, .spaced_only = true}};
  const auto times = time_interleaved(items, {.rounds = 1}, stopwatch);
  CHECK(stopwatch.records == 0);
  CHECK_FALSE(times[0].recorded);
  CHECK(times[0].back_to_back == std::vector<double>{20});
}

TEST_CASE("what cannot be recorded, or whose record is too short as well, has short trains") {
  FakeStopwatch stopwatch;
  stopwatch.longest = 100;
  stopwatch.recordable = GENERATE(false, true);
  stopwatch.short_records = stopwatch.recordable;
  const std::vector<TimedItem> items{{"fast", [&] { stopwatch.running = 0.05; }}};
  const TimingPolicy policy{.rounds = 1};
  const auto times = time_interleaved(items, policy, stopwatch);
  CHECK(times[0].expired == 0);
  CHECK_FALSE(times[0].recorded);
  CHECK(stopwatch.records == 1);
  CHECK(times[0].back_to_back == std::vector<double>{0.05});
  for (const int count : stopwatch.trains) CHECK(count <= 100);
  double launches = 0;
  for (const int count : stopwatch.trains) launches += count;
  CHECK(launches * 0.05 >= policy.lead_ms + policy.back_to_back_ms - 1e-6);
}

TEST_CASE("a row is recorded when most of its launches are, whatever its last train was") {
  FakeStopwatch stopwatch;
  int visits = 0;
  const int recorded_rounds = GENERATE(1, 3);
  const std::vector<TimedItem> items{
      {.name = "fast",
       .launch = [&] { stopwatch.running = 0.05; },
       .prepare = [&] { stopwatch.short_records = ++visits > 1 + recorded_rounds; }}};
  const auto times = time_interleaved(items, {.rounds = 4}, stopwatch);
  CHECK(times[0].recorded == (recorded_rounds == 3));
}

TEST_CASE("what an item needs is launched untimed before each visit, and nothing runs after it") {
  FakeStopwatch stopwatch;
  Log log;
  std::string calls;
  const std::vector<TimedItem> items{{.name = "part",
                                      .launch =
                                          [&] {
                                            stopwatch.running = 60;
                                            calls += 'p';
                                          },
                                      .prepare =
                                          [&] {
                                            stopwatch.running = 500;
                                            calls += 'W';
                                          },
                                      .spaced_only = true},
                                     {"other", [&] {
                                        stopwatch.running = 100;
                                        calls += 'o';
                                      }}};
  const auto times = time_interleaved(items, {.rounds = 2}, stopwatch, &log);
  CHECK(log.lines == std::vector<std::string>{"0:0s", "0:1s", "0:1b", "1:1s", "1:1b", "1:0s"});
  CHECK(times[0].spaced == std::vector<double>{60, 60, 60, 60});
  CHECK(times[0].back_to_back.empty());
  CHECK(times[1].back_to_back == std::vector<double>{100, 100});
  // Warm-up and two visits; nothing of the other item comes between a pass and what it prepares.
  CHECK(calls.substr(0, 5) == "Wpppo");
  CHECK(std::count(calls.begin(), calls.end(), 'W') == 3);
  CHECK(calls.find("op") == std::string::npos);
}

TEST_CASE("a sample whose hold expired is taken again, a peer that always waits is an error") {
  FakeStopwatch stopwatch;
  const std::vector<TimedItem> items{{"a", [&] { stopwatch.running = 10; }}};
  const TimingPolicy policy{.rounds = 1};
  SECTION("twice") {
    stopwatch.expire = 2;
    const auto times = time_interleaved(items, policy, stopwatch);
    CHECK_FALSE(times[0].error);
    CHECK(times[0].expired == 2);
    CHECK_FALSE(times[0].spaced.empty());
  }
  SECTION("always") {
    stopwatch.expire = 1000;
    const auto times = time_interleaved(items, policy, stopwatch);
    REQUIRE(times[0].error);
    CHECK(times[0].error->find("waits for the device") != std::string::npos);
  }
}

TEST_CASE("an item that throws is left out, the others go on") {
  FakeStopwatch stopwatch;
  int calls = 0;
  const std::vector<TimedItem> items{{"bad",
                                      [&] {
                                        if (++calls > 5) throw DeviceError("no luck");
                                        stopwatch.running = 60;
                                      }},
                                     {"good", [&] { stopwatch.running = 10; }}};
  const auto times = time_interleaved(items, {.rounds = 2}, stopwatch);
  CHECK(times[0].error == "no luck");
  CHECK(calls == 6);
  CHECK_FALSE(times[1].error);
  CHECK(times[1].back_to_back.size() == 2);
}

TEST_CASE("an interrupt leaves the rounds that were complete") {
  struct Rounds final : TimingObserver {
    std::vector<std::vector<ItemTimes>> seen;
    void begin(std::size_t, Phase, int) override {}
    void end() override {}
    void finished_round(const std::vector<ItemTimes>& times) override { seen.push_back(times); }
  };
  const io::InterruptScope scope;
  FakeStopwatch stopwatch;
  Rounds rounds;
  bool sent = false;  // a second signal would end the process
  const std::vector<TimedItem> items{{"a", [&] { stopwatch.running = 200; }},
                                     {"b", [&] {
                                        stopwatch.running = 100;
                                        if (sent || rounds.seen.size() < 2) return;
                                        sent = true;
                                        std::raise(SIGTERM);
                                      }}};
  CHECK_THROWS_AS(time_interleaved(items, {.rounds = 4}, stopwatch, &rounds), io::Interrupted);
  REQUIRE(rounds.seen.size() == 2);
  for (std::size_t i = 0; i < items.size(); ++i) {
    CHECK(rounds.seen[1][i].spaced.size() == 2 * rounds.seen[0][i].spaced.size());
    CHECK(rounds.seen[1][i].back_to_back.size() == 2);
  }
}

TEST_CASE("a lost device ends everything") {
  FakeStopwatch stopwatch;
  const std::vector<TimedItem> items{{"bad", [] { throw DeviceLost("gone"); }}};
  CHECK_THROWS_AS(time_interleaved(items, {}, stopwatch), DeviceLost);
}

}  // namespace
}  // namespace fa
