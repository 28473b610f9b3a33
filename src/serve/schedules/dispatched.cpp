#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/error.hpp"
#include "headrace/device/detail/own_multiprocessors.hpp"
#include "serve/direct_memory.hpp"
#include "serve/dispatch_queue.hpp"
#include "serve/resident.hpp"
#include "serve/schedules/schedules.hpp"

/// The dispatched schedule: a resident pool of blocks takes queries from where the clients write them.
namespace headrace::serve::detail {

namespace {

const Kernel& kernel_of(const EngineState& engine) { return engine.op.*pool_kernel(engine.plan); }

/// Number of blocks of `threads` threads that answer queries, besides the one that hands them out: as the plan says, or
/// as many as a share of a CPU device holds. Throws UsageError.
std::uint32_t worker_count(const EngineState& engine, std::uint32_t threads, double share) {
  const std::uint32_t wanted = engine.plan.workers;
  const std::string what = wanted == 0
                               ? fmt::format("the resident pool of {}", engine.op.name)
                               : fmt::format("plan: {} blocks of {} threads of {}", wanted, threads, engine.op.name);
  const std::uint32_t workers = ResidentKernel::block_count(engine.device, kernel_of(engine), threads, 1, wanted, what);
  return wanted != 0 ? workers : std::max(1U, static_cast<std::uint32_t>(workers * share));
}

/// The pool of one engine.
class Pool final : public Resident {
 public:
  /// Allocates everything that the kernel uses, and starts it. Throws DeviceError if the device has no room.
  explicit Pool(const EngineState& engine) : engine_(engine), memory_(*engine.direct_memory), view_(memory_.view()) {
    LaunchShape shape = engine.plan.shape(engine.op.shape);
    constexpr std::uint32_t kWholeTeams = 32;  // block 0 works in teams
    threads_ = static_cast<std::uint32_t>(align_up(shape.threads, kWholeTeams));
    queue_ = std::make_unique<DispatchQueue>(engine.device, view_);
    if (has_multiprocessors()) {
      own_ = std::make_shared<OwnMultiprocessors>(engine.device, kernel_of(engine), threads_, share_, name());
    }
    start();
  }

  /// Reports a fault if the pool ended without a stop, its block 0 missed its heartbeat, or a query has waited longer
  /// than hang_after.
  [[nodiscard]] Status look(Time now) noexcept override {
    const Status beats = kernel_->look(memory_.heartbeat(), engine_.plan.hang_after, now);
    if (!beats) return beats;
    for (std::size_t i = 0; i < oldest_.size(); ++i) {
      const DirectLane& lane = *engine_.direct_lanes[i];
      const std::uint64_t position = lane.first_unanswered(oldest_[i].count);
      const bool busy = position < lane.submitted();
      if (oldest_[i].exceeds(engine_.plan.hang_after, position, busy, now)) return Errc::hung;
    }
    return {};
  }

  /// Blocks finish their current queries. The other queries wait until the kernel runs again.
  void set_share(double share) override {
    kernel_->leave(engine_.plan.hang_after).or_throw(doing("ending"));
    memory_.clear_control();
    try {
      if (own_ != nullptr) own_->resize(share);
      share_ = share;
    } catch (const UsageError&) {
      start();
      throw;
    }
    start();
  }

  void ended() noexcept override { own_.reset(); }
  [[nodiscard]] ResidentKernel& kernel() noexcept override { return *kernel_; }

 private:
  [[nodiscard]] std::string name() const { return fmt::format("the resident pool of {}", engine_.op.name); }
  [[nodiscard]] std::string doing(std::string_view what) const {
    return fmt::format("{} {} on {}", what, name(), engine_.device.name());
  }
  /// Whether the pool takes whole multiprocessors of a GPU rather than a number of blocks.
  [[nodiscard]] bool has_multiprocessors() const {
    return engine_.plan.workers == 0 && !engine_.device.properties().host_cores;
  }

  void start() {
    // Blocks finish their current query, whether they must leave at once or not.
    kernel_ = std::make_unique<ResidentKernel>(
        engine_.device, [this](bool /*at_once*/) { ResidentKernel::tell(*memory_.stop_word(), 1); },
        StreamOptions{.priority = Priority::high});
    kernel_->keep(engine_.direct_memory);
    kernel_->keep(engine_.loaded.owner);
    kernel_->keep(queue_->memory());
    oldest_.assign(engine_.direct_lanes.size(), {});
    if (own_ == nullptr) {
      queue_->fill(view_, engine_.direct_lanes, nullptr);
      launch({.blocks = worker_count(engine_, threads_, share_) + 1, .threads = threads_});
      return;
    }
    const OwnMultiprocessors::Turn turn(engine_.device);
    queue_->fill(view_, engine_.direct_lanes, own_->whole_device() ? nullptr : &own_->set());
    launch({.blocks = own_->blocks_to_launch(), .threads = threads_, .on_own_multiprocessors = true});
  }

  void launch(LaunchShape shape) {
    std::vector<std::byte> state = engine_.loaded.bytes;
    const std::array<void*, 2> arguments{state.data(), &view_};
    kernel_->run([&](StreamRef stream) { return stream.launch_resident(kernel_of(engine_), shape, arguments); })
        .or_throw(doing("starting"));
    const Status started = kernel_->wait_started([this] { return memory_.heartbeat() != 0; },
                                                 std::max(engine_.plan.hang_after, ResidentKernel::kPatience));
    if (!started && own_ != nullptr) kernel_->keep(own_);  // the kernel may still begin
    if (!started && started.error().code == Errc::hung) {
      throw DeviceError(Errc::full, fmt::format("{}: it did not start; kernels of other programs or libraries may hold "
                                                "every multiprocessor; end those, or give the pool a share below 1",
                                                doing("starting")));
    }
    started.or_throw(doing("starting"));
  }

  const EngineState& engine_;
  const DirectMemory& memory_;
  DispatchView view_;
  std::uint32_t threads_ = 0;
  double share_ = engine_.plan.share;
  std::shared_ptr<OwnMultiprocessors> own_;  ///< Null on a CPU device, and if the plan sets the number of blocks.
  std::unique_ptr<DispatchQueue> queue_;
  std::vector<Standstill> oldest_;  ///< For the watchdog only: the first unanswered query of each lane.
  std::unique_ptr<ResidentKernel> kernel_;
};

}  // namespace

void start_dispatched(EngineState& engine) {
  engine.watchdog = std::make_unique<Watchdog>(engine, std::make_unique<Pool>(engine));
}

}  // namespace headrace::serve::detail
