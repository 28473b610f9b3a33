#include "serve/load_session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "headrace/base/detail/process.hpp"
#include "headrace/base/error.hpp"
#include "serve/load_target.hpp"

namespace headrace::serve {

namespace {

std::uint32_t checked_generators(std::uint32_t generators) {
  if (generators < 1 || generators > 64) {
    throw UsageError(fmt::format("generators must be 1 to 64, not {}", generators));
  }
  return generators;
}

}  // namespace

struct LoadSession::State {
  State(Device device, Operator op, Plan plan, std::uint32_t generators, std::uint64_t seed)
      : queries(op, seed, detail::load_queries(op)),
        engine(device, std::move(op), detail::beside_generators(std::move(plan), generators)),
        targets(detail::connect_targets(engine, queries, generators)),
        processors(detail::generator_processors(device, engine.plan(), generators)) {}

  Birth birth;
  detail::QuerySet queries;
  Engine engine;
  std::vector<detail::EngineTarget> targets;
  std::vector<Processor> processors;
};

LoadSession::LoadSession(Device device, Operator op, Plan plan, std::uint32_t generators, std::uint64_t seed)
    : state_(std::make_unique<State>(device, std::move(op), std::move(plan), checked_generators(generators), seed)) {}
LoadSession::~LoadSession() = default;
LoadSession::LoadSession(LoadSession&&) noexcept = default;
LoadSession& LoadSession::operator=(LoadSession&&) noexcept = default;

measure::LoadResult LoadSession::run(const measure::LoadOptions& options) {
  state_->birth.require("running a load");
  measure::LoadOptions load = options;
  load.bind_to = state_->processors;
  return measure::open_loop<detail::EngineTarget>(state_->targets, load);
}

EngineStatistics LoadSession::statistics() const { return state_->engine.statistics(); }

void LoadSession::stop() noexcept { state_->engine.stop(); }

PlanLoad load(Device device, const Operator& op, const Plan& plan, const measure::LoadOptions& options,
              std::uint32_t generators) {
  measure::validate(options);
  validate(plan, device, op);
  PlanLoad result;
  result.roofs = measure_roofs(device, op, checked_generators(generators));
  const double ceiling = result.roofs.generator * generators;
  const bool trace = options.arrivals == measure::ArrivalKind::trace;
  if (!trace && options.rate_per_second > ceiling) {
    throw UsageError(
        fmt::format("{:.0f} queries/s are more than {} generator thread{} can generate on this machine ({:.0f}); raise "
                    "--generators or "
                    "lower --rate",
                    options.rate_per_second, generators, generators == 1 ? "" : "s", ceiling));
  }
  LoadSession session(device, op, plan, generators, options.seed);
  result.load = session.run(options);
  result.stages = session.statistics().stages;
  if (options.stop.stop_requested()) return result;
  session.stop();
  const Roofs again = measure_roofs(device, op, generators);
  result.roofs_disturbed = why_disturbed(result.roofs, again);
  result.roofs = higher(result.roofs, again);
  return result;
}

}  // namespace headrace::serve
