#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "headrace/base/detail/clock.hpp"
#include "headrace/base/result.hpp"
#include "headrace/device/topology.hpp"

namespace headrace::measure {

/// The time that a word takes from one processor to another and back.
struct CoreRoundTrip {
  Processor a;
  Processor b;
  CacheDistance distance = CacheDistance::same_processor;
  Duration round_trip{};
};

/// Pairs of processors to measure: for each distance from the first of Topology::by_cache_distance() that the machine
/// has, at most `each`, in that order.
[[nodiscard]] std::vector<std::pair<Processor, Processor>> pairs_by_distance(const Topology& machine,
                                                                             std::size_t each = 4);

/// Two threads, bound to `a` and `b`, pass a word back and forth. Returns the median round trip of several runs of a
/// thousand. Errc::invalid_argument if both are one processor, else the error of binding. Takes about a millisecond on
/// an idle machine.
[[nodiscard]] Result<Duration> core_round_trip(const Processor& a, const Processor& b);

/// All of pairs_by_distance() of this machine, by distance and then by time. Empty on a machine with one processor.
/// Pairs to which threads cannot be bound are left out.
[[nodiscard]] std::vector<CoreRoundTrip> measure_core_round_trips(std::size_t each = 4);

}  // namespace headrace::measure
