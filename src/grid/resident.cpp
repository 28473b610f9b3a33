#include "grid/resident.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "headrace/base/error.hpp"
#include "headrace/device/topology.hpp"

namespace headrace::grid {

namespace {

constexpr std::uint32_t kThreads = 256;
constexpr Duration kNapMost = std::chrono::milliseconds(1);

/// Blocks of a CPU device are threads that spin while they wait: few, and at least two, so that they do meet.
[[nodiscard]] std::uint32_t most_blocks(const Part& part, const StencilProgram& program, std::size_t part_count) {
  const std::uint32_t fitting = part.device().resident_blocks_max(program.resident, kThreads);
  if (fitting == 0) {
    throw UsageError(fmt::format("mode 'resident': no block of stencil {} can be resident on {}: use mode 'streams'",
                                 program.name, part.device().name()),
                     Errc::not_supported);
  }
  if (part.device().kind() == DeviceKind::cuda) return fitting;
  const std::size_t processors = Topology::machine().processors().size() / part_count;
  return std::min(fitting, static_cast<std::uint32_t>(std::clamp<std::size_t>(processors, 2, 8)));
}

/// Adds launches of one step of a cycle. Those of one phase need not wait for each other.
void append(std::vector<ResidentStage>& stages, const Launches& made, std::size_t step) {
  const std::vector<PhaseLaunch>& launches = made.phases;
  for (std::size_t l = 0; l < launches.size(); ++l) {
    const PhaseLaunch& launch = launches[l];
    ResidentStage& stage = stages.emplace_back();
    stage.region = launch.region;
    stage.region.step = step;
    stage.phase = static_cast<std::uint32_t>(launch.phase);
    stage.boxes = launch.shape.items;
    stage.meet = l + 1 == launches.size() || launches[l + 1].phase != launch.phase ? 1 : 0;
  }
}

[[nodiscard]] ResidentCycle append_cycle(std::vector<ResidentStage>& stages, const CyclePlan& plan) {
  const auto here = [&] { return static_cast<std::uint32_t>(stages.size()); };
  ResidentCycle cycle;
  cycle.steps = static_cast<std::uint32_t>(plan.body.size());
  cycle.body = here();
  for (std::size_t step = 0; step < plan.body.size(); ++step) append(stages, plan.body[step].launches, step);
  cycle.border = here();
  append(stages, plan.border, plan.body.size() - 1);
  cycle.interior = here();
  append(stages, plan.interior, plan.body.size() - 1);
  cycle.end = here();
  return cycle;
}

/// As many blocks as the largest stage has use for.
[[nodiscard]] std::uint32_t useful_blocks(const std::vector<CyclePlan>& plans) {
  std::uint32_t most = 1;
  const auto look = [&](const Launches& launches) {
    for (const PhaseLaunch& launch : launches.phases) most = std::max(most, launch.shape.blocks * launch.shape.items);
  };
  for (const CyclePlan& plan : plans) {
    for (const Leg& leg : plan.body) look(leg.launches);
    look(plan.border);
    look(plan.interior);
  }
  return most;
}

}  // namespace

ResidentPart::ResidentPart(Part& part, Meeting& meeting, const StencilProgram& program, std::size_t part_count,
                           Duration wait_limit)
    : part_(part),
      meeting_(meeting),
      program_(program),
      wait_limit_(wait_limit),
      blocks_max_(most_blocks(part, program, part_count)) {}

void ResidentPart::take_plans() {
  std::vector<ResidentStage> stages;
  std::vector<ResidentCycle> cycles;
  for (const CyclePlan& plan : part_.plans().amid) cycles.push_back(append_cycle(stages, plan));
  stages_ = upload(part_, stages);
  cycles_ = std::move(cycles);
  const bool on_cuda = part_.device().kind() == DeviceKind::cuda;
  blocks_ = on_cuda ? std::min(blocks_max_, useful_blocks(part_.plans().amid)) : blocks_max_;
}

Status ResidentPart::run(const ResidentSteps& steps) noexcept {
  if (steps.count == 0) return {};
  ResidentView view;
  static_cast<MeetingView&>(view) = meeting_.view();
  view.cycles = (steps.count + steps.redundant - 1) / steps.redundant;
  view.table = part_.table();
  view.longest = cycles_.back();
  view.last = cycles_[static_cast<std::size_t>(steps.count - (view.cycles - 1) * steps.redundant) - 1];
  view.stages = stages_.as<ResidentStage>();
  view.cycles_done = steps.cycles_done;
  view.steps_done = steps.steps_done;
  void* arguments[] = {part_.stencil(), &view, nullptr};
  meeting_.begin();
  const StreamRef stream = part_.stream();
  Status status = stream.fill(view.counters, 0, sizeof(ResidentCounters));
  if (status) status = stream.launch_resident(program_.resident, {.blocks = blocks_, .threads = kThreads}, arguments);
  if (status) status = wait_for_kernel();
  if (status && meeting_.gave_up()) status = Errc::hung;
  if (status) part_.advance(steps.count);
  return status;
}

/// The device alone cannot end a kernel that never begins or never leaves, so this does not wait in the stream.
Status ResidentPart::wait_for_kernel() noexcept {
  const StreamRef stream = part_.stream();
  constexpr int kPolls = 256;  // small grids are quick: poll first, and then sleep
  std::uint64_t seen = 0;
  const Time began = SteadyClock::now();
  Time changed = began;
  for (int poll = 0;; ++poll) {
    const Result<bool> ready = stream.ready();
    if (!ready) return ready.error();
    if (*ready) return stream.wait();
    if (poll < kPolls) {
      std::this_thread::yield();
      continue;
    }
    const Time now = SteadyClock::now();
    const std::uint64_t now_at = meeting_.beat();
    if (now_at != seen) changed = now;
    seen = now_at;
    // A kernel that waits gives up by itself, and then knows for whom.
    if (now - changed > 2 * wait_limit_) return Errc::hung;
    std::this_thread::sleep_for(std::clamp<Duration>((now - began) / 64, std::chrono::microseconds(20), kNapMost));
  }
}

ResidentGrid::ResidentGrid(const std::vector<std::unique_ptr<Part>>& parts, Meetings& meetings,
                           const StencilProgram& program, Duration wait_limit)
    : meetings_(meetings) {
  for (std::size_t part = 0; part < parts.size(); ++part) {
    parts_.push_back(
        std::make_unique<ResidentPart>(*parts[part], meetings.of(part), program, parts.size(), wait_limit));
  }
}

void ResidentGrid::take_plans() {
  for (const auto& part : parts_) part->take_plans();
}

Status ResidentGrid::run(std::size_t part, const ResidentSteps& steps) noexcept {
  const Status status = parts_[part]->run(steps);
  if (status) return stopped_.load(std::memory_order_acquire) ? Status(Errc::cancelled) : Status();
  stopped_.store(true, std::memory_order_release);
  meetings_.stop();
  // For a kernel that was started before something failed; who hung may never end.
  if (status.error().code != Errc::hung) static_cast<void>(parts_[part]->part().wait());
  return status;
}

void require_resident(const Decomposition& decomposition, const Share& share, const Flow& flow, Push push) {
  if (share.ranks() != nullptr) {
    throw UsageError("mode 'resident' is of one process: over several ranks use mode 'streams'", Errc::not_supported);
  }
  const std::vector<Device>& devices = share.devices();
  if (push == Push::copy || push == Push::host) {
    throw UsageError(
        fmt::format("mode 'resident' stores borders from its kernel, which push '{}' does not: use push "
                    "'store' or 'automatic', or mode 'streams'",
                    to_string(push)));
  }
  const MeetingObstacle obstacle = obstacle_to_meeting(decomposition, devices, flow.ghosts);
  if (obstacle.shared) {
    throw UsageError(
        fmt::format("mode 'resident' has one part a device, because kernels that wait for each other may "
                    "not be started at once on {}, which has several: use one part there, or mode 'streams'",
                    obstacle.shared->name()),
        Errc::not_supported);
  }
  if (obstacle.unreached) {
    const auto& [from, to] = *obstacle.unreached;
    throw UsageError(fmt::format("mode 'resident' needs peer access from {} to {}, which they have not: use mode "
                                 "'streams'",
                                 from.name(), to.name()),
                     Errc::not_supported);
  }
}

}  // namespace headrace::grid
