#include "device/copies/staged_copier.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <new>

#include "base/spin.hpp"
#include "device/backend.hpp"
#include "device/copies/host_copy.hpp"
#include "device/copies/joined_copies.hpp"
#include "headrace/base/error.hpp"
#include "headrace/device/detail/copy_route.hpp"
#include "headrace/device/topology.hpp"

namespace headrace::detail {

namespace {

constexpr std::uint32_t kThreadsMax = 256;
/// At 4 to 5 GB/s per thread, with lines demoted, this many threads saturate the link.
constexpr std::uint32_t kAutomaticThreadsMax = 16;
constexpr std::size_t kSlotBytesMin = 4 * kKiB;
/// A run takes at most this fraction of the ring, so that the rest can be filled while one run travels and another
/// waits. A thread that fills alone fills one half while the other travels.
constexpr std::size_t kRunShare = 4;
constexpr std::size_t kRunShareAlone = 2;
/// While another run travels, a copy of fewer bytes is not worthwhile.
constexpr std::size_t kRunBytesMin = kMiB;
/// This many helpers fill slots about as fast as the link empties them, so the calling thread only sends, and at once.
constexpr std::uint32_t kHelpersEnough = 6;

std::uint32_t automatic_threads(std::optional<int> numa_node) {
  const auto& processors = Topology::machine().processors();
  auto near = std::ranges::count(processors, numa_node.value_or(0), &Processor::numa_node);
  if (near == 0) near = std::ranges::ssize(processors);
  return std::clamp(static_cast<std::uint32_t>(near), 1U, kAutomaticThreadsMax);
}

StagingOptions checked(StagingOptions options, Device device) {
  if (options.threads > kThreadsMax) {
    throw UsageError(
        fmt::format("copy batch: {} staging threads exceed the limit of {}", options.threads, kThreadsMax));
  }
  if (options.slot_bytes < kSlotBytesMin) {
    throw UsageError(fmt::format("copy batch: slot_bytes must be at least {}", kSlotBytesMin));
  }
  if (options.threads == 0) options.threads = automatic_threads(device.properties().numa_node);
  return options;
}

}  // namespace

StagedCopier::Ring::Ring(Device device, std::size_t slot_count, std::size_t slot_bytes)
    : pinned(device, MemoryKind::pinned, slot_count * slot_bytes),
      slots(std::make_unique<Slot[]>(slot_count)),
      count(slot_count) {}

StagedCopier::StagedCopier(StreamRef stream, const StagingOptions& options)
    : stream_(stream),
      options_(checked(options, stream.device())),
      ring_(stream.device(), kSlots, options_.slot_bytes),
      runs_{Run{.read = Event(stream.device())}, Run{.read = Event(stream.device())}} {}

StagedCopier::~StagedCopier() { start_over(); }

void StagedCopier::start_over() noexcept {
  for (; read_runs_ < sent_runs_; ++read_runs_) {
    // The next call on the stream reports a failure. Here only the memory must stay valid.
    static_cast<void>(runs_[read_runs_ % kRuns].read.wait());
  }
  for (std::size_t i = 0; i < ring_.count; ++i) ring_.slots[i].filled.store(0, std::memory_order_relaxed);
  sent_ = 0;
  taken_.store(0, std::memory_order_relaxed);
  freed_.store(0, std::memory_order_relaxed);
}

bool StagedCopier::grow() noexcept {
  try {
    Ring larger(stream_.device(), kSlots * options_.threads, options_.slot_bytes);
    start_over();
    ring_ = std::move(larger);
  } catch (const std::exception&) {
    return false;  // memory has run out, or the device refused
  }
  return true;
}

std::uint32_t StagedCopier::threads_for(std::size_t bytes) noexcept {
  if (bytes < copy_thresholds::kThreadedBytesMin) return 1;
  const std::size_t parts = bytes / options_.slot_bytes;
  const auto wanted = static_cast<std::uint32_t>(std::min<std::size_t>(options_.threads, parts));
  if (wanted < 2) return 1;
  DeviceBackend& device = stream_.device().backend();
  // One thread is slower but correct. Allocating memory may wait forever while no kernel can start.
  if (ring_.count == kSlots && !(device.kernel_can_start() && grow())) return 1;
  return std::min(wanted, 1 + helpers_->start(wanted - 1, device.properties().numa_node));
}

Status StagedCopier::copy(std::span<const Copy> copies, Scatter scatter) noexcept {
  if (birth_.inherited()) return kInherited;  // the helper threads do not exist in this process
  bytes_ = 0;
  for (const Copy& copy : copies) bytes_ += copy.bytes;
  copies_ = copies;
  scatter_ = scatter;
  sent_bytes_ = 0;
  next_ = {.bytes = bytes_};
  stop_.store(false, std::memory_order_relaxed);  // begin() below makes it, and the other members, visible to helpers
  const std::uint32_t helpers = threads_for(bytes_) - 1;
  if (helpers > 0) {
    helpers_->begin(
        helpers, [](void* self, std::uint32_t /*helper*/) { static_cast<StagedCopier*>(self)->help(); }, this);
  }
  const Status sent = send_all(helpers);
  stop_.store(true, std::memory_order_relaxed);  // seen by help()
  if (helpers > 0) helpers_->end();
  if (!sent) start_over();
  return sent;
}

StagedCopier::Taken StagedCopier::take(Part& part) noexcept {
  // Pairs with free_oldest(): the device has read the old contents. Checked before taking the contended lock.
  const auto has_room = [this] {
    return taken_.load(std::memory_order_relaxed) - freed_.load(std::memory_order_acquire) < ring_.count;
  };
  if (!has_room()) return Taken::no_slot;
  const std::lock_guard lock(mutex_);
  if (next_.bytes == 0) return Taken::nothing_left;
  if (!has_room()) return Taken::no_slot;
  part = {.number = taken_.load(std::memory_order_relaxed), .first = next_.first, .offset = next_.offset};
  taken_.store(part.number + 1, std::memory_order_relaxed);
  std::size_t room = options_.slot_bytes;
  while (room > 0 && next_.bytes > 0) {
    const std::size_t left = copies_[next_.first].bytes - next_.offset;
    const std::size_t here = std::min(room, left);
    room -= here;
    part.bytes += here;
    next_.bytes -= here;
    next_.offset += here;
    if (here == left) next_ = {.first = next_.first + 1, .bytes = next_.bytes};
  }
  return Taken::part;
}

void StagedCopier::help() noexcept {
  Part part;
  for (std::uint32_t spins = 1; !stop_.load(std::memory_order_relaxed);
       ++spins) {  // set by copy() or by another helper
    const Taken taken = take(part);
    if (taken == Taken::nothing_left) return;
    if (taken == Taken::no_slot) {
      relax(spins);
    } else if (!fill(part)) {
      stop_.store(true, std::memory_order_relaxed);  // seen by send_all()
    }
  }
}

/// Fails only if memory has run out.
Status StagedCopier::fill(const Part& part) noexcept {
  const std::size_t place = part.number % ring_.count;
  Slot& slot = ring_.slots[place];
  std::byte* staged = ring_.pinned.data() + place * options_.slot_bytes;
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
  slot.filled.store(part.number + 1, std::memory_order_release);  // pairs with send_run()
  return {};
}

Status StagedCopier::send_all(std::uint32_t helpers) noexcept {
  // Fill slots here at first, because helpers take a while to wake up.
  bool fills = true;
  for (std::uint32_t spins = 1; sent_bytes_ < bytes_; ++spins) {
    // Without helpers, freeing slots gains nothing before all slots travel; the thread then waits for the oldest run.
    if (helpers > 0) {
      if (const Status freed = free_read(); !freed) return freed;
    }
    const auto sent = send_run(helpers);
    if (!sent) return sent.error();
    if (*sent) continue;
    if (fills) {
      const auto filled = fill_one();
      if (!filled) return filled.error();
      fills = helpers < kHelpersEnough;
      if (*filled) continue;
    }
    if (stop_.load(std::memory_order_relaxed)) return Errc::out_of_memory;  // set by help()
    if (helpers > 0) {
      relax(spins);
    } else if (const Status waited = wait_for_oldest(); !waited) {
      return waited;
    }
  }
  return {};
}

Result<bool> StagedCopier::send_run(std::uint32_t helpers) noexcept {
  const std::uint64_t under_way = sent_runs_ - read_runs_;
  if (under_way == kRuns) return false;
  const std::size_t first = sent_ % ring_.count;
  const std::size_t most = std::min(ring_.count / (helpers > 0 ? kRunShare : kRunShareAlone), ring_.count - first);
  std::size_t slots = 0;
  std::size_t bytes = 0;
  while (slots < most) {
    const Slot& slot = ring_.slots[first + slots];
    if (slot.filled.load(std::memory_order_acquire) != sent_ + slots + 1) break;  // pairs with fill()
    bytes += slot.bytes;
    ++slots;
  }
  const bool idle = under_way == 0 && helpers > 0;
  const bool worth_it = idle || slots == most || bytes >= kRunBytesMin || sent_bytes_ + bytes == bytes_;
  if (slots == 0 || !worth_it) return false;
  if (const Status sent = send(slots); !sent) return sent.error();
  sent_bytes_ += bytes;
  return true;
}

Status StagedCopier::send(std::size_t slots) noexcept {
  const Status enqueued = enqueue(sent_ % ring_.count, slots);
  sent_ += slots;
  Run& run = runs_[sent_runs_++ % kRuns];
  run.end = sent_;
  // Record even after a failure, because part of the run may be in flight.
  const Status recorded = stream_.record(run.read);
  return enqueued ? recorded : enqueued;
}

Status StagedCopier::enqueue(std::size_t first, std::size_t slots) noexcept {
  spread_.clear();
  try {
    for (std::size_t i = first; i < first + slots; ++i) {
      for (const Copy& copy : ring_.slots[i].spread) append(spread_, copy);
    }
  } catch (const std::bad_alloc&) {
    return Errc::out_of_memory;
  }
  if (spread_.size() == 1) return stream_.copy(spread_.front().to, spread_.front().from, spread_.front().bytes);
  if (scatter_ == Scatter::through_device) return enqueue_through_device(first, slots);
  return stream_.copy_many(spread_);
}

Status StagedCopier::enqueue_through_device(std::size_t first, std::size_t slots) noexcept {
  if (ring_.scratch.bytes() == 0) {
    auto scratch = Buffer::allocate(stream_.device(), MemoryKind::device, ring_.pinned.bytes());
    if (!scratch) return scratch.error();
    ring_.scratch = *std::move(scratch);
  }
  const std::byte* staged = ring_.pinned.data();
  std::byte* scratch = ring_.scratch.data();
  const std::size_t from = first * options_.slot_bytes;
  const std::size_t bytes = (slots - 1) * options_.slot_bytes + ring_.slots[first + slots - 1].bytes;
  if (const Status copied = stream_.copy(scratch + from, staged + from, bytes); !copied) return copied;
  for (Copy& copy : spread_) copy.from = scratch + (static_cast<const std::byte*>(copy.from) - staged);
  return stream_.copy_many(spread_, CopyRoute::gather);
}

Result<bool> StagedCopier::fill_one() noexcept {
  Part part;
  if (take(part) != Taken::part) return false;
  if (const Status filled = fill(part); !filled) return filled.error();
  return true;
}

Status StagedCopier::free_read() noexcept {
  while (read_runs_ < sent_runs_) {
    const auto ready = runs_[read_runs_ % kRuns].read.ready();
    if (!ready) return ready.error();
    if (!*ready) break;
    free_oldest();
  }
  return {};
}

Status StagedCopier::wait_for_oldest() noexcept {
  if (const Status waited = runs_[read_runs_ % kRuns].read.wait(); !waited) return waited;
  free_oldest();
  return {};
}

void StagedCopier::free_oldest() noexcept {
  freed_.store(runs_[read_runs_++ % kRuns].end, std::memory_order_release);  // pairs with take()
}

}  // namespace headrace::detail
