#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "headrace/base/detail/bytes.hpp"
#include "headrace/device/detail/boxes.hpp"

namespace headrace {

namespace detail {
struct BarrierFunctions;
}

/// The kernel's side of a BarrierMailbox.
struct BarrierMailboxView : BoxesView {
  std::size_t cell_stride = 0;
  std::byte* request_cells = nullptr;  ///< Barriers that are passed once there is a request.
  std::byte* answer_cells = nullptr;   ///< Barriers that are passed once there is an answer.

  /// As MailboxView::wait().
  template <class Group>
  [[nodiscard]] HEADRACE_HD std::uint32_t wait(Group group, std::uint32_t box, std::uint32_t served) const {
    BarrierCell& cell = *reinterpret_cast<BarrierCell*>(request_cells + box * cell_stride);
    const std::uint32_t next = served + 1 == kStopped ? 0 : served + 1;
    std::uint64_t token = 0;
    if (group.block() == 0 && group.rank() == 0) token = group.arrive(cell);  // meets BarrierMailbox::post
    return wait_for(group, box, served, [&] { return group.passed(cell, token) ? next : served; });
  }

  /// As MailboxView::reply().
  template <class Group>
  HEADRACE_HD void reply(Group group, std::uint32_t box, std::uint32_t /*sequence*/) const {
    BarrierCell& cell = *reinterpret_cast<BarrierCell*>(answer_cells + box * cell_stride);
    finish(group, box, [&] { static_cast<void>(group.arrive(cell)); });  // meets BarrierMailbox::ready
  }
};

/// A Mailbox whose two sides meet at barriers instead of reading each other's words: one barrier for the request and
/// one for the answer (Guo 2024, "Persistent Kernel Pool": cuda::barrier<cuda::thread_scope_system>). Both sides arrive
/// with an atomic read-modify-write, so the barriers lie in managed memory. If the link has no atomics, that memory
/// migrates to the side that arrives: correct everywhere, but slow over PCIe.
class BarrierMailbox : public Boxes {
 public:
  /// As Mailbox(). Serves boxes by item: box b belongs to item b. Throws UsageError if host and device cannot use
  /// managed memory at the same time.
  BarrierMailbox(Device device, std::uint32_t box_count, std::size_t request_bytes, std::size_t answer_bytes,
                 std::uint32_t blocks = 1);

  [[nodiscard]] BarrierMailboxView view() const noexcept { return view_; }

  /// Hands the request over and returns its sequence.
  std::uint32_t post(std::uint32_t box) noexcept;
  /// True if the last request posted to `box` has been answered, or none has been posted. Only the posting thread may
  /// call it.
  [[nodiscard]] bool ready(std::uint32_t box) noexcept;
  /// Sequence of the last request. Any thread may call it.
  [[nodiscard]] std::uint32_t posted(std::uint32_t box) const noexcept;
  /// True if the posting thread has seen the answer to the last request. Any thread may call it.
  [[nodiscard]] bool seen(std::uint32_t box) const noexcept;

 private:
  struct alignas(kNoSharing) Side {
    std::uint64_t token = 0;  ///< The phase of the answer's barrier in which the last post arrived.
    std::atomic<std::uint32_t> posted{0};
    std::atomic<std::uint32_t> seen{0};
  };

  [[nodiscard]] BarrierCell& request_cell(std::uint32_t box) const noexcept;
  [[nodiscard]] BarrierCell& answer_cell(std::uint32_t box) const noexcept;

  const detail::BarrierFunctions* functions_;
  Buffer cells_;
  std::unique_ptr<Side[]> sides_;
  BarrierMailboxView view_;
};

}  // namespace headrace
