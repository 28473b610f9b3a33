#include "measure/strategy_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "headrace/base/bytes.hpp"
#include "headrace/base/error.hpp"

namespace headrace::measure {

namespace {

/// What the driver moves at the least.
constexpr std::size_t kSmallPageBytes = 4 * kKiB;
/// Each piece costs a few calls of some microseconds, and the driver memory.
constexpr std::size_t kPiecesMax = std::size_t{1} << 18;

std::vector<bool> on_host(const std::vector<Place>& places) {
  std::vector<bool> made(places.size());
  for (std::size_t i = 0; i < places.size(); ++i) made[i] = places[i].is_host();
  return made;
}

/// Which pieces are on the host, so many of `count` that the rest fits the budget, spread evenly.
std::vector<bool> split(Device device, std::size_t budget_bytes, std::size_t piece_bytes, std::size_t count) {
  // A placement thinks in pages of spans; it splits pieces of any size alike.
  return on_host(Placement::budget(device, budget_bytes / piece_bytes * kPageBytes).pages(count));
}

/// Calls visit(first, count, on host) for each run of pieces in one place.
template <class Visit>
void for_each_run(const std::vector<bool>& host, Visit visit) {
  for (std::size_t first = 0; first < host.size();) {
    std::size_t end = first + 1;
    while (end < host.size() && host[end] == host[first]) ++end;
    visit(first, end - first, host[first]);
    first = end;
  }
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
    case Strategy::prefetched: {
      granule_bytes_ = plan.piece_bytes;
      on_host_ = split(device, plan.budget_bytes, plan.piece_bytes, bytes / plan.piece_bytes);
      auto& memory = memory_.emplace<ManagedMemory>(device, bytes);
      hint(stream, memory, plan);
      data_ = memory.data();
      break;
    }
    case Strategy::interleaved:
    case Strategy::by_budget: {
      const auto placement = plan.strategy == Strategy::by_budget && !plan.heat.empty()
                                 ? Placement::budget(device, plan.budget_bytes, plan.heat)
                                 : Placement::budget(device, plan.budget_bytes);
      std::vector<Place> pages = placement.pages(plan.page_count);
      if (plan.backwards) std::ranges::reverse(pages);
      const auto& span = memory_.emplace<Span>(device, bytes, Placement::map(pages));
      on_host_ = on_host(span.places());
      data_ = span.data();
      break;
    }
  }
}

void StrategyMemory::hint(StreamRef stream, ManagedMemory& memory, const StrategyPlan& plan) {
  constexpr std::string_view kDoing = "giving hints for managed memory";
  std::size_t runs = 0;
  for_each_run(on_host_, [&](std::size_t, std::size_t, bool) { ++runs; });
  if (runs > kPiecesMax) {
    throw DeviceError(Errc::not_supported,
                      fmt::format("{} parts of {} in turn on device and host: the driver is told of each, and more "
                                  "than {} take too long; take larger pages or a smaller budget",
                                  runs, format_bytes(plan.piece_bytes), kPiecesMax));
  }
  memory.keep_mapped(0, memory.bytes()).or_throw(kDoing);
  const Place device = Place::on(stream.device());
  for_each_run(on_host_, [&](std::size_t first, std::size_t count, bool host) {
    const Place place = host ? Place::host() : device;
    const std::size_t offset = first * plan.piece_bytes;
    const std::size_t bytes = count * plan.piece_bytes;
    memory.prefer(offset, bytes, place).or_throw(kDoing);
    memory.prefetch(stream, offset, bytes, place).or_throw(kDoing);
  });
  stream.wait().or_throw(kDoing);
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
