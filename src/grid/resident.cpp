#include "grid/resident.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "headrace/base/error.hpp"
#include "headrace/device/topology.hpp"

namespace headrace::grid {

namespace {

constexpr std::uint32_t kResidentThreads = 256;

/// The blocks of a CPU device are threads that spin while they wait: use few, but at least two so that they do meet.
[[nodiscard]] std::uint32_t most_blocks(const Part& part, const StencilProgram& program, std::size_t part_count) {
  const std::uint32_t fitting = part.device().resident_blocks_max(program.resident, kResidentThreads);
  if (fitting == 0) {
    throw UsageError(
        fmt::format("mode 'resident' is not possible: no block of stencil {} can be resident on {}; use mode 'streams'",
                    program.name, part.device().name()),
        Errc::not_supported);
  }
  if (!part.device().properties().host_cores) return fitting;
  const std::size_t processors = Topology::machine().processors().size() / part_count;
  return std::min(fitting, static_cast<std::uint32_t>(std::clamp<std::size_t>(processors, 2, 8)));
}

/// Adds the launches of one step of a cycle. Launches of the same phase need not wait for each other.
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

/// As many blocks as the largest stage can use.
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

/// The table as if every field were the first in memory.
[[nodiscard]] FieldTable at_first_slot(FieldTable table) noexcept {
  std::fill(std::begin(table.slots), std::end(table.slots), std::uint8_t{0});
  return table;
}

/// Waits even if enqueueing has failed, because the stream may still write to memory that is freed afterwards.
void wait_or_throw(Part& part, const Status& enqueued) {
  const Status waited = part.stream().wait();
  (enqueued ? waited : enqueued).or_throw("setting up the resident kernel of " + part.device().name());
}

}  // namespace

ResidentPart::ResidentPart(Part& part, const StencilProgram& program, std::size_t part_count, Duration wait_limit)
    : part_(part),
      program_(program),
      wait_limit_(wait_limit),
      blocks_max_(most_blocks(part, program, part_count)),
      words_(part.device(), MemoryKind::mapped, sizeof(ResidentWords)),
      counters_(part.device(), MemoryKind::device, sizeof(ResidentCounters)),
      marks_(part.device(), MemoryKind::device, part.neighbours().size() * sizeof(ResidentMarks)),
      kernel_(part.device(), [this](bool /*at_once*/) { stop(); }) {
  *words_.as<ResidentWords>() = {};
  if (marks_.bytes() == 0) return;
  wait_or_throw(part, part.stream().fill(marks_.data(), 0, marks_.bytes()));
}

ResidentMarks* ResidentPart::marks_of(std::size_t other) const noexcept {
  const auto& neighbours = part_.neighbours();
  const auto found = std::ranges::find(neighbours, other, &Part::Neighbour::part);
  return marks_.as<ResidentMarks>() + (found - neighbours.begin());
}

void ResidentPart::meet(const std::vector<std::unique_ptr<ResidentPart>>& all) {
  std::vector<ResidentPiece> pieces;
  std::vector<ResidentNeighbour> neighbours;
  for (const Part::Neighbour& neighbour : part_.neighbours()) {
    const ResidentPart& other = *all[neighbour.part];
    const Device its = other.part_.device();
    if (its != part_.device()) access_.emplace_back(part_.device(), its);
    neighbours.push_back({.tell = other.marks_of(part_.number()), .heard = marks_of(neighbour.part)});
    if (neighbour.to == nullptr) continue;
    std::vector<BoxCopy> copies;
    neighbour.to->append_stores(at_first_slot(part_.table()), at_first_slot(other.part_.table()), copies);
    for (std::size_t c = 0; c < copies.size(); ++c) {
      pieces.push_back({.copy = copies[c],
                        .from_stride_bytes = part_.table().stride_bytes,
                        .to_stride_bytes = other.part_.table().stride_bytes,
                        .field = neighbour.to->pieces()[c].field});
    }
  }
  piece_count_ = static_cast<std::uint32_t>(pieces.size());
  pieces_ = upload(pieces);
  neighbours_ = upload(neighbours);
}

void ResidentPart::take_plans() {
  std::vector<ResidentStage> stages;
  std::vector<ResidentCycle> cycles;
  for (const CyclePlan& plan : part_.plans().amid) cycles.push_back(append_cycle(stages, plan));
  stages_ = upload(stages);
  cycles_ = std::move(cycles);
  const bool host_cores = part_.device().properties().host_cores;
  blocks_ = host_cores ? blocks_max_ : std::min(blocks_max_, useful_blocks(part_.plans().amid));
}

template <class Item>
Buffer ResidentPart::upload(const std::vector<Item>& items) const {
  Buffer buffer(part_.device(), MemoryKind::device, items.size() * sizeof(Item));
  if (items.empty()) return buffer;
  wait_or_throw(part_, part_.stream().copy(buffer.data(), items.data(), buffer.bytes()));
  return buffer;
}

Status ResidentPart::run(const ResidentSteps& steps) noexcept {
  if (steps.count == 0) return {};
  ResidentView view;
  view.cycles = (steps.count + steps.redundant - 1) / steps.redundant;
  view.table = part_.table();
  view.longest = cycles_.back();
  view.last = cycles_[static_cast<std::size_t>(steps.count - (view.cycles - 1) * steps.redundant) - 1];
  view.stages = stages_.as<ResidentStage>();
  view.pieces = pieces_.as<ResidentPiece>();
  view.neighbours = neighbours_.as<ResidentNeighbour>();
  view.counters = counters_.as<ResidentCounters>();
  view.words = words_.as<ResidentWords>();
  view.limit_ns = static_cast<std::uint64_t>(wait_limit_.count());
  view.cycles_done = steps.cycles_done;
  view.steps_done = steps.steps_done;
  view.piece_count = piece_count_;
  view.neighbour_count = static_cast<std::uint32_t>(part_.neighbours().size());
  void* arguments[] = {part_.stencil(), &view};
  auto& words = *words_.as<ResidentWords>();
  std::atomic_ref(words.beat).store(0, std::memory_order_relaxed);
  // Runs on a separate stream: all work on the part's own stream has already been waited for.
  Status status = kernel_.run([&](StreamRef stream) {
    const Status cleared = stream.fill(counters_.data(), 0, counters_.bytes());
    const LaunchShape shape{.blocks = blocks_, .threads = kResidentThreads};
    return cleared ? stream.launch_resident(program_.resident, shape, arguments) : cleared;
  });
  // A waiting kernel gives up by itself, and then reports for which part it waited.
  if (status) status = kernel_.wait_ended(words.beat, 2 * wait_limit_);
  if (status && ResidentKernel::heard(words.gave_up) != 0) status = Errc::hung;
  if (status) part_.advance(steps.count);
  return status;
}

std::optional<std::size_t> ResidentPart::waits_for() const noexcept {
  const std::uint32_t writer = ResidentKernel::heard(words_.as<ResidentWords>()->waits_for);
  if (writer == 0) return std::nullopt;
  if (writer == ResidentWords::kOwnBlocks) return part_.number();
  return part_.neighbours()[writer - ResidentWords::kNeighbour].part;
}

bool ResidentPart::has_begun() const noexcept { return ResidentKernel::heard(words_.as<ResidentWords>()->beat) != 0; }

void ResidentPart::stop() const noexcept { ResidentKernel::tell(words_.as<ResidentWords>()->stop, 1); }

ResidentGrid::ResidentGrid(const std::vector<std::unique_ptr<Part>>& parts, const StencilProgram& program,
                           Duration wait_limit)
    : wait_limit_(wait_limit) {
  for (const auto& part : parts) {
    parts_.push_back(std::make_unique<ResidentPart>(*part, program, parts.size(), wait_limit));
  }
  for (const auto& part : parts_) part->meet(parts_);
}

void ResidentGrid::take_plans() {
  for (const auto& part : parts_) part->take_plans();
}

Status ResidentGrid::run(std::size_t part, const ResidentSteps& steps) noexcept {
  const Status status = parts_[part]->run(steps);
  if (status) return stopped_.load(std::memory_order_acquire) ? Status(Errc::cancelled) : Status();
  stopped_.store(true, std::memory_order_release);
  for (const auto& other : parts_) other->stop();
  // The kernel may have started before the failure.
  static_cast<void>(parts_[part]->kernel().leave(ResidentKernel::kPatience));
  return status;
}

bool ResidentGrid::leave() noexcept {
  for (const auto& part : parts_) part->stop();
  for (const auto& part : parts_) static_cast<void>(part->kernel().leave(ResidentKernel::kPatience));
  return std::ranges::all_of(parts_, [](const auto& part) { return part->kernel().left(); });
}

void ResidentGrid::abandon(const std::shared_ptr<const void>& owner) noexcept {
  for (const auto& part : parts_) part->kernel().abandon(owner);
}

std::string ResidentGrid::why_hung(std::size_t part) const {
  // A part that did not answer may itself have waited for another, and a part that did not start delays all others.
  std::size_t silent = part;
  for (std::size_t hop = 0; hop < parts_.size(); ++hop) silent = parts_[silent]->waits_for().value_or(silent);
  const auto idle = std::ranges::find_if(parts_, [](const auto& its) { return !its->has_begun(); });
  if (idle != parts_.end()) silent = static_cast<std::size_t>(idle - parts_.begin());
  const ResidentPart& its = *parts_[silent];
  const char* how = !its.has_begun()  ? "its kernel has not started; check for another resident kernel on the device"
                    : its.waits_for() ? "its blocks did not meet at their barrier"
                                      : "its kernel makes no progress";
  return fmt::format("{}, which has part {} of {}, did not answer within {} s: {}", its.part().device().name(), silent,
                     parts_.size(), std::chrono::duration<double>(wait_limit_).count(), how);
}

void require_resident(const Decomposition& decomposition, const Share& share, const Flow& flow, Push push) {
  if (share.ranks() != nullptr) {
    throw UsageError("mode 'resident' works in one process only; over several ranks use mode 'streams'",
                     Errc::not_supported);
  }
  const std::vector<Device>& devices = share.devices();
  if (push == Push::copy || push == Push::host) {
    throw UsageError(
        fmt::format("mode 'resident' stores borders from its kernel, which push '{}' does not allow; use push 'store' "
                    "or 'automatic', or mode 'streams'",
                    to_string(push)));
  }
  for (std::size_t part = 0; part < devices.size(); ++part) {
    const auto before = devices.begin() + static_cast<std::ptrdiff_t>(part);
    if (devices[part].properties().host_cores || std::find(devices.begin(), before, devices[part]) == before) continue;
    throw UsageError(
        fmt::format("mode 'resident' allows one part per device, because kernels that wait for each other may not run "
                    "at the same time on {}, which has several parts; use one part there, or mode 'streams'",
                    devices[part].name()),
        Errc::not_supported);
  }
  for (const Exchange& exchange : decomposition.exchanges(flow.ghosts)) {
    for (const auto& [from, to] : {std::pair{devices[exchange.from], devices[exchange.to]},
                                   std::pair{devices[exchange.to], devices[exchange.from]}}) {
      if (from == to || peer_connection(from, to).access) continue;
      throw UsageError(
          fmt::format("mode 'resident' needs peer access from {} to {}, which is not available; use mode 'streams'",
                      from.name(), to.name()),
          Errc::not_supported);
    }
  }
}

}  // namespace headrace::grid
