#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "headrace/base/error.hpp"
#include "headrace/device/topology.hpp"
#include "serve/direct_memory.hpp"
#include "serve/resident.hpp"
#include "serve/schedules/schedules.hpp"

/// The dispatched schedule: a resident pool of blocks takes queries from where the clients write them.
namespace headrace::serve::detail {

namespace {

const Kernel& pool_kernel(const EngineState& engine) {
  return engine.plan.answer_inline ? engine.op.pool_inline : engine.op.pool;
}

/// Blocks that answer queries, besides the one that hands them out.
std::uint32_t worker_count(const EngineState& engine, std::uint32_t threads) {
  const std::uint32_t fit = engine.device.resident_blocks_max(pool_kernel(engine), threads);
  const std::uint32_t most = fit > 0 ? fit - 1 : 0;
  if (engine.plan.workers > most || most == 0) {
    throw UsageError(
        fmt::format("plan: {} blocks of {} threads of {} cannot be resident on {}: at most {} and the one that "
                    "hands queries out",
                    engine.plan.workers, threads, engine.op.name, engine.device.name(), most),
        Errc::not_supported);
  }
  if (engine.plan.workers != 0) return engine.plan.workers;
  if (!engine.device.properties().host_cores) return most;
  // A CPU device answers with the processors that clients and block 0 leave.
  const auto processors = static_cast<std::uint32_t>(Topology::machine().processors().size());
  return std::clamp(processors, 3U, most + 2) - 2;
}

/// The pool of one engine. Client lanes and their memory are the engine's, which outlives it.
class Pool final : public Resident {
 public:
  /// Takes everything that the kernel will use. Throws DeviceError when the device has no room.
  explicit Pool(const EngineState& engine)
      : engine_(engine),
        memory_(*engine.direct_memory),
        oldest_(engine.direct_lanes.size()),
        stream_(engine.device, StreamOptions{.priority = Priority::high}),
        ended_(engine.device) {
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
    stream_.launch_resident(pool_kernel(engine), pool, arguments).or_throw(doing);
    stream_.record(ended_).or_throw(doing);
  }

  /// Waits for the pool: only once it is gone(), or when nothing but the stop word is between it and its end.
  ~Pool() override { Pool::ask_to_leave(true); }

  /// The pool has ended unasked, its block 0 is silent, or a query is there for too long.
  [[nodiscard]] Status look(Time now) noexcept override {
    const auto ended = stream_.ready();
    if (!ended) return ended.error();
    if (*ended) return Errc::device_fault;  // nobody told it to leave
    if (const std::uint32_t beat = memory_.heartbeat(); beat != beat_) {
      beat_ = beat;
      beat_at_ = now;
    } else if (now - beat_at_ > engine_.plan.hang_after) {
      return Errc::hung;
    }
    for (std::size_t i = 0; i < oldest_.size(); ++i) {
      const DirectLane& lane = *engine_.direct_lanes[i];
      Oldest& oldest = oldest_[i];
      const std::uint64_t position = lane.first_unanswered(oldest.position);
      if (position != oldest.position || position >= lane.submitted()) {
        oldest = {position, now};
      } else if (now - oldest.since > engine_.plan.hang_after) {
        return Errc::hung;
      }
    }
    return {};
  }

  /// Blocks finish the query that they are at, whether it is asked for at once or not.
  void ask_to_leave(bool /*at_once*/) noexcept override {
    std::atomic_ref(*memory_.stop_word()).store(1, std::memory_order_release);  // pairs with Dispatcher
  }

  [[nodiscard]] bool gone() noexcept override {
    const auto ended = ended_.ready();
    return ended ? *ended : true;  // a device that failed runs nothing
  }

 private:
  /// So many that block 0 seldom has to ask whether a half of the queue has been read.
  static constexpr std::size_t kEntriesMin = 4096;

  /// The first query of a lane that has not been answered, and since when it is that.
  struct Oldest {
    std::uint64_t position = 0;
    Time since = SteadyClock::now();
  };

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
    queue_ = Buffer(engine_.device, MemoryKind::device, entries + 2 * kNoSharing + kTaken + seen + arrived);
    // Copied, not filled: a kernel that fills could wait for blocks that another resident kernel holds.
    const std::vector<std::byte> zeros(queue_.bytes());
    stream_.copy(queue_.data(), zeros.data(), zeros.size()).or_throw("clearing the queue of a resident pool");
    stream_.wait().or_throw("clearing the queue of a resident pool");
    view.entries = queue_.as<std::uint64_t>();
    std::byte* at = queue_.data() + entries;
    view.next_ticket = reinterpret_cast<std::uint64_t*>(at);
    view.leave = reinterpret_cast<std::uint32_t*>(at + kNoSharing);
    view.taken = reinterpret_cast<std::uint32_t*>(at + 2 * kNoSharing);
    view.seen_at = reinterpret_cast<std::uint64_t*>(at + 2 * kNoSharing + kTaken);
    if (!several) return;
    view.arrived = reinterpret_cast<std::uint32_t*>(at + 2 * kNoSharing + kTaken + seen);
    parts_ = Buffer(engine_.device, MemoryKind::device, slots * view.answer_stride);
    view.parts = parts_.data();
  }

  const EngineState& engine_;
  const DirectMemory& memory_;
  Buffer queue_;
  Buffer parts_;
  // The watchdog's own.
  std::vector<Oldest> oldest_;
  std::uint32_t beat_ = 0;  ///< The beat of block 0, as last seen, and when it changed.
  Time beat_at_ = SteadyClock::now();

  Stream stream_;
  Event ended_;
};

}  // namespace

void start_dispatched(EngineState& engine) {
  engine.watchdog = std::make_unique<Watchdog>(engine, std::make_shared<Pool>(engine));
}

}  // namespace headrace::serve::detail
