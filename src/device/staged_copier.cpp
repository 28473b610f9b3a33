#include "device/staged_copier.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
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
/// Parts that are to be ready soon are this share of a slot.
constexpr std::size_t kSmallShare = 4;
/// So many fill slots about as fast as the link empties them: the calling thread then only sends, at once.
constexpr std::uint32_t kHelpersEnough = 6;

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

StagedCopier::Lane::Lane(Device device, std::size_t slot_bytes)
    : pinned(device, MemoryKind::pinned, kSlots * slot_bytes), slots{Slot(device, 0), Slot(device, slot_bytes)} {}

StagedCopier::StagedCopier(StreamRef stream, const StagingOptions& options)
    : stream_(stream), options_(checked(options, stream.device())) {
  lanes_.push_back(std::make_unique<Lane>(stream.device(), options_.slot_bytes));
}

StagedCopier::~StagedCopier() { start_over(); }

void StagedCopier::start_over() noexcept {
  for (; oldest_ != nullptr; free_oldest()) {
    // A failure is reported by the next call on the stream; here there is only the memory to keep.
    static_cast<void>(oldest_->read.wait());
  }
  for (const auto& lane : lanes_) {
    for (Slot& slot : lane->slots) slot.state.store(State::free, std::memory_order_relaxed);
    lane->fill_next = 0;
    lane->send_next = 0;
  }
}

bool StagedCopier::make_lane() noexcept {
  try {
    lanes_.push_back(std::make_unique<Lane>(stream_.device(), options_.slot_bytes));
  } catch (const std::exception&) {
    return false;  // no memory, or the device refuses
  }
  return true;
}

std::uint32_t StagedCopier::threads_for(std::size_t bytes) noexcept {
  if (bytes < copy_thresholds::kThreadedBytesMin) return 1;
  const std::size_t parts = bytes / (options_.slot_bytes / kSmallShare);
  const auto wanted = static_cast<std::uint32_t>(std::min<std::size_t>(options_.threads, parts));
  DeviceBackend& device = stream_.device().backend();
  // Fewer threads than wanted make it slower, not wrong. Taking memory may wait for ever where no kernel can start.
  while (lanes_.size() < wanted && device.kernel_can_start()) {
    if (!make_lane()) break;
  }
  const auto threads = std::min(wanted, static_cast<std::uint32_t>(lanes_.size()));
  return threads < 2 ? 1 : std::min(threads, 1 + helpers_.start(threads - 1, device.properties().numa_node));
}

Status StagedCopier::copy(std::span<const Copy> copies, Scatter scatter) noexcept {
  bytes_ = 0;
  for (const Copy& copy : copies) bytes_ += copy.bytes;
  copies_ = copies;
  scatter_ = scatter;
  threads_ = threads_for(bytes_);
  sent_bytes_ = 0;
  next_ = {.bytes = bytes_};
  failed_.store(false, std::memory_order_relaxed);  // helpers see it, and the rest, through begin() below
  const std::uint32_t helpers = threads_ - 1;
  if (helpers > 0) {
    helpers_.begin(
        helpers,
        [](void* self, std::uint32_t helper) {
          auto& copier = *static_cast<StagedCopier*>(self);
          copier.help(*copier.lanes_[helper + 1]);
        },
        this);
  }
  const Status sent = send_all(helpers);
  if (!sent) failed_.store(true, std::memory_order_relaxed);  // seen by help()
  if (helpers > 0) helpers_.end();
  if (!sent) start_over();
  return sent;
}

StagedCopier::Part StagedCopier::take(bool by_helper) noexcept {
  const std::lock_guard lock(mutex_);
  const std::size_t small = options_.slot_bytes / kSmallShare;
  // The engine starts sooner, all threads end together, and the one that sends is not away for long.
  const bool soon = bytes_ - next_.bytes < threads_ * small || next_.bytes < threads_ * options_.slot_bytes / 2;
  std::size_t room = threads_ > 1 && (soon || !by_helper) ? small : options_.slot_bytes;
  Part part{.first = next_.first, .offset = next_.offset};
  while (room > 0 && next_.bytes > 0) {
    const std::size_t left = copies_[next_.first].bytes - next_.offset;
    const std::size_t here = std::min(room, left);
    room -= here;
    part.bytes += here;
    next_.bytes -= here;
    next_.offset += here;
    if (here == left) next_ = {.first = next_.first + 1, .bytes = next_.bytes};
  }
  return part;
}

void StagedCopier::help(Lane& lane) noexcept {
  for (Part part = take(true); part.bytes > 0; part = take(true)) {
    const Slot& slot = lane.slots[lane.fill_next];
    for (std::uint32_t spins = 1; slot.state.load(std::memory_order_acquire) != State::free; ++spins) {
      if (failed_.load(std::memory_order_relaxed)) return;  // set by copy(), or by another helper
      relax(spins);
    }
    if (failed_.load(std::memory_order_relaxed)) return;
    if (!fill(lane, part)) {
      failed_.store(true, std::memory_order_relaxed);  // seen by send_all()
      return;
    }
  }
}

