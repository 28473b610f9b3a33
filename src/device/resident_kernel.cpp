#include "headrace/device/detail/resident_kernel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <thread>

#include "headrace/base/error.hpp"
#include "headrace/device/topology.hpp"

namespace headrace {

namespace {

constexpr Duration kBetweenLooks = std::chrono::microseconds(50);
/// At most one check within this time queries the device, which takes a microsecond or two.
constexpr Duration kAskEvery = std::chrono::milliseconds(5);

}  // namespace

struct ResidentKernel::AbandonedList {
  std::mutex mutex;
  std::vector<std::shared_ptr<Run>> runs;
};

ResidentKernel::AbandonedList& ResidentKernel::abandoned() {
  // Never destroyed, because a hung kernel uses the memory kept here until the process has ended.
  static AbandonedList& list = make_process_wide<AbandonedList>();
  return list;
}

ResidentKernel::ResidentKernel(Device device, Leave leave, StreamOptions options)
    : leave_(std::move(leave)), run_(new Run{{}, Stream(device, options), {}, nullptr}) {
  run_->ends.push_back({device, Event(device)});
  static_cast<void>(abandoned_count());  // frees the room of those that have ended, which may be needed
}

ResidentKernel::~ResidentKernel() {
  static_cast<void>(leave(kPatience, true));
  abandon(nullptr);
}

void ResidentKernel::begin() noexcept {
  launched_ = true;
  marked_ = Errc::not_found;
  beat_ = {};
}

void ResidentKernel::mark(StreamRef stream) noexcept {
  const Device device = stream.device();
  const auto is_free = [&](const End& end) { return end.device == device && end.reached(); };
  auto end = std::ranges::find_if(run_->ends, is_free);
  if (end == run_->ends.end()) {
    auto event = Event::create(device);
    if (!event) {
      marked_ = event.error();
      return;
    }
    end = run_->ends.insert(end, {device, *std::move(event)});
  }
  marked_ = stream.record(end->event);
}

Status ResidentKernel::wait_started(const std::function<bool()>& started, Duration limit) noexcept {
  for (const Time until = SteadyClock::now() + limit; !started();) {
    const auto ended = stream().ready();
    if (!ended) return ended.error();
    if (*ended) return started() ? Status{} : Errc::device_fault;
    if (SteadyClock::now() > until) {
      hung_ = true;
      return Errc::hung;
    }
    std::this_thread::sleep_for(kBetweenLooks);
  }
  return {};
}

Status ResidentKernel::wait_ended(const std::uint64_t& beat, Duration limit) noexcept {
  constexpr int kPolls = 256;  // short kernels end quickly, so poll first and then sleep
  constexpr Duration kNapMost = std::chrono::milliseconds(1);
  const Time began = SteadyClock::now();
  for (int poll = 0;; ++poll) {
    const auto ended = stream().ready();
    if (!ended) return ended.error();
    if (*ended) {
      launched_ = false;
      return stream().wait();
    }
    if (poll < kPolls) {
      std::this_thread::yield();
      continue;
    }
    const Time now = SteadyClock::now();
    if (const Status gets_on = look(heard(beat), limit, now); !gets_on && gets_on.error().code == Errc::hung) {
      return gets_on;
    }
    std::this_thread::sleep_for(std::clamp<Duration>((now - began) / 64, std::chrono::microseconds(20), kNapMost));
  }
}

Status ResidentKernel::look(std::uint64_t beat, Duration limit, Time now) noexcept {
  hung_ = beat_.exceeds(limit, beat, true, now);
  if (now - asked_at_ < kAskEvery) return {};
  asked_at_ = now;
  const auto ended = stream().ready();
  if (!ended) return ended.error();
  return *ended ? Errc::device_fault : hung_ ? Status(Errc::hung) : Status();
}

Status ResidentKernel::leave(Duration limit, bool at_once) noexcept {
  if (!launched_ || birth_.inherited()) return {};
  leave_(at_once);
  if (!marked_ && marked_.error().code == Errc::not_found) mark(stream());
  const Time until = SteadyClock::now() + (hung_ ? std::min(limit, kLeaveWithin) : limit);
  while (!run_->gone()) {
    if (SteadyClock::now() >= until) {
      hung_ = true;
      return Errc::hung;
    }
    std::this_thread::sleep_for(kBetweenLooks);
  }
  launched_ = false;
  const auto ended = stream().ready();
  return ended ? marked_ : ended.error();
}

void ResidentKernel::abandon(std::shared_ptr<const void> owner) noexcept {
  if (left() || birth_.inherited()) return;
  AbandonedList& list = abandoned();
  const std::lock_guard lock(list.mutex);
  if (std::ranges::find(list.runs, run_) != list.runs.end()) return;
  run_->owner = std::move(owner);
  list.runs.push_back(run_);  // if this runs out of memory, the process ends, because nothing else is safe
}

std::size_t ResidentKernel::abandoned_count() noexcept {
  AbandonedList& list = abandoned();
  while (true) {
    std::shared_ptr<Run> gone;  // freed without the lock, because destroying an owner may take time
    std::shared_ptr<const void> owner;
    const std::lock_guard lock(list.mutex);
    const auto found = std::ranges::find_if(list.runs, [](const auto& run) { return run->gone(); });
    if (found == list.runs.end()) return list.runs.size();
    gone = std::exchange(*found, std::move(list.runs.back()));
    owner = std::move(gone->owner);
    list.runs.pop_back();
  }
}

std::uint32_t ResidentKernel::block_count(Device device, const Kernel& kernel, std::uint32_t threads, std::uint32_t own,
                                          std::uint32_t wanted, std::string_view what) {
  const std::uint32_t fit = device.resident_blocks_max(kernel, threads);
  const std::uint32_t most = fit > own ? fit - own : 0;
  if (most == 0 || wanted > most) {
    throw UsageError(fmt::format("{} cannot be resident on {}, which holds at most {} besides {} that hand out work",
                                 what, device.name(), most, own),
                     Errc::not_supported);
  }
  if (wanted != 0 || !device.properties().host_cores) return wanted != 0 ? wanted : most;
  const auto processors = static_cast<std::uint32_t>(Topology::machine().processors().size());
  return std::clamp(processors, own + 2, most + own + 1) - own - 1;
}

void ResidentKernel::write(Device device, const Buffer& to, const Buffer& from) {
  const Stream stream(device);
  stream.copy(to.data(), from.data(), from.bytes()).or_throw("writing the memory of a resident kernel");
  stream.wait().or_throw("writing the memory of a resident kernel");
}

Buffer ResidentKernel::zeroed(Device device, std::size_t bytes) {
  Buffer memory(device, MemoryKind::device, bytes);
  const Buffer zeros(device, MemoryKind::pinned, bytes);
  std::fill_n(zeros.data(), bytes, std::byte{0});
  write(device, memory, zeros);
  return memory;
}

}  // namespace headrace
