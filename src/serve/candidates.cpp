#include "serve/candidates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "headrace/base/error.hpp"
#include "headrace/device/topology.hpp"
#include "serve/load_target.hpp"

namespace headrace::serve::detail {

namespace {

constexpr std::uint32_t kStreamsMost = 32;
constexpr std::uint32_t kGeneratorsMost = 64;
constexpr std::array<std::uint32_t, 3> kBatches{8, 32, 128};

/// Most engine threads next to the generators; async has a completing thread for each of them in addition.
std::uint32_t threads_most(Schedule schedule, const CandidateLimits& limits) {
  if (limits.single_thread) return 1;
  if (is_threadless(schedule)) {
    // Leave one processor to the rest of the machine if there are several.
    const std::uint32_t most = limits.processors > 2 ? limits.processors - 2 : limits.processors;
    return std::min(
        {limits.threads_max == 0 ? most : limits.threads_max, std::max(most, limits.generators), kGeneratorsMost});
  }
  if (limits.threads_max != 0) return limits.threads_max;
  const std::uint32_t left = limits.processors > limits.generators ? limits.processors - limits.generators : 1;
  return std::max(schedule == Schedule::async ? left / 2 : left, 2U);
}

}  // namespace

std::uint32_t resident_queries_of(Device device, const Operator& op) {
  if (device.properties().host_cores) return 2 * static_cast<std::uint32_t>(Topology::machine().processors().size());
  const Operator here = linked(op, device);
  return std::max(1U, device.resident_blocks_max(here.kernel, here.shape.threads) / std::max(1U, here.shape.blocks));
}

std::size_t in_flight_each(const Plan& plan, std::uint32_t generators, std::uint32_t resident) {
  const std::size_t batches = is_threadless(plan.schedule) ? generators : plan.parallelism();
  const std::size_t worked_on = plan.schedule == Schedule::dispatched ? resident : batches * plan.batch_max;
  return std::clamp<std::size_t>(2 * worked_on / generators, 2, std::max(2U, plan.slots / 2));
}

CandidateLimits limits_for(Device device, const Operator& op, const PlanSpaceOptions& options) {
  CandidateLimits limits;
  limits.processors = static_cast<std::uint32_t>(Topology::machine().processors().size());
  limits.generators = options.single_thread ? 1 : options.generators;
  limits.threads_max = options.threads_max;
  limits.single_thread = options.single_thread;
  limits.resident = resident_queries_of(device, op);
  limits.bound = options.bound;
  return limits;
}

void require_valid(std::string_view who, const RateSearchOptions& options) {
  if (options.arrivals == measure::ArrivalKind::trace) {
    throw UsageError(fmt::format("{} needs poisson or constant arrivals, because a trace sets its own rate", who));
  }
  if (options.bound <= Duration::zero()) throw UsageError("a latency bound must be above 0");
  if (options.window <= Duration::zero()) throw UsageError("a window must last longer than 0 s");
  if (options.generators < 1 || options.generators > 64) {
    throw UsageError(fmt::format("generators must be 1 to 64, not {}", options.generators));
  }
}

std::vector<std::uint32_t> doubling(std::uint32_t most) {
  std::vector<std::uint32_t> counts;
  for (std::uint32_t count = 1; count < most; count *= 2) counts.push_back(count);
  counts.push_back(std::max(most, 1U));
  return counts;
}

Axes axes_of(const Rung& rung, const CandidateLimits& limits) {
  Axes axes;
  if (rung.many_threads) axes.threads = doubling(threads_most(rung.plan.schedule, limits));
  if (rung.many_streams && rung.plan.schedule != Schedule::dispatched) {
    axes.streams = doubling(std::min(kStreamsMost, limits.resident));
  }
  if (rung.many_batches) axes.batches.assign(kBatches.begin(), kBatches.end());
  return axes;
}

Candidate make_candidate(Plan plan, std::uint32_t threads, std::uint32_t streams, std::uint32_t batch,
                         const CandidateLimits& limits) {
  Candidate made;
  const bool clients_only = is_threadless(plan.schedule);
  made.generators = clients_only ? threads : limits.generators;
  plan.threads = clients_only ? 1 : threads;
  plan.streams_per_thread = streams;
  plan.batch_max = batch;
  // Waiting longer than this for a full batch would use up the bound on p99.
  if (batch > 1 && plan.batch_age == Duration::zero() && !clients_only) plan.batch_age = limits.bound / 10;
  plan.clients_max = made.generators;
  made.in_flight = in_flight_each(plan, made.generators, limits.resident);
  made.plan = beside_generators(std::move(plan), made.generators);
  return made;
}

double usable_capacity(double per_second, double in_flight, Duration bound) {
  if (per_second <= 0) return 0;
  constexpr double kLeast = 0.25;  // a load below this has no queue that could shrink
  const double latency = in_flight / per_second;
  return per_second * std::clamp(std::chrono::duration<double>(bound).count() / latency, kLeast, 1.0);
}

std::vector<Sized> sweep(const Plan& plan, const Axes& axes, const CandidateLimits& limits,
                         const std::function<double(const Candidate&)>& capacity, std::string& refusal,
                         const std::stop_token& stop) {
  constexpr double kMore = 1.03;
  constexpr int kNoBetter = 2;
  std::vector<Sized> found;
  for (const std::uint32_t threads : axes.threads) {
    for (const std::uint32_t batch : axes.batches) {
      double best = 0;
      int no_better = 0;
      for (const std::uint32_t streams : axes.streams) {
        // Twice the resident queries hide every copy; more gain nothing.
        const bool too_many = streams > 1 && std::uint64_t{threads} * streams > 2 * std::uint64_t{limits.resident};
        if (stop.stop_requested() || no_better == kNoBetter || too_many) break;
        Sized next{make_candidate(plan, threads, streams, batch, limits), {threads, streams, batch, 0}, 0};
        try {
          next.capacity.per_second = capacity(next.candidate);
        } catch (const Exception& error) {
          if (refusal.empty()) refusal = error.what();
        }
        const auto in_flight = static_cast<double>(next.candidate.in_flight * next.candidate.generators);
        next.usable = usable_capacity(next.capacity.per_second, in_flight, limits.bound);
        no_better = next.usable > kMore * best ? 0 : no_better + 1;
        best = std::max(best, next.usable);
        found.push_back(std::move(next));
      }
    }
  }
  std::ranges::stable_sort(found, std::ranges::greater{}, &Sized::usable);
  return found;
}

}  // namespace headrace::serve::detail
