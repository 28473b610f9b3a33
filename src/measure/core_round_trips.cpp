#include "measure/core_round_trips.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <system_error>
#include <thread>

#include "headrace/base/detail/bytes.hpp"

namespace headrace::measure {

namespace {

constexpr std::uint32_t kRoundTrips = 1000;
constexpr std::size_t kRoundTripRuns = 9;

/// The word that two threads exchange: odd from the caller, even from the answerer.
struct Ball {
  alignas(kNoSharing) std::atomic<std::uint32_t> word{0};
  alignas(kNoSharing) std::atomic<bool> over{false};
};

/// Answers until the caller is done.
void answer(Ball& ball) noexcept {
  for (std::uint32_t seen = 0; !ball.over.load(std::memory_order_relaxed);) {
    const std::uint32_t now = ball.word.load(std::memory_order_acquire);  // pairs with the caller's release
    if (now == seen || now % 2 == 0) continue;
    seen = now + 1;
    ball.word.store(seen, std::memory_order_release);
  }
}

/// The median time of a round trip, over runs of kRoundTrips.
Duration call(Ball& ball) noexcept {
  std::array<Duration, kRoundTripRuns> runs{};
  std::uint32_t word = 0;
  for (Duration& run : runs) {
    const Time start = SteadyClock::now();
    for (std::uint32_t round = 0; round < kRoundTrips; ++round, word += 2) {
      ball.word.store(word + 1, std::memory_order_release);  // pairs with the answerer's acquire
      while (ball.word.load(std::memory_order_acquire) != word + 2) {
      }
    }
    run = (SteadyClock::now() - start) / kRoundTrips;
  }
  std::ranges::nth_element(runs, runs.begin() + kRoundTripRuns / 2);
  return runs[kRoundTripRuns / 2];
}

}  // namespace

std::vector<std::pair<Processor, Processor>> pairs_by_distance(const Topology& machine, std::size_t each) {
  const auto order = machine.by_cache_distance();
  std::map<CacheDistance, std::vector<std::pair<Processor, Processor>>> found;
  for (std::size_t i = 1; i < order.size(); ++i) {
    auto& pairs = found[distance(order.front(), order[i])];
    if (pairs.size() < each) pairs.emplace_back(order.front(), order[i]);
  }
  std::vector<std::pair<Processor, Processor>> all;
  for (const auto& [unused, pairs] : found) all.insert(all.end(), pairs.begin(), pairs.end());
  return all;
}

Result<Duration> core_round_trip(const Processor& a, const Processor& b) {
  if (a.os_index == b.os_index) return Errc::invalid_argument;
  Ball ball;
  Status bound_a;
  Status bound_b;
  Duration median{};
  std::atomic<int> ready{0};
  // Neither thread spins before both are bound, so that they never compete for one processor.
  const auto meet = [&ready] {
    ready.fetch_add(1, std::memory_order_acq_rel);
    ready.notify_all();
    for (int seen = ready.load(std::memory_order_acquire); seen < 2; seen = ready.load(std::memory_order_acquire)) {
      ready.wait(seen, std::memory_order_acquire);
    }
  };
  {
    const std::jthread answerer([&] {
      bound_b = bind_this_thread(b);
      meet();
      if (bound_a && bound_b) answer(ball);
    });
    std::jthread caller;
    try {
      caller = std::jthread([&] {
        bound_a = bind_this_thread(a);
        meet();
        if (bound_a && bound_b) median = call(ball);
        ball.over.store(true, std::memory_order_relaxed);
      });
    } catch (const std::system_error& error) {
      bound_a = Error{Errc::system, error.code().value()};
      meet();  // meet on its behalf, so that the other thread continues and ends
    }
  }
  if (!bound_a) return bound_a.error();
  if (!bound_b) return bound_b.error();
  return median;
}

std::vector<CoreRoundTrip> measure_core_round_trips(std::size_t each) {
  std::vector<CoreRoundTrip> found;
  for (const auto& [a, b] : pairs_by_distance(Topology::machine(), each)) {
    if (const auto median = core_round_trip(a, b)) found.push_back({a, b, distance(a, b), *median});
  }
  std::ranges::stable_sort(found, {}, [](const CoreRoundTrip& one) { return std::pair(one.distance, one.round_trip); });
  return found;
}

}  // namespace headrace::measure
