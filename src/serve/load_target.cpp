#include "serve/load_target.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "headrace/base/error.hpp"
#include "headrace/device/topology.hpp"

namespace headrace::serve::detail {

QuerySet::QuerySet(const Operator& op, std::uint64_t seed, std::size_t count)
    : count_(count),
      query_bytes_(op.query_bytes),
      answer_bytes_(op.answer_bytes),
      queries_(count * op.query_bytes),
      answers_(count * op.answer_bytes) {
  if (!op.sample)
    throw UsageError(fmt::format("operator {} has no sample queries, so no load can be generated for it", op.name));
  const LoadedState state = op.load(Device::parse("cpu"));
  for (std::size_t i = 0; i < count; ++i) {
    op.sample(seed * count + i, queries_.data() + i * query_bytes_);
    answer_here(op, state, queries_.data() + i * query_bytes_, answers_.data() + i * answer_bytes_);
    if (state.has_failed()) {
      throw DeviceError(Errc::device_fault,
                        fmt::format("operator {} could not answer its sample query {}", op.name, seed * count + i));
    }
  }
}

std::vector<EngineTarget> connect_targets(Engine& engine, const QuerySet& queries, std::uint32_t count) {
  std::vector<EngineTarget> targets;
  const bool verify = engine.plan().schedule != Schedule::none;
  for (std::uint32_t i = 0; i < count; ++i) targets.emplace_back(engine.connect(), queries, verify);
  return targets;
}

Plan beside_generators(Plan plan, std::uint32_t generators) {
  constexpr Duration kAwake = std::chrono::milliseconds(10);
  plan.clients_max = std::max(plan.clients_max, generators);
  plan.first_processor = generators;
  const std::size_t threads = plan.host_threads() + generators;
  if (threads <= Topology::machine().processors().size()) plan.spin = std::max(plan.spin, kAwake);
  return plan;
}

std::vector<Processor> generator_processors(Device device, const Plan& plan, std::uint32_t generators) {
  if (plan.binding == Binding::none) return {};
  auto order = Topology::machine().by_cache_distance(device.properties().numa_node);
  order.resize(std::min<std::size_t>(order.size(), generators));
  return order;
}

}  // namespace headrace::serve::detail
