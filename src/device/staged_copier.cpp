#include "device/staged_copier.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "device/backend.hpp"
#include "device/host_copy.hpp"
#include "headrace/base/error.hpp"
#include "headrace/device/copy_route.hpp"
#include "headrace/device/topology.hpp"

namespace headrace::detail {

namespace {

constexpr std::uint32_t kThreadsMax = 256;
/// More do not make the link faster: at 8 GB/s a thread, 7 fill it.
constexpr std::uint32_t kAutomaticThreadsMax = 12;
constexpr std::size_t kSlotBytesMin = 4 * kKiB;
/// The first slot of each thread is filled to this share, so that the engine starts sooner.
constexpr std::size_t kFirstShare = 4;

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

}  // namespace

StagedCopier::StagedCopier(StreamRef stream, const StagingOptions& options)
    : stream_(stream), options_(checked(options, stream.device())) {
  make_lane().or_throw(fmt::format("allocating the staging slots of a copy batch on {}", stream.device().name()));
}

StagedCopier::~StagedCopier() {
  for (const Lane& lane : lanes_) {
    // A failure is reported by the next call on the stream; here there is only the memory to keep.
    for (const Slot& slot : lane.slots) static_cast<void>(slot.read.wait());
  }
}

Status StagedCopier::make_lane() noexcept {
  try {
    Lane lane;
    for (std::size_t i = 0; i < Lane::kSlots; ++i) {
      auto pinned = Buffer::allocate(stream_.device(), MemoryKind::pinned, options_.slot_bytes);
      if (!pinned) return pinned.error();
      auto read = Event::create(stream_.device());
      if (!read) return read.error();
      lane.slots.push_back({.pinned = *std::move(pinned), .read = *std::move(read), .scratch = {}});
    }
    lanes_.push_back(std::move(lane));
  } catch (const std::bad_alloc&) {
    return Errc::out_of_memory;
  }
  return {};
}

std::uint32_t StagedCopier::threads_for(std::size_t bytes) noexcept {
  if (bytes < copy_thresholds::kThreadedBytesMin) return 1;
  const std::size_t parts = (bytes + options_.slot_bytes - 1) / options_.slot_bytes * kFirstShare;
  const auto wanted = static_cast<std::uint32_t>(std::min<std::size_t>(options_.threads, parts));
  DeviceBackend& device = stream_.device().backend();
  // Fewer threads than wanted make it slower, not wrong.
  while (lanes_.size() < wanted && device.kernel_can_start()) {
    if (!make_lane()) break;
  }
  const auto threads = std::min(wanted, static_cast<std::uint32_t>(lanes_.size()));
  return std::min(threads, 1 + helpers_.start(threads - 1, device.properties().numa_node));
}

Status StagedCopier::copy(std::span<const Copy> copies, Scatter scatter) noexcept {
  std::size_t bytes = 0;
  for (const Copy& copy : copies) bytes += copy.bytes;
  copies_ = copies;
  scatter_ = scatter;
  next_ = {};
  taken_ = 0;
  failed_ = false;
  threads_ = threads_for(bytes);
  if (threads_ > 1) {
    helpers_.begin(
        threads_ - 1,
        [](void* self, std::uint32_t helper) {
          auto& copier = *static_cast<StagedCopier*>(self);
          copier.work(copier.lanes_[helper + 1]);
        },
        this);
  }
  work(lanes_.front());
  if (threads_ > 1) helpers_.end();
  return failed_ ? Status(error_) : Status{};
}

void StagedCopier::work(Lane& lane) noexcept {
  Part part;
  while (take(part)) {
    Slot& slot = lane.slots[lane.next];
    lane.next = (lane.next + 1) % Lane::kSlots;
    Status status = slot.read.wait();
    if (status) status = fill(lane, slot, part);
    if (status) {
      status = send(lane, slot, part.bytes);
      // Also after a failure: some of it may be on its way.
      const Status recorded = stream_.record(slot.read);
      if (status) status = recorded;
    }
    if (!status) fail(status.error());
  }
}

bool StagedCopier::take(Part& part) noexcept {
  const std::lock_guard lock(mutex_);
  if (failed_) return false;
  std::size_t room = taken_ < threads_ && threads_ > 1 ? options_.slot_bytes / kFirstShare : options_.slot_bytes;
  part = {.first = next_.first, .offset = next_.offset, .bytes = 0};
  while (room > 0 && next_.first < copies_.size()) {
    const std::size_t here = std::min(room, copies_[next_.first].bytes - next_.offset);
    room -= here;
    part.bytes += here;
    next_.offset += here;
    if (next_.offset == copies_[next_.first].bytes) next_ = {.first = next_.first + 1};
  }
  ++taken_;
  return part.bytes > 0;
}

void StagedCopier::fail(Error error) noexcept {
  const std::lock_guard lock(mutex_);
  if (failed_) return;
  failed_ = true;
  error_ = error;
}

Status StagedCopier::fill(Lane& lane, const Slot& slot, const Part& part) const noexcept {
  lane.spread.clear();
  std::size_t number = part.first;
  std::size_t offset = part.offset;
  for (std::size_t used = 0; used < part.bytes; ++number, offset = 0) {
    const Copy& copy = copies_[number];
    const std::size_t bytes = std::min(copy.bytes - offset, part.bytes - used);
    if (bytes == 0) continue;
    auto* const to = static_cast<std::byte*>(copy.to) + offset;
    std::byte* const staged = slot.pinned.data() + used;
    host_copy(staged, static_cast<const std::byte*>(copy.from) + offset, bytes, options_.stores);
    used += bytes;
    if (!lane.spread.empty() && static_cast<std::byte*>(lane.spread.back().to) + lane.spread.back().bytes == to) {
      lane.spread.back().bytes += bytes;
      continue;
    }
    try {
      lane.spread.push_back({to, staged, bytes});
    } catch (const std::bad_alloc&) {
      return Errc::out_of_memory;
    }
  }
  return {};
}

Status StagedCopier::send(Lane& lane, Slot& slot, std::size_t bytes) noexcept {
  if (lane.spread.size() == 1) return stream_.copy(lane.spread.front().to, slot.pinned.data(), bytes);
  if (scatter_ == Scatter::through_device) return send_through_device(lane, slot, bytes);
  return stream_.copy_many(lane.spread);
}

Status StagedCopier::send_through_device(Lane& lane, Slot& slot, std::size_t bytes) noexcept {
  if (slot.scratch.bytes() == 0) {
    auto scratch = Buffer::allocate(stream_.device(), MemoryKind::device, options_.slot_bytes);
    if (!scratch) return scratch.error();
    slot.scratch = *std::move(scratch);
  }
  if (const Status copied = stream_.copy(slot.scratch.data(), slot.pinned.data(), bytes); !copied) return copied;
  for (Copy& copy : lane.spread) {
    copy.from = slot.scratch.data() + (static_cast<const std::byte*>(copy.from) - slot.pinned.data());
  }
  return stream_.copy_many(lane.spread, CopyRoute::gather);
}

}  // namespace headrace::detail
