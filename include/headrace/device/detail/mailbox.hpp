#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/device/detail/boxes.hpp"

namespace headrace {

/// The kernel's side of a Mailbox: passed by value to a kernel launched with launch_resident().
struct MailboxView : BoxesView {
  const std::uint32_t* posted = nullptr;  ///< Sequence of the last request; only the host writes it.
  std::uint32_t* answered = nullptr;      ///< Sequence of the last answer; only the box's blocks write it.

  /// Every thread of the block calls it. Waits for a request after `served` and returns its sequence, or kStopped.
  /// Everything that the host wrote before post() is visible afterwards.
  template <class Group>
  [[nodiscard]] HEADRACE_HD std::uint32_t wait(Group group, std::uint32_t box, std::uint32_t served) const {
    return wait_for(group, box, served, [&] {
      return group.load(posted[box * kWordStride]);  // pairs with Mailbox::post
    });
  }

  /// Every thread of the block calls it. Publishes the answer to `sequence`, which any of them has written before.
  template <class Group>
  HEADRACE_HD void reply(Group group, std::uint32_t box, std::uint32_t sequence) const {
    finish(group, box, [&] { group.store(answered[box * kWordStride], sequence); });  // pairs with Mailbox::ready
  }
};

/// Exchanges requests and answers with a resident kernel. Each box holds one request at a time and has one host thread
/// and one block, or the blocks of one item. All words in host memory have a single writer at a time, so no atomic
/// read-modify-write crosses the link.
class Mailbox : public Boxes {
 public:
  /// @param blocks  that answer one request together; the kernel is launched with this many blocks and box_count items.
  ///                With 1, block b or item b may serve box b.
  /// Throws DeviceError if the memory cannot be allocated, UsageError for no boxes or no blocks.
  Mailbox(Device device, std::uint32_t box_count, std::size_t request_bytes, std::size_t answer_bytes,
          std::uint32_t blocks = 1);

  [[nodiscard]] MailboxView view() const noexcept { return view_; }

  /// Hands the request over and returns its sequence.
  std::uint32_t post(std::uint32_t box) noexcept;
  /// True if the last request posted to `box` has been answered, or none has been posted. Any thread may call it.
  [[nodiscard]] bool ready(std::uint32_t box) const noexcept;
  /// Sequence of the last request. Any thread may call it.
  [[nodiscard]] std::uint32_t posted(std::uint32_t box) const noexcept;

 private:
  MailboxView view_;
};

}  // namespace headrace
