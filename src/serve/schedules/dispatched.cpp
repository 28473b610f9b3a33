#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "headrace/base/error.hpp"
#include "serve/direct_memory.hpp"
#include "serve/resident.hpp"
#include "serve/schedules/schedules.hpp"

/// The dispatched schedule: a resident pool of blocks takes queries from where the clients write them.
namespace headrace::serve::detail {

namespace {

const Kernel& pool_kernel(const EngineState& engine) {
  return engine.plan.answer_inline ? engine.op.pool_inline : engine.op.pool;
}

/// Workers of a pool of blocks of `threads` threads, besides one that hands queries out: as the plan says, or those
/// that its share of the device holds. Throws UsageError.
std::uint32_t worker_count(const EngineState& engine, std::uint32_t threads) {
  const Plan& plan = engine.plan;
  const Kernel& kernel = pool_kernel(engine);
  if (plan.workers == 0) {
    return ResidentKernel::block_count_in_share(engine.device, kernel, threads, 1, plan.share,
                                                fmt::format("the resident pool of {}", engine.op.name));
  }
  return ResidentKernel::block_count(
      engine.device, kernel, threads, 1, plan.workers,
      fmt::format("plan: {} blocks of {} threads of {}", plan.workers, threads, engine.op.name));
}

/// The pool of one engine.
class Pool final : public Resident {
 public:
  /// Takes everything that the kernel will use. Throws DeviceError when the device has no room.
  explicit Pool(const EngineState& engine)
      : engine_(engine),
        memory_(*engine.direct_memory),
        oldest_(engine.direct_lanes.size()),
        // Blocks finish the query that they are at, whether it is asked for at once or not.
        kernel_(
            engine.device, [this](bool /*at_once*/) { ResidentKernel::tell(*memory_.stop_word(), 1); },
            StreamOptions{.priority = Priority::high}) {
    kernel_.keep(engine.direct_memory);
    kernel_.keep(engine.loaded.owner);
    LaunchShape shape = engine.plan.shape(engine.op.shape);
    constexpr std::uint32_t kWholeTeams = 32;  // block 0 works in teams
    shape.threads = static_cast<std::uint32_t>(align_up(shape.threads, kWholeTeams));
    DispatchView view = memory_.view();
    const LaunchShape pool{.blocks = worker_count(engine, shape.threads) + 1, .threads = shape.threads};
    view.queue_log2 = queue_log2(view);
    allocate(view);
    std::vector<std::byte> state = engine.loaded.bytes;
    const std::array<void*, 2> arguments{state.data(), &view};
    const auto doing = fmt::format("starting the resident pool of {} on {}", engine.op.name, engine.device.name());
    const auto launch = [&](StreamRef stream) { return stream.launch_resident(pool_kernel(engine), pool, arguments); };
    kernel_.run(launch).or_throw(doing);
  }

  /// The pool has ended unasked, its block 0 is silent, or a query is there for too long.
  [[nodiscard]] Status look(Time now) noexcept override {
    const Status beats = kernel_.look(memory_.heartbeat(), engine_.plan.hang_after, now);
    if (!beats) return beats;
    for (std::size_t i = 0; i < oldest_.size(); ++i) {
      const DirectLane& lane = *engine_.direct_lanes[i];
      const std::uint64_t position = lane.first_unanswered(oldest_[i].count);
      const bool busy = position < lane.submitted();
      if (oldest_[i].exceeds(engine_.plan.hang_after, position, busy, now)) return Errc::hung;
    }
    return {};
  }

  [[nodiscard]] ResidentKernel& kernel() noexcept override { return kernel_; }

 private:
  /// So many that block 0 seldom has to ask whether a half of the queue has been read.
  static constexpr std::size_t kEntriesMin = 4096;

  /// Throws UsageError when parts of half the queue cannot be counted.
  [[nodiscard]] static std::uint32_t queue_log2(const DispatchView& view) {
    const std::size_t entries = std::bit_ceil(std::max(2 * std::size_t{view.lane_count} * view.slots, kEntriesMin));
    const std::size_t parts = entries / 2 * view.blocks;
    if (parts > std::numeric_limits<std::uint32_t>::max()) {
      throw UsageError(fmt::format(
          "plan: {} clients with {} slots each, and {} blocks a query, are more than dispatched can count: take fewer "
          "slots",
          view.lane_count, view.slots, view.blocks));
    }
    return static_cast<std::uint32_t>(std::bit_width(entries - 1));
  }

  void allocate(DispatchView& view) {
    const std::size_t entries = (std::size_t{1} << view.queue_log2) * sizeof(std::uint64_t);
    const std::size_t slots = std::size_t{view.lane_count} * view.slots;
    const bool several = view.blocks > 1;
    const std::size_t seen = view.sample_every != 0 ? slots * sizeof(std::uint64_t) : 0;
    const std::size_t arrived = several ? slots * sizeof(std::uint32_t) : 0;
    constexpr std::size_t kTaken = 2 * DispatchView::kTakenStride * sizeof(std::uint32_t);
    const auto queue = std::make_shared<const Buffer>(
        ResidentKernel::zeroed(engine_.device, entries + 2 * kNoSharing + kTaken + seen + arrived));
    kernel_.keep(queue);
    view.entries = queue->as<std::uint64_t>();
    std::byte* at = queue->data() + entries;
    view.next_ticket = reinterpret_cast<std::uint64_t*>(at);
    view.leave = reinterpret_cast<std::uint32_t*>(at + kNoSharing);
    view.taken = reinterpret_cast<std::uint32_t*>(at + 2 * kNoSharing);
    view.seen_at = reinterpret_cast<std::uint64_t*>(at + 2 * kNoSharing + kTaken);
    if (!several) return;
    view.arrived = reinterpret_cast<std::uint32_t*>(at + 2 * kNoSharing + kTaken + seen);
    const auto parts = std::make_shared<const Buffer>(engine_.device, MemoryKind::device, slots * view.answer_stride);
    kernel_.keep(parts);
    view.parts = parts->data();
  }

  const EngineState& engine_;
  const DirectMemory& memory_;
  std::vector<Standstill> oldest_;  ///< The watchdog's own: the first query of each lane that has not been answered.
  ResidentKernel kernel_;
};

}  // namespace

void start_dispatched(EngineState& engine) {
  engine.watchdog = std::make_unique<Watchdog>(engine, std::make_unique<Pool>(engine));
}

}  // namespace headrace::serve::detail