/// Its only failure is a want of memory.
Status StagedCopier::fill(Lane& lane, const Part& part) noexcept {
  Slot& slot = lane.slots[lane.fill_next];
  std::byte* staged = lane.pinned.data() + slot.offset;
  slot.spread.clear();
  slot.bytes = part.bytes;
  std::size_t offset = part.offset;
  std::size_t left = part.bytes;
  try {
    for (std::size_t i = part.first; left > 0; ++i, offset = 0) {
      const Copy& copy = copies_[i];
      const std::size_t bytes = std::min(copy.bytes - offset, left);
      if (bytes == 0) continue;
      host_copy(staged, static_cast<const std::byte*>(copy.from) + offset, bytes, options_.stores);
      append(slot.spread, {static_cast<std::byte*>(copy.to) + offset, staged, bytes});
      staged += bytes;
      left -= bytes;
    }
  } catch (const std::bad_alloc&) {
    return Errc::out_of_memory;
  }
  lane.fill_next = (lane.fill_next + 1) % Lane::kSlots;
  slot.state.store(State::filled, std::memory_order_release);  // pairs with send_filled()
  return {};
}

Status StagedCopier::send_all(std::uint32_t helpers) noexcept {
  // Helpers take a while to wake up.
  bool fills = true;
  for (std::uint32_t spins = 1; sent_bytes_ < bytes_; ++spins) {
    const auto sent = send_filled();
    if (!sent) return sent.error();
    // Alone there is nothing to be gained before all slots travel, and then the oldest is waited for.
    if (helpers > 0) {
      if (const Status freed = free_read(); !freed) return freed;
    }
    if (*sent) continue;
    if (fills) {
      const auto filled = fill_one();
      if (!filled) return filled.error();
      fills = helpers < kHelpersEnough;
      if (*filled) continue;
    }
    if (failed_.load(std::memory_order_relaxed)) return Errc::out_of_memory;  // set by help()
    if (helpers > 0) {
      relax(spins);
    } else if (const Status waited = wait_for_oldest(); !waited) {
      return waited;
    }
  }
  return {};
}

Result<bool> StagedCopier::send_filled() noexcept {
  bool any = false;
  for (std::uint32_t i = 0; i < threads_; ++i) {
    Lane& lane = *lanes_[i];
    Slot& slot = lane.slots[lane.send_next];
    if (slot.state.load(std::memory_order_acquire) != State::filled) continue;  // pairs with fill()
    if (const Status sent = send(lane, slot); !sent) return sent.error();
    any = true;
  }
  return any;
}

Status StagedCopier::send(Lane& lane, Slot& slot) noexcept {
  const Status enqueued = enqueue(lane, slot);
  // Also after a failure: some of it may be on its way.
  const Status recorded = stream_.record(slot.read);
  slot.state.store(State::under_way, std::memory_order_relaxed);
  slot.sent_next = nullptr;
  (oldest_ == nullptr ? oldest_ : newest_->sent_next) = &slot;
  newest_ = &slot;
  lane.send_next = (lane.send_next + 1) % Lane::kSlots;
  sent_bytes_ += slot.bytes;
  return enqueued ? recorded : enqueued;
}

Status StagedCopier::enqueue(Lane& lane, Slot& slot) noexcept {
  const Copy& first = slot.spread.front();
  if (slot.spread.size() == 1) return stream_.copy(first.to, first.from, first.bytes);
  if (scatter_ == Scatter::through_device) return enqueue_through_device(lane, slot);
  return stream_.copy_many(slot.spread);
}

Status StagedCopier::enqueue_through_device(Lane& lane, Slot& slot) noexcept {
  if (lane.scratch.bytes() == 0) {
    auto scratch = Buffer::allocate(stream_.device(), MemoryKind::device, lane.pinned.bytes());
    if (!scratch) return scratch.error();
    lane.scratch = *std::move(scratch);
  }
  const std::byte* staged = lane.pinned.data();
  std::byte* scratch = lane.scratch.data();
  if (const Status copied = stream_.copy(scratch + slot.offset, staged + slot.offset, slot.bytes); !copied) {
    return copied;
  }
  for (Copy& copy : slot.spread) copy.from = scratch + (static_cast<const std::byte*>(copy.from) - staged);
  return stream_.copy_many(slot.spread, CopyRoute::gather);
}

Result<bool> StagedCopier::fill_one() noexcept {
  Lane& lane = *lanes_.front();
  // This thread frees its slots itself.
  if (lane.slots[lane.fill_next].state.load(std::memory_order_relaxed) != State::free) return false;
  const Part part = take(false);
  if (part.bytes == 0) return false;
  if (const Status filled = fill(lane, part); !filled) return filled.error();
  return true;
}

Status StagedCopier::free_read() noexcept {
  while (oldest_ != nullptr) {
    const auto ready = oldest_->read.ready();
    if (!ready) return ready.error();
    if (!*ready) break;
    free_oldest();
  }
  return {};
}

Status StagedCopier::wait_for_oldest() noexcept {
  if (const Status waited = oldest_->read.wait(); !waited) return waited;
  free_oldest();
  return {};
}

void StagedCopier::free_oldest() noexcept {
  Slot& slot = *oldest_;
  oldest_ = slot.sent_next;
  slot.state.store(State::free, std::memory_order_release);  // pairs with help()
}

}  // namespace headrace::detail
