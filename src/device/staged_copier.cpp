#include "device/staged_copier.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <thread>

#include "device/backend.hpp"
#include "device/cpu/spin.hpp"
#include "device/host_copy.hpp"
#include "device/joined_copies.hpp"
#include "headrace/base/error.hpp"
#include "headrace/device/copy_route.hpp"
#include "headrace/device/topology.hpp"

namespace headrace::detail {

namespace {

constexpr std::uint32_t kThreadsMax = 256;
/// More do not make the link faster: at 8 GB/s a thread, 7 fill it.
constexpr std::uint32_t kAutomaticThreadsMax = 12;
constexpr std::size_t kSlotBytesMin = 4 * kKiB;
/// One that a thread fills and one that travels; with helpers half of the ring travels.
constexpr std::size_t kSlotsAlone = 2;
constexpr std::size_t kSlotsPerThread = 4;
/// A run is this share of the ring at most.
constexpr std::size_t kRunShare = 4;

std::uint32_t automatic_threads(std::optional<int> numa_node) {
  const auto& processors = Topology::machine().processors();
  auto near = std::ranges::count(processors, numa_node.value_or(0), &Processor::numa_node);
  if (near == 0) near = std::ranges::ssize(processors);
  return std::clamp(static_cast<std::uint32_t>(near) * 3 / 4, 1U, kAutomaticThreadsMax);
}

StagingOptions checked(StagingOptions options, Device device) {
  if (options.threads > kThreadsMax) {
    throw UsageError(fmt::format("copy batch: {} staging threads are more than {}", options.threads, kThreadsMax));
  }
  if (options.slot_bytes < kSlotBytesMin) {
    throw UsageError(fmt::format("copy batch: slot_bytes must be {} at least", kSlotBytesMin));
  }
  if (options.threads == 0) options.threads = automatic_threads(device.properties().numa_node);
  return options;
}

/// Between two looks at what another thread does.
void relax(std::uint32_t spins) noexcept {
  if (spins % kSpins == 0) {
    std::this_thread::yield();
  } else {
    spin_pause();
  }
}

}  // namespace

StagedCopier::StagedCopier(StreamRef stream, const StagingOptions& options)
    : stream_(stream),
      options_(checked(options, stream.device())),
      ring_(StagingRing::create(stream.device(), kSlotsAlone, options_.slot_bytes)
                .or_throw(fmt::format("allocating the staging slots of a copy batch on {}", stream.device().name()))) {
  for (std::size_t i = 0; i < kRunsMax; ++i) runs_.push_back({.run = {}, .read = Event(stream.device())});
}

StagedCopier::~StagedCopier() { start_over(); }

/// Waits for what is under way, and numbers parts from 0 again.
void StagedCopier::start_over() noexcept {
  for (; under_way_ > 0; release_oldest()) {
    // A failure is reported by the next call on the stream; here there is only the memory to keep.
    static_cast<void>(runs_[oldest_].read.wait());
  }
  ring_.reset();
  end_ = 0;
}

bool StagedCopier::make_room_for_threads() noexcept {
  const std::size_t slots = options_.threads * kSlotsPerThread;
  if (ring_.count() >= slots) return true;
  if (!stream_.device().backend().kernel_can_start()) return false;  // taking memory may wait for ever
  auto ring = StagingRing::create(stream_.device(), slots, options_.slot_bytes);
  if (!ring) return false;
  start_over();
  ring_ = *std::move(ring);
  scratch_ = {};
  return true;
}

std::uint32_t StagedCopier::threads_for(std::size_t bytes) noexcept {
  const auto wanted = static_cast<std::uint32_t>(std::min<std::size_t>(options_.threads, parts_.size()));
  // Fewer threads than wanted make it slower, not wrong.
  if (bytes < copy_thresholds::kThreadedBytesMin || wanted < 2 || !make_room_for_threads()) return 1;
  return std::min(wanted, 1 + helpers_.start(wanted - 1, stream_.device().properties().numa_node));
}

Status StagedCopier::cut_into_parts(std::span<const Copy> copies) noexcept {
  parts_.clear();
  std::size_t room = 0;
  try {
    for (std::size_t i = 0; i < copies.size(); ++i) {
      for (std::size_t offset = 0; offset < copies[i].bytes;) {
        if (room == 0) {
          parts_.push_back({.first = i, .offset = offset});
          room = options_.slot_bytes;
        }
        const std::size_t here = std::min(room, copies[i].bytes - offset);
        parts_.back().bytes += here;
        offset += here;
        room -= here;
      }
    }
  } catch (const std::bad_alloc&) {
    return Errc::out_of_memory;
  }
  return {};
}

Status StagedCopier::copy(std::span<const Copy> copies, Scatter scatter) noexcept {
  if (const Status cut = cut_into_parts(copies); !cut) return cut;
  if (parts_.empty()) return {};
  const std::uint32_t threads = threads_for((parts_.size() - 1) * options_.slot_bytes + parts_.back().bytes);
  copies_ = copies;
  scatter_ = scatter;
  begin_ = end_;
  end_ = begin_ + parts_.size();
  unsent_ = begin_;
  claimed_.store(begin_, std::memory_order_relaxed);  // helpers see it, and the rest, through begin() below
  failed_.store(false, std::memory_order_relaxed);
  if (threads > 1) {
    helpers_.begin(
        threads - 1, [](void* self, std::uint32_t /*helper*/) { static_cast<StagedCopier*>(self)->help(); }, this);
  }
  const Status sent = send_all(threads - 1);
  if (!sent) failed_.store(true, std::memory_order_relaxed);  // seen by help()
  if (threads > 1) helpers_.end();
  if (!sent) start_over();
  return sent;
}

void StagedCopier::help() noexcept {
  while (true) {
    const std::uint64_t number = claimed_.fetch_add(1, std::memory_order_relaxed);
    if (number >= end_) return;
    for (std::uint32_t spins = 1; !ring_.is(number, StagingRing::Phase::free); ++spins) {
      if (failed_.load(std::memory_order_relaxed)) return;  // set by copy(), or by another helper
      relax(spins);
    }
    if (!fill(number)) {
      failed_.store(true, std::memory_order_relaxed);  // seen by send_all()
      return;
    }
  }
}

/// Its only failure is a want of memory.
Status StagedCopier::fill(std::uint64_t number) noexcept {
  const Part& part = parts_[number - begin_];
  std::byte* staged = ring_.data() + ring_.offset(number);
  std::vector<Copy>& spread = ring_.spread(number);
  spread.clear();
  std::size_t offset = part.offset;
  std::size_t left = part.bytes;
  try {
    for (std::size_t i = part.first; left > 0; ++i, offset = 0) {
      const Copy& copy = copies_[i];
      const std::size_t bytes = std::min(copy.bytes - offset, left);
      if (bytes == 0) continue;
      host_copy(staged, static_cast<const std::byte*>(copy.from) + offset, bytes, options_.stores);
      append(spread, {static_cast<std::byte*>(copy.to) + offset, staged, bytes});
      staged += bytes;
      left -= bytes;
    }
  } catch (const std::bad_alloc&) {
    return Errc::out_of_memory;
  }
  ring_.set(number, StagingRing::Phase::filled);
  return {};
}

Status StagedCopier::send_all(std::uint32_t helpers) noexcept {
  for (std::uint32_t spins = 1; unsent_ < end_; ++spins) {
    // With two slots there is nothing to be gained before both travel, and then the oldest is waited for.
    if (ring_.count() > kSlotsAlone) {
      if (const Status reaped = reap(); !reaped) return reaped;
    }
    if (const Run run = next_run(); run.count > 0) {
      if (const Status sent = send(run); !sent) return sent;
      continue;
    }
    const auto filled = fill_one(helpers);
    if (!filled) return filled.error();
    if (*filled) continue;
    if (failed_.load(std::memory_order_relaxed)) return Errc::out_of_memory;  // set by help()
    // Nothing can be done before a run has arrived, or else before a helper has filled a slot.
    if (under_way_ == kRunsMax || helpers == 0) {
      if (const Status waited = wait_for_oldest(); !waited) return waited;
    } else {
      relax(spins);
    }
  }
  return {};
}

Status StagedCopier::reap() noexcept {
  while (under_way_ > 0) {
    const auto ready = runs_[oldest_].read.ready();
    if (!ready) return ready.error();
    if (!*ready) break;
    release_oldest();
  }
  return {};
}

Status StagedCopier::wait_for_oldest() noexcept {
  if (const Status waited = runs_[oldest_].read.wait(); !waited) return waited;
  release_oldest();
  return {};
}

void StagedCopier::release_oldest() noexcept {
  const Run& run = runs_[oldest_].run;
  for (std::size_t i = 0; i < run.count; ++i) ring_.release(run.first + i);
  oldest_ = (oldest_ + 1) % kRunsMax;
  --under_way_;
}

StagedCopier::Run StagedCopier::next_run() const noexcept {
  Run run{.first = unsent_};
  if (under_way_ == kRunsMax) return run;
  const auto filled = [this](std::uint64_t number) { return ring_.is(number, StagingRing::Phase::filled); };
  if (under_way_ == 0) {
    // The link is idle: what comes later does not wait for a thread that is slow.
    const std::uint64_t claimed = std::min(claimed_.load(std::memory_order_relaxed), end_);
    while (run.first < claimed && !filled(run.first)) ++run.first;
  }
  const std::size_t most = std::min(ring_.to_end(run.first), std::max<std::size_t>(1, ring_.count() / kRunShare));
  const std::size_t count = std::min<std::uint64_t>(most, end_ - run.first);
  while (run.count < count && filled(run.first + run.count)) ++run.count;
  return run;
}

Status StagedCopier::send(const Run& run) noexcept {
  UnderWay& kept = runs_[(oldest_ + under_way_) % kRunsMax];
  kept.run = run;
  const Status enqueued = enqueue(run);
  // Also after a failure: some of it may be on its way.
  const Status recorded = stream_.record(kept.read);
  ++under_way_;
  for (std::size_t i = 0; i < run.count; ++i) ring_.set(run.first + i, StagingRing::Phase::sent);
  while (unsent_ < end_ && ring_.was_sent(unsent_)) ++unsent_;
  return enqueued ? recorded : enqueued;
}

Status StagedCopier::enqueue(const Run& run) noexcept {
  spread_.clear();
  try {
    for (std::size_t i = 0; i < run.count; ++i) {
      for (const Copy& copy : ring_.spread(run.first + i)) append(spread_, copy);
    }
  } catch (const std::bad_alloc&) {
    return Errc::out_of_memory;
  }
  if (spread_.size() == 1) return stream_.copy(spread_.front().to, spread_.front().from, spread_.front().bytes);
  if (scatter_ == Scatter::through_device) return enqueue_through_device(run);
  return stream_.copy_many(spread_);
}

Status StagedCopier::enqueue_through_device(const Run& run) noexcept {
  if (scratch_.bytes() == 0) {
    auto scratch = Buffer::allocate(stream_.device(), MemoryKind::device, ring_.bytes());
    if (!scratch) return scratch.error();
    scratch_ = *std::move(scratch);
  }
  const std::size_t offset = ring_.offset(run.first);
  const std::size_t bytes = (run.count - 1) * options_.slot_bytes + parts_[run.first + run.count - 1 - begin_].bytes;
  if (const Status copied = stream_.copy(scratch_.data() + offset, ring_.data() + offset, bytes); !copied) {
    return copied;
  }
  for (Copy& copy : spread_) copy.from = scratch_.data() + (static_cast<const std::byte*>(copy.from) - ring_.data());
  return stream_.copy_many(spread_, CopyRoute::gather);
}

Result<bool> StagedCopier::fill_one(std::uint32_t left) noexcept {
  std::uint64_t number = claimed_.load(std::memory_order_relaxed);
  // The last parts are for helpers: this thread is to send them as they come.
  while (number + left < end_ && ring_.is(number, StagingRing::Phase::free)) {
    if (!claimed_.compare_exchange_weak(number, number + 1, std::memory_order_relaxed)) continue;
    if (const Status filled = fill(number); !filled) return filled.error();
    return true;
  }
  return false;
}

}  // namespace headrace::detail
