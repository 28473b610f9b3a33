#include "serve/dispatch_queue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <limits>

#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/error.hpp"
#include "headrace/device/detail/resident_kernel.hpp"

namespace headrace::serve::detail {

namespace {

/// Large enough that block 0 seldom has to check whether a half of the queue has been read.
constexpr std::size_t kEntriesMin = 4096;

/// Log2 of the entries. Throws UsageError if the parts of half the queue do not fit in 32 bits.
std::uint32_t queue_log2(const DispatchView& view) {
  const std::size_t entries = std::bit_ceil(std::max(2 * std::size_t{view.lane_count} * view.slots, kEntriesMin));
  const std::size_t parts = entries / 2 * view.blocks;
  if (parts > std::numeric_limits<std::uint32_t>::max()) {
    throw UsageError(
        fmt::format("plan: {} clients with {} slots each and {} blocks per query exceed what schedule 'dispatched' can "
                    "count; use fewer slots",
                    view.lane_count, view.slots, view.blocks));
  }
  return static_cast<std::uint32_t>(std::bit_width(entries - 1));
}

/// Offset of each piece in bytes. The queue itself is first.
struct Layout {
  std::size_t next_ticket;
  std::size_t leave;
  std::size_t taken;
  std::size_t places;
  std::size_t first_tails;
  std::size_t seen_at;
  std::size_t arrived;
  std::size_t end;
};

Layout layout_of(const DispatchView& view) {
  const std::size_t slots = std::size_t{view.lane_count} * view.slots;
  Layout at{};
  at.next_ticket = (std::size_t{1} << view.queue_log2) * sizeof(std::uint64_t);
  at.leave = at.next_ticket + kNoSharing;
  at.taken = at.leave + kNoSharing;
  at.places = at.taken + 2 * DispatchView::kTakenStride * sizeof(std::uint32_t);
  at.first_tails = at.places + sizeof(DispatchPlaces);
  at.seen_at = align_up(at.first_tails + view.lane_count * sizeof(std::uint32_t), sizeof(std::uint64_t));
  at.arrived = at.seen_at + (view.sample_every != 0 ? slots * sizeof(std::uint64_t) : 0);
  at.end = at.arrived + (view.blocks > 1 ? slots * sizeof(std::uint32_t) : 0);
  return at;
}

}  // namespace

DispatchQueue::DispatchQueue(Device device, DispatchView& view) : device_(device) {
  view.queue_log2 = queue_log2(view);
  const Layout at = layout_of(view);
  const auto memory = std::make_shared<Memory>();
  memory->queue = Buffer(device, MemoryKind::device, at.end);
  image_ = Buffer(device, MemoryKind::pinned, at.end);
  std::byte* const data = memory->queue.data();
  view.entries = memory->queue.as<std::uint64_t>();
  view.next_ticket = reinterpret_cast<std::uint64_t*>(data + at.next_ticket);
  view.leave = reinterpret_cast<std::uint32_t*>(data + at.leave);
  view.taken = reinterpret_cast<std::uint32_t*>(data + at.taken);
  view.first_tails = reinterpret_cast<const std::uint32_t*>(data + at.first_tails);
  view.seen_at = reinterpret_cast<std::uint64_t*>(data + at.seen_at);
  if (view.blocks > 1) {
    view.arrived = reinterpret_cast<std::uint32_t*>(data + at.arrived);
    memory->parts = Buffer(device, MemoryKind::device, std::size_t{view.lane_count} * view.slots * view.answer_stride);
    view.parts = memory->parts.data();
  }
  memory_ = memory;
}

void DispatchQueue::fill(DispatchView& view, const std::vector<std::unique_ptr<DirectLane>>& lanes,
                         const MultiprocessorSet* own) const {
  const Layout at = layout_of(view);
  std::memset(image_.data(), 0, image_.bytes());
  view.places = nullptr;
  if (own != nullptr) {
    view.places = reinterpret_cast<DispatchPlaces*>(memory_->queue.data() + at.places);
    reinterpret_cast<DispatchPlaces*>(image_.data() + at.places)->own = *own;
  }
  DispatchView image = view;
  image.entries = image_.as<std::uint64_t>();
  auto* const tails = reinterpret_cast<std::uint32_t*>(image_.data() + at.first_tails);
  view.first_ticket = 0;
  for (std::uint32_t i = 0; i < lanes.size(); ++i) {
    const auto waits = [&](std::uint64_t position) {
      const std::uint32_t ticket = view.first_ticket++;
      image.entry_at(ticket) = image.entry(ticket, i, static_cast<std::uint32_t>(position));
    };
    tails[i] = lanes[i]->for_each_unanswered(waits);
  }
  ResidentKernel::write(device_, memory_->queue, image_);
}

}  // namespace headrace::serve::detail
