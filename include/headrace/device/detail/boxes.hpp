#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/device/buffer.hpp"
#include "headrace/device/detail/resident_blocks.hpp"
#include "headrace/device/group.hpp"

namespace headrace {

/// The kernel's side of every kind of mailbox. A box holds one request at a time. One block answers it, or the blocks
/// of one item together (then LaunchShape::items is the number of boxes). Block 0 polls for requests and notifies the
/// others through device memory. The last block to finish publishes the answer.
struct BoxesView {
  static constexpr std::uint32_t kStopped = ~std::uint32_t{0};
  static constexpr std::size_t kWordStride = 64 / sizeof(std::uint32_t);  ///< Words of different boxes share no line.
  static constexpr std::uint32_t kPollsPerHeartbeat = 1024;
  /// Polls per read of the stop word, because every read costs one more access over the link.
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
  std::uint32_t* heartbeats = nullptr;  ///< In host memory. Increases while the box's block 0, its only writer, polls.
  const std::uint32_t* stop = nullptr;  ///< In host memory. Nonzero: leave. Only the host writes it.
  std::uint32_t* running = nullptr;     ///< In host memory. 1 once every block has called enter().
  std::uint32_t* relays = nullptr;      ///< In device memory: the request that block 0 has announced to the others.
  std::uint32_t* finished = nullptr;    ///< In device memory: blocks that have finished their part of the request.
  std::uint32_t* entered = nullptr;     ///< In device memory: blocks that have called enter().

  [[nodiscard]] HEADRACE_HD const std::byte* request(std::uint32_t box) const {
    return requests + box * request_stride;
  }
  [[nodiscard]] HEADRACE_HD std::byte* answer(std::uint32_t box) const { return answers + box * answer_stride; }

  /// Every thread of every block calls it once, before anything else, so that the host sees when all blocks are on the
  /// device.
  template <class Group>
  HEADRACE_HD void enter(Group group) const {
    if (group.rank() == 0) detail::report_entry(group, *entered, *running, blocks * box_count);
  }

 protected:
  /// Every thread of the block calls it. Waits for a request after `served` and returns its sequence, or kStopped.
  /// Everything that the host wrote before it posted is visible afterwards.
  /// @param poll  called by thread 0 of block 0; returns the sequence of the last request, `served` if none is new
  template <class Group, class Poll>
  [[nodiscard]] HEADRACE_HD std::uint32_t wait_for(Group group, std::uint32_t box, std::uint32_t served,
                                                   Poll poll) const {
    std::uint32_t next = kStopped;
    if (group.rank() == 0) {
      next = blocks == 1 || group.block() == 0 ? look(group, box, served, poll) : listen(group, box, served);
    }
    return group.broadcast(next);
  }

  /// Every thread of the block calls it once its part of the answer is written. Calls `publish` in one thread, once all
  /// blocks of the box have called finish().
  template <class Group, class Publish>
  HEADRACE_HD void finish(Group group, std::uint32_t box, Publish publish) const {
    group.sync();
    if (group.rank() != 0) return;
    if (blocks > 1) {
      std::uint32_t& count = finished[box * kWordStride];
      if (group.fetch_add_on_device(count, 1U) + 1 != blocks) return;
      // The blocks add again only for a later request, which comes after publish(), a release.
      group.store_relaxed_on_device(count, 0U);
    }
    publish();
  }

 private:
  template <class Group, class Poll>
  [[nodiscard]] HEADRACE_HD std::uint32_t look(Group group, std::uint32_t box, std::uint32_t served, Poll poll) const {
    std::uint32_t next = kStopped;
    // Relaxed here and below, because the word hands nothing over: the first poll need not wait for a read over the
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

  /// Returns what block 0 announced. Also checks for kLeaveAtOnce now and then, so that a lost block 0 does not keep
  /// the others.
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

/// The host's side of every kind of mailbox.
class Boxes {
 public:
  [[nodiscard]] std::uint32_t box_count() const noexcept { return boxes_.box_count; }

  /// Where to write the next request to `box`. Use it only while the box has no request.
  [[nodiscard]] std::byte* request(std::uint32_t box) noexcept {
    return requests_.data() + box * boxes_.request_stride;
  }
  [[nodiscard]] const std::byte* answer(std::uint32_t box) const noexcept { return boxes_.answer(box); }

  /// Tells every block to leave once it has answered its current request.
  void stop() noexcept { set_stop(BoxesView::kLeave); }
  /// The same for boxes whose block 0 may be lost: an unanswered request may stay unanswered.
  void stop_at_once() noexcept { set_stop(BoxesView::kLeaveAtOnce); }
  /// True once every block has started.
  [[nodiscard]] bool running() const noexcept;
  /// A count that increases while the block of `box` polls. If it stands still while the box has a request, the kernel
  /// hangs in its work or has ended.
  [[nodiscard]] std::uint32_t heartbeat(std::uint32_t box) const noexcept;

 protected:
  /// Throws DeviceError if the memory cannot be allocated, UsageError for no boxes or no blocks.
  /// @param extra_words  words of host memory per box for this kind of mailbox, one cache line each
  Boxes(Device device, std::uint32_t box_count, std::size_t request_bytes, std::size_t answer_bytes,
        std::uint32_t blocks, std::uint32_t extra_words);
  ~Boxes() = default;
  Boxes(Boxes&&) noexcept = default;
  Boxes& operator=(Boxes&&) noexcept = default;

  /// The extra word of kind `which` of box 0; the word of box b is kWordStride * b further.
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
