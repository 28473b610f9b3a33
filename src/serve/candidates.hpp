#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/serve/detail/ladder.hpp"

/// The plans that a rung tries.
namespace headrace::serve::detail {

/// A plan with its load.
struct Candidate {
  Plan plan;
  std::uint32_t generators = 1;
  std::size_t in_flight = 2;  ///< Queries that each generator keeps outstanding while capacity is measured.
};

/// Limits of the candidates.
struct CandidateLimits {
  std::uint32_t processors = 1;
  std::uint32_t generators = 1;
  std::uint32_t threads_max = 0;  ///< 0: the processors that the generators leave, at least 2.
  bool single_thread = false;
  std::uint32_t resident = 1;  ///< Queries that the device can work on at once.
  Duration bound{};
};

/// The limits of this machine, that device and those options.
[[nodiscard]] CandidateLimits limits_for(Device device, const Operator& op, const PlanSpaceOptions& options);
/// Throws UsageError for options that no search can use.
/// @param who  the search, e.g. "a ladder"
void require_valid(std::string_view who, const RateSearchOptions& options);

/// Queries that the device can work on at once: the resident ones on a GPU, two per processor on a CPU device.
[[nodiscard]] std::uint32_t resident_queries_of(Device device, const Operator& op);

/// Queries that each generator keeps outstanding: just enough that no part of the device waits for the host, because
/// more would only add latency.
[[nodiscard]] std::size_t in_flight_each(const Plan& plan, std::uint32_t generators, std::uint32_t resident);

/// 1, 2, 4, ... up to `most`, which is always the last value.
[[nodiscard]] std::vector<std::uint32_t> doubling(std::uint32_t most);

/// Values to try for each choice. Without engine threads (is_threadless()), `threads` are generators.
struct Axes {
  std::vector<std::uint32_t> threads{1};
  std::vector<std::uint32_t> streams{1};
  std::vector<std::uint32_t> batches{1};
};
[[nodiscard]] Axes axes_of(const Rung& rung, const CandidateLimits& limits);

/// `plan` with these choices, next to its generators.
[[nodiscard]] Candidate make_candidate(Plan plan, std::uint32_t threads, std::uint32_t streams, std::uint32_t batch,
                                       const CandidateLimits& limits);

/// A candidate whose capacity has been measured.
struct Sized {
  Candidate candidate;
  Capacity capacity;
  double usable = 0;  ///< The usable_capacity() of it.
};

/// The part of a capacity that is usable within a latency bound. By Little's law a query takes in_flight / capacity on
/// average. If that exceeds the bound, proportionally less can be in flight; at least a quarter remains.
[[nodiscard]] double usable_capacity(double per_second, double in_flight, Duration bound);

/// Measures candidates: for each number of threads and batch size, increases streams until two steps in a row gain
/// nothing. A refused plan counts as 0; `refusal` keeps the first reason. Returns the best usable capacity first.
[[nodiscard]] std::vector<Sized> sweep(const Plan& plan, const Axes& axes, const CandidateLimits& limits,
                                       const std::function<double(const Candidate&)>& capacity, std::string& refusal,
                                       const std::stop_token& stop);

}  // namespace headrace::serve::detail
