#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/device/buffer.hpp"
#include "headrace/device/group.hpp"

namespace headrace {

/// The kernel's side of a Mailbox: passed by value to a kernel launched with launch_resident(). One block serves one
/// box.
struct MailboxView {
  static constexpr std::uint32_t kStopped = ~std::uint32_t{0};
  static constexpr std::size_t kWordStride = 64 / sizeof(std::uint32_t);  ///< Words of different boxes share no line.
  static constexpr std::uint32_t kPollsPerHeartbeat = 1024;

  std::uint32_t box_count = 0;
  std::size_t request_stride = 0;
  std::size_t answer_stride = 0;
  const std::byte* requests = nullptr;
  std::byte* answers = nullptr;
  const std::uint32_t* posted = nullptr;  ///< Sequence of the last request; written by the host alone.
  std::uint32_t* answered = nullptr;      ///< Sequence of the last answer; written by the box's block alone.
  std::uint32_t* heartbeats = nullptr;    ///< Grows while the block lives; written by the block alone.
  const std::uint32_t* stop = nullptr;    ///< Nonzero: leave. Written by the host alone.

  [[nodiscard]] HEADRACE_HD const std::byte* request(std::uint32_t box) const {
    return requests + box * request_stride;
  }
  [[nodiscard]] HEADRACE_HD std::byte* answer(std::uint32_t box) const { return answers + box * answer_stride; }

  /// Every thread of the block: waits for a request after `served`; its sequence, or kStopped.
  /// What the host wrote before post() is visible afterwards.
  template <class Group>
  [[nodiscard]] HEADRACE_HD std::uint32_t wait(Group group, std::uint32_t box, std::uint32_t served) const {
    std::uint32_t next = kStopped;
    if (group.rank() == 0) {
      std::uint32_t beat = group.load(heartbeats[box * kWordStride]);
      for (std::uint32_t polls = 0;; ++polls) {
        const std::uint32_t sequence = group.load(posted[box * kWordStride]);  // pairs with Mailbox::post
        if (sequence != served) {
          next = sequence;
          break;
        }
        if (group.load(*stop) != 0) break;
        if (polls % kPollsPerHeartbeat == 0) group.store(heartbeats[box * kWordStride], ++beat);
        group.relax();
      }
    }
    return group.broadcast(next);
  }

  /// Every thread of the block: publishes the answer to `sequence`, written by any of them before.
  template <class Group>
  HEADRACE_HD void reply(Group group, std::uint32_t box, std::uint32_t sequence) const {
    group.sync();
    if (group.rank() == 0) group.store(answered[box * kWordStride], sequence);  // pairs with Mailbox::ready
  }
};

/// Requests to and answers from a kernel that stays resident. Each box holds one request at a time and has one host
/// thread and one block. All words have a single writer, so no atomic read-modify-write crosses the link.
class Mailbox {
 public:
  /// Throws DeviceError when the memory cannot be had, UsageError for no boxes.
  Mailbox(Device device, std::uint32_t box_count, std::size_t request_bytes, std::size_t answer_bytes);

  [[nodiscard]] MailboxView view() const noexcept { return view_; }
  [[nodiscard]] std::uint32_t box_count() const noexcept { return view_.box_count; }

  /// Where to write the next request to `box`; only while ready(box).
  [[nodiscard]] std::byte* request(std::uint32_t box) noexcept;
  /// Hands the request over; returns its sequence.
  std::uint32_t post(std::uint32_t box) noexcept;
  /// True when the last request posted to `box` has been answered, or none has been posted.
  [[nodiscard]] bool ready(std::uint32_t box) const noexcept;
  [[nodiscard]] const std::byte* answer(std::uint32_t box) const noexcept;

  /// Tells every block to leave once it has answered what it is at.
  void stop() noexcept;
  /// A count that grows while the block of `box` polls; one that stands still while the box is not ready means a kernel
  /// that hangs in its work or is gone.
  [[nodiscard]] std::uint32_t heartbeat(std::uint32_t box) const noexcept;

 private:
  Buffer words_;
  Buffer requests_;
  Buffer answers_;
  MailboxView view_;
};

}  // namespace headrace
