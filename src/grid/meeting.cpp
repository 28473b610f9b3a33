#include "grid/meeting.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "headrace/base/error.hpp"

namespace headrace::grid {

namespace {

/// As if every field were the first in memory.
[[nodiscard]] FieldTable at_first_slot(FieldTable table) noexcept {
  std::fill(std::begin(table.slots), std::end(table.slots), std::uint8_t{0});
  return table;
}

[[nodiscard]] Buffer zeros(const Part& part, std::size_t bytes) { return upload(part, std::vector<std::byte>(bytes)); }

}  // namespace

Meeting::Meeting(const Part& part, Duration wait_limit)
    : part_(part),
      words_(part.device(), MemoryKind::mapped, sizeof(ResidentWords)),
      counters_(zeros(part, sizeof(ResidentCounters))),
      marks_(zeros(part, part.neighbours().size() * sizeof(ResidentMarks))) {
  words() = {};
  view_.limit_ns = static_cast<std::uint64_t>(wait_limit.count());
}

ResidentMarks* Meeting::marks_of(std::size_t other) const noexcept {
  const auto& neighbours = part_.neighbours();
  const auto found = std::ranges::find(neighbours, other, &Part::Neighbour::part);
  return marks_.as<ResidentMarks>() + (found - neighbours.begin());
}

void Meeting::meet(const std::vector<std::unique_ptr<Meeting>>& all) {
  std::vector<ResidentPiece> pieces;
  std::vector<ResidentNeighbour> neighbours;
  for (const Part::Neighbour& neighbour : part_.neighbours()) {
    const Meeting& other = *all[neighbour.part];
    const Device its = other.part_.device();
    if (its != part_.device()) access_.emplace_back(part_.device(), its);
    neighbours.push_back({.tell = other.marks_of(part_.number()), .heard = marks_of(neighbour.part)});
    if (neighbour.to == nullptr) continue;
    std::vector<BoxCopy> copies;
    neighbour.to->append_stores(at_first_slot(part_.table()), at_first_slot(other.part_.table()), copies);
    for (std::size_t c = 0; c < copies.size(); ++c) {
      const Link::Piece& piece = neighbour.to->pieces()[c];
      ResidentPiece& made = pieces.emplace_back();
      made.copy = copies[c];
      made.from_stride_bytes = part_.table().stride_bytes;
      made.to_stride_bytes = other.part_.table().stride_bytes;
      made.field = piece.field;
      std::ranges::copy(part_.layout().local(piece.box).low, made.low);
    }
  }
  pieces_ = upload(part_, pieces);
  neighbours_ = upload(part_, neighbours);
  view_.pieces = pieces_.as<ResidentPiece>();
  view_.neighbours = neighbours_.as<ResidentNeighbour>();
  view_.counters = counters_.as<ResidentCounters>();
  view_.words = words_.as<ResidentWords>();
  view_.piece_count = static_cast<std::uint32_t>(pieces.size());
  view_.neighbour_count = static_cast<std::uint32_t>(neighbours.size());
  on_device_ = upload(part_, std::vector{view_});
}

void Meeting::begin() noexcept { std::atomic_ref(words().beat).store(0, std::memory_order_relaxed); }

void Meeting::stop() noexcept {
  // Pairs with the load of ResidentWait::must_leave().
  std::atomic_ref(words().stop).store(1, std::memory_order_release);
}

bool Meeting::gave_up() const noexcept {
  // Pairs with the store of ResidentWait::must_leave().
  return std::atomic_ref(words().gave_up).load(std::memory_order_acquire) != 0;
}

std::uint64_t Meeting::beat() const noexcept { return std::atomic_ref(words().beat).load(std::memory_order_relaxed); }

std::optional<std::size_t> Meeting::waits_for() const noexcept {
  // Pairs with the store of ResidentWait::until().
  const std::uint32_t writer = std::atomic_ref(words().waits_for).load(std::memory_order_acquire);
  if (writer == 0) return std::nullopt;
  if (writer == ResidentWords::kOwnBlocks) return part_.number();
  return part_.neighbours()[writer - ResidentWords::kNeighbour].part;
}

Meetings::Meetings(const std::vector<std::unique_ptr<Part>>& parts, Duration wait_limit) : wait_limit_(wait_limit) {
  for (const auto& part : parts) meetings_.push_back(std::make_unique<Meeting>(*part, wait_limit));
  for (const auto& meeting : meetings_) meeting->meet(meetings_);
}

void Meetings::stop() noexcept {
  for (const auto& meeting : meetings_) meeting->stop();
}

/// A device that hangs would not end a wait in its stream.
Status Meetings::wait(std::size_t part, const Progress& progress) const noexcept {
  const Part& its = meetings_[part]->part();
  const bool on_cuda = its.device().kind() == DeviceKind::cuda;
  const Time began = SteadyClock::now();
  std::optional<Time> failed_at;
  while (true) {
    const Result<bool> ready = its.stream().ready();
    if (!ready) return ready.error();
    if (*ready) {
      const Status waited = its.stream().wait();
      return waited && meetings_[part]->gave_up() ? Status(Errc::hung) : waited;
    }
    const Time now = SteadyClock::now();
    if (!failed_at && progress.failed()) failed_at = now;
    if (failed_at && now - *failed_at > 2 * wait_limit_) return Errc::hung;
    if (on_cuda && !failed_at) {
      std::this_thread::yield();  // as cudaStreamSynchronize() does
    } else {                      // its threads want the processor
      std::this_thread::sleep_for(
          std::clamp<Duration>((now - began) / 64, std::chrono::microseconds(20), std::chrono::milliseconds(1)));
    }
  }
}

std::string Meetings::why_hung(std::size_t part) const {
  // Who was missed may itself have missed another; and who did not begin has kept all waiting.
  std::size_t silent = part;
  for (std::size_t hop = 0; hop < meetings_.size(); ++hop) silent = of(silent).waits_for().value_or(silent);
  const auto idle = std::ranges::find_if(meetings_, [](const auto& its) { return its->beat() == 0; });
  if (idle != meetings_.end()) silent = static_cast<std::size_t>(idle - meetings_.begin());
  const Meeting& its = of(silent);
  const char* how = its.beat() == 0   ? "its kernel has not begun: is another resident kernel on the device?"
                    : its.waits_for() ? "its blocks did not meet"
                                      : "its kernel does not get on";
  return fmt::format("{}, which has part {} of {}, did not answer within {} s: {}", its.part().device().name(), silent,
                     meetings_.size(), std::chrono::duration<double>(wait_limit_).count(), how);
}

MeetingObstacle obstacle_to_meeting(const Decomposition& decomposition, const std::vector<Device>& devices,
                                    const Layers& ghosts) {
  MeetingObstacle found;
  for (std::size_t part = 0; part < devices.size() && !found.shared; ++part) {
    const auto before = devices.begin() + static_cast<std::ptrdiff_t>(part);
    if (devices[part].kind() == DeviceKind::cpu) continue;
    if (std::find(devices.begin(), before, devices[part]) != before) found.shared = devices[part];
  }
  for (const Exchange& exchange : decomposition.exchanges(ghosts)) {
    for (const auto& [from, to] : {std::pair{devices[exchange.from], devices[exchange.to]},
                                   std::pair{devices[exchange.to], devices[exchange.from]}}) {
      if (found.unreached || from == to || peer_connection(from, to).access) continue;
      found.unreached = std::pair{from, to};
    }
  }
  return found;
}

}  // namespace headrace::grid
