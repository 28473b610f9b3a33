#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/device/buffer.hpp"
#include "headrace/device/detail/resident_blocks.hpp"
#include "headrace/device/group.hpp"

namespace headrace {

/// The kernel's side of what every kind of mailbox has. A box holds one request at a time; one block answers it, or
/// several blocks together: the item's (LaunchShape::items counts the boxes then). Their block 0 looks for requests and
/// tells the others through device memory; whichever of them is done last publishes the answer.
struct BoxesView {
  static constexpr std::uint32_t kStopped = ~std::uint32_t{0};
  static constexpr std::size_t kWordStride = 64 / sizeof(std::uint32_t);  ///< Words of different boxes share no line.
  static constexpr std::uint32_t kPollsPerHeartbeat = 1024;
  /// The stop word is looked at so rarely, because every look is one more read over the link.
  static constexpr std::uint32_t kPollsPerStop = 8;
  /// Values of the stop word.
  static constexpr std::uint32_t kLeave = 1;
  static constexpr std::uint32_t kLeaveAtOnce = 2;

  std::uint32_t box_count = 0;
  std::uint32_t blocks = 1;  ///< Blocks that answer one request.
  std::size_t request_stride = 0;
  std::size_t answer_stride = 0;
  const std::byte* requests = nullptr;
  std::byte* answers = nullptr;
  std::uint32_t* heartbeats = nullptr;  ///< In host memory. Grows while the box's block 0 polls, its only writer.
  const std::uint32_t* stop = nullptr;  ///< In host memory. Nonzero: leave. Written by the host alone.
  std::uint32_t* running = nullptr;     ///< In host memory. 1 once every block has come to enter().
  std::uint32_t* relays = nullptr;      ///< In device memory: the request that block 0 has told the others of.
  std::uint32_t* finished = nullptr;    ///< In device memory: blocks that are done with the request.
  std::uint32_t* entered = nullptr;     ///< In device memory: blocks that have come to enter().

  [[nodiscard]] HEADRACE_HD const std::byte* request(std::uint32_t box) const {
    return requests + box * request_stride;
  }
  [[nodiscard]] HEADRACE_HD std::byte* answer(std::uint32_t box) const { return answers + box * answer_stride; }

  /// Every thread of every block, once, before anything else: lets the host see when all blocks are on the device.
  template <class Group>
  HEADRACE_HD void enter(Group group) const {
    if (group.rank() == 0) detail::report_entry(group, *entered, *running, blocks * box_count);
  }

 protected:
  /// Every thread of the block: waits for a request after `served`; its sequence, or kStopped. What the host wrote
  /// before it posted is visible afterwards.
  /// @param poll  called by block 0's thread 0: the sequence of the last request, `served` while there is no new one
  template <class Group, class Poll>
  [[nodiscard]] HEADRACE_HD std::uint32_t wait_for(Group group, std::uint32_t box, std::uint32_t served,
                                                   Poll poll) const {
    std::uint32_t next = kStopped;
    if (group.rank() == 0) {
      next = blocks == 1 || group.block() == 0 ? look(group, box, served, poll) : listen(group, box, served);
    }
    return group.broadcast(next);
  }

  /// Every thread of the block: its part of the answer is written. Calls `publish` in one thread, once all blocks of
  /// the box have come here.
  template <class Group, class Publish>
  HEADRACE_HD void finish(Group group, std::uint32_t box, Publish publish) const {
    group.sync();
    if (group.rank() != 0) return;
    if (blocks > 1) {
      std::uint32_t& count = finished[box * kWordStride];
      if (group.fetch_add_on_device(count, 1U) + 1 != blocks) return;
      // The blocks add again only to a later request, which comes after publish(): that is a release.
      group.store_relaxed_on_device(count, 0U);
    }
    publish();
  }

 private:
  template <class Group, class Poll>
  [[nodiscard]] HEADRACE_HD std::uint32_t look(Group group, std::uint32_t box, std::uint32_t served, Poll poll) const {
    std::uint32_t next = kStopped;
    // Relaxed here and below, because nothing is handed over with it: the first poll need not wait for a read over the
    // link, nor the second for a fence.
    std::uint32_t beat = group.load_relaxed(heartbeats[box * kWordStride]);
    for (std::uint32_t polls = 0;; ++polls) {
      const std::uint32_t sequence = poll();
      if (sequence != served) {
        next = sequence;
        break;
      }
      if (polls % kPollsPerStop == kPollsPerStop - 1 && group.load(*stop) != 0) break;
      if (polls % kPollsPerHeartbeat == 0) group.store_relaxed(heartbeats[box * kWordStride], ++beat);
      group.relax();
    }
    if (blocks > 1) group.store_on_device(relays[box * kWordStride], next);  // pairs with listen()
    return next;
  }

  /// What block 0 heard. Not even a block 0 that is gone keeps the others: kLeaveAtOnce is looked for now and then.
  template <class Group>
  [[nodiscard]] HEADRACE_HD std::uint32_t listen(Group group, std::uint32_t box, std::uint32_t served) const {
    for (std::uint32_t polls = 1;; ++polls) {
      const std::uint32_t sequence = group.load_on_device(relays[box * kWordStride]);
      if (sequence != served) return sequence;
      if (polls % kPollsPerHeartbeat == 0 && group.load(*stop) == kLeaveAtOnce) return kStopped;
      group.relax();
    }
  }
};

/// The host's side of what every kind of mailbox has.
class Boxes {
 public:
  [[nodiscard]] std::uint32_t box_count() const noexcept { return boxes_.box_count; }

  /// Where to write the next request to `box`; only while it has none.
  [[nodiscard]] std::byte* request(std::uint32_t box) noexcept {
    return requests_.data() + box * boxes_.request_stride;
  }
  [[nodiscard]] const std::byte* answer(std::uint32_t box) const noexcept { return boxes_.answer(box); }

  /// Tells every block to leave once it has answered what it is at.
  void stop() noexcept { set_stop(BoxesView::kLeave); }
  /// The same for boxes whose block 0 may be gone: a request that was not yet answered may stay so.
  void stop_at_once() noexcept { set_stop(BoxesView::kLeaveAtOnce); }
  /// True once every block has started.
  [[nodiscard]] bool running() const noexcept;
  /// A count that grows while the block of `box` polls; one that stands still while the box has a request means a
  /// kernel that hangs in its work or is gone.
  [[nodiscard]] std::uint32_t heartbeat(std::uint32_t box) const noexcept;

 protected:
  /// Throws DeviceError when the memory cannot be had, UsageError for no boxes or no blocks.
  /// @param extra_words  words of host memory that a kind of mailbox has for each box, a line each
  Boxes(Device device, std::uint32_t box_count, std::size_t request_bytes, std::size_t answer_bytes,
        std::uint32_t blocks, std::uint32_t extra_words);
  ~Boxes() = default;
  Boxes(Boxes&&) noexcept = default;
  Boxes& operator=(Boxes&&) noexcept = default;

  /// The first of the extra words of kind `which`; box b's is kWordStride * b further.
  [[nodiscard]] std::uint32_t* extra_words(std::uint32_t which) noexcept;

  BoxesView boxes_;

 private:
  void set_stop(std::uint32_t value) noexcept;

  Buffer words_;         ///< Mapped: heartbeats, extra words, stop, running.
  Buffer device_words_;  ///< On the device: relays, finished, entered.
  Buffer requests_;
  Buffer answers_;
};

}  // namespace headrace
