#include "measure/strategy_memory.hpp"

#include <algorithm>

#include "headrace/base/detail/bytes.hpp"

namespace headrace::measure {

namespace {

/// The smallest unit that the driver moves.
constexpr std::size_t kSmallPageBytes = 4 * kKiB;

std::vector<bool> on_host(const std::vector<Place>& places) {
  std::vector<bool> made(places.size());
  for (std::size_t i = 0; i < places.size(); ++i) made[i] = places[i].is_host();
  return made;
}

/// The placement of the pages, by heat if there is any.
Placement placement_of(Device device, const StrategyPlan& plan) {
  if (plan.heat.empty()) return Placement::budget(device, plan.budget_bytes);
  return Placement::budget(device, plan.budget_bytes, plan.heat);
}

}  // namespace

StrategyMemory::StrategyMemory(StreamRef stream, const StrategyPlan& plan) : strategy_(plan.strategy) {
  const Device device = stream.device();
  const std::size_t bytes = plan.page_count * kPageBytes;
  switch (plan.strategy) {
    case Strategy::zero_copy: data_ = memory_.emplace<Buffer>(device, MemoryKind::mapped, bytes).data(); break;
    case Strategy::on_demand:
      granule_bytes_ = kSmallPageBytes;
      data_ = memory_.emplace<ManagedMemory>(device, bytes).data();
      break;
    case Strategy::prefetched: place_managed(stream, plan); break;
    case Strategy::by_budget:
      if (plan.piece_bytes < kPageBytes) {
        place_managed(stream, plan);
        break;
      }
      [[fallthrough]];
    case Strategy::interleaved: {
      std::vector<Place> pages = placement_of(device, plan).pages(plan.page_count);
      if (plan.backwards) std::ranges::reverse(pages);
      const auto& span = memory_.emplace<Span>(device, bytes, Placement::map(pages));
      on_host_ = on_host(span.places());
      data_ = span.data();
      break;
    }
  }
}

void StrategyMemory::place_managed(StreamRef stream, const StrategyPlan& plan) {
  const std::size_t bytes = plan.page_count * kPageBytes;
  const Placement placement = placement_of(stream.device(), plan);
  auto& memory = memory_.emplace<ManagedMemory>(stream.device(), bytes);
  memory.place(stream, placement, plan.piece_bytes);
  granule_bytes_ = plan.piece_bytes;
  on_host_ = on_host(placement.pages(bytes / plan.piece_bytes, plan.piece_bytes));
  data_ = memory.data();
}

void StrategyMemory::before_run(StreamRef stream) {
  if (strategy_ != Strategy::on_demand) return;
  auto& memory = std::get<ManagedMemory>(memory_);
  memory.prefetch(stream, 0, memory.bytes(), Place::host()).or_throw("moving managed memory to the host");
  stream.wait().or_throw("moving managed memory to the host");
}

Traffic StrategyMemory::traffic(const Touches& touches) const {
  Traffic made;
  for (std::size_t i = 0; i < touches.bytes.size(); ++i) {
    const std::uint64_t bytes = touches.bytes[i];
    const bool host = on_host_.empty() ? strategy_ == Strategy::zero_copy : on_host_[i];
    (host ? made.host_bytes : made.device_bytes) += bytes;
    if (strategy_ == Strategy::on_demand) made.host_bytes += std::min<std::uint64_t>(bytes, touches.granule_bytes);
  }
  return made;
}

}  // namespace headrace::measure
