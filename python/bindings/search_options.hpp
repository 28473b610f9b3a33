#pragma once

#include <cstdint>
#include <stop_token>
#include <string_view>
#include <utility>

#include "convert.hpp"
#include "headrace/serve/detail/rate_search.hpp"

namespace headrace::python {

/// The options of every rate search from Python, with times in seconds.
inline void set_search(serve::RateSearchOptions& options, double bound, std::string_view arrivals, std::uint64_t seed,
                       std::uint32_t generators, double window, double rank_tolerance, std::stop_token stop) {
  options.bound = to_duration("bound", bound);
  options.arrivals = measure::parse_arrival_kind(arrivals);
  options.seed = seed;
  options.generators = generators;
  options.window = to_duration("window", window);
  options.rank_tolerance = rank_tolerance;
  options.stop = std::move(stop);
}

}  // namespace headrace::python
