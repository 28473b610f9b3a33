#include "serve/schedules/persistent_feeder.hpp"
#include "serve/schedules/schedules.hpp"

/// The persistent schedule: threads feed resident kernels, each through a box of a mailbox.
namespace headrace::serve::detail {

namespace {

/// Blocks that have room start within microseconds of a launch; only an overloaded machine takes this long.
constexpr Duration kStartWithin = std::chrono::seconds(10);

void require_room(const EngineState& engine, const Kernel& kernel, LaunchShape shape) {
  const Plan& plan = engine.plan;
  const std::uint64_t most = engine.device.resident_blocks_max(kernel, shape.threads);
  const std::uint64_t boxes = std::uint64_t{plan.threads} * plan.streams_per_thread;
  if (boxes * shape.blocks <= most) return;
  const std::uint64_t fitting = most / shape.blocks;
  const std::string largest =
      fitting == 0 ? std::string("not even 1 x 1 fits; use fewer blocks per query or fewer threads per block")
      : fitting < plan.threads ? fmt::format("the largest that fits is {} x 1", fitting)
                               : fmt::format("the largest that fits is {} x {}", plan.threads, fitting / plan.threads);
  throw UsageError(
      fmt::format("plan: threads x streams_per_thread = {} x {} resident kernels of {} blocks of {} threads "
                  "need {} blocks of operator {}, but {} holds {} at once: {}",
                  plan.threads, plan.streams_per_thread, shape.blocks, shape.threads, boxes * shape.blocks,
                  engine.op.name, engine.device.name(), most, largest));
}

template <class Mail>
void start(EngineState& engine) {
  const Kernel& kernel = engine.op.*persistent_kernel(engine.plan);
  require_room(engine, kernel, engine.plan.shape(engine.op.shape));
  auto boxes = std::make_unique<PersistentBoxes<Mail>>(engine, kernel);
  std::vector<std::shared_ptr<PersistentFeeder<Mail>>> feeders;
  for (std::uint32_t i = 0; i < engine.plan.threads; ++i) {
    feeders.push_back(std::make_shared<PersistentFeeder<Mail>>(engine, *boxes, i));
  }
  if (const Status started = boxes->start(engine, kStartWithin); !started) {
    if (started.error().code != Errc::hung) throw_error("starting the resident kernel", started.error());
    throw UsageError(
        fmt::format("plan: not all blocks of the resident kernels started on {}: other resident kernels, perhaps a "
                    "hung one, or another process occupy the device",
                    engine.device.name()));
  }
  engine.watchdog = std::make_unique<Watchdog>(engine, std::move(boxes));
  for (std::uint32_t i = 0; i < engine.plan.threads; ++i) {
    start_worker(engine, i, [feeder = feeders[i]] { feeder->run(); });
  }
}

}  // namespace

void start_persistent(EngineState& engine) {
  switch (engine.plan.doorbell) {
    case Doorbell::words: return start<Mailbox>(engine);
    case Doorbell::barrier: return start<BarrierMailbox>(engine);
  }
}

}  // namespace headrace::serve::detail
