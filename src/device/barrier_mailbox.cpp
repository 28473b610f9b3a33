#include "headrace/device/detail/barrier_mailbox.hpp"

#include <fmt/format.h>

#include "device/backend.hpp"
#include "headrace/base/error.hpp"

namespace headrace {

namespace {

const detail::BarrierFunctions& functions_of(Device device) {
  const detail::BarrierFunctions* functions = device.backend().barrier_functions();
  if (functions != nullptr) return *functions;
  throw UsageError(fmt::format("{} cannot share barriers with the host because it lacks concurrent access to managed "
                               "memory; use sequence words (doorbell words)",
                               device.name()),
                   Errc::not_supported);
}

}  // namespace

BarrierMailbox::BarrierMailbox(Device device, std::uint32_t box_count, std::size_t request_bytes,
                               std::size_t answer_bytes, std::uint32_t blocks)
    : Boxes(device, box_count, request_bytes, answer_bytes, blocks, 0),
      functions_(&functions_of(device)),
      cells_(device, MemoryKind::managed, 2 * functions_->cell_stride * box_count),
      sides_(std::make_unique<Side[]>(box_count)) {
  static_cast<BoxesView&>(view_) = boxes_;
  view_.cell_stride = functions_->cell_stride;
  view_.request_cells = cells_.data();
  view_.answer_cells = cells_.data() + box_count * view_.cell_stride;
  for (std::uint32_t box = 0; box < box_count; ++box) {
    functions_->construct(request_cell(box));
    functions_->construct(answer_cell(box));
  }
}

BarrierCell& BarrierMailbox::request_cell(std::uint32_t box) const noexcept {
  return *reinterpret_cast<BarrierCell*>(view_.request_cells + box * view_.cell_stride);
}
BarrierCell& BarrierMailbox::answer_cell(std::uint32_t box) const noexcept {
  return *reinterpret_cast<BarrierCell*>(view_.answer_cells + box * view_.cell_stride);
}

std::uint32_t BarrierMailbox::post(std::uint32_t box) noexcept {
  Side& side = sides_[box];
  std::uint32_t sequence = side.posted.load(std::memory_order_relaxed) + 1;  // this thread is its only writer
  if (sequence == BoxesView::kStopped) sequence = 0;
  side.posted.store(sequence, std::memory_order_relaxed);
  // Arrive at the answer's barrier first: the kernel may answer before this thread continues.
  side.token = functions_->arrive(answer_cell(box));
  static_cast<void>(functions_->arrive(request_cell(box)));  // meets BarrierMailboxView::wait
  return sequence;
}

bool BarrierMailbox::ready(std::uint32_t box) noexcept {
  Side& side = sides_[box];
  const std::uint32_t posted = side.posted.load(std::memory_order_relaxed);
  if (side.seen.load(std::memory_order_relaxed) == posted) return true;
  if (!functions_->passed(answer_cell(box), side.token)) return false;  // meets BarrierMailboxView::reply
  side.seen.store(posted, std::memory_order_relaxed);
  return true;
}

std::uint32_t BarrierMailbox::posted(std::uint32_t box) const noexcept {
  return sides_[box].posted.load(std::memory_order_relaxed);
}

bool BarrierMailbox::seen(std::uint32_t box) const noexcept {
  return sides_[box].seen.load(std::memory_order_relaxed) == posted(box);
}

}  // namespace headrace
