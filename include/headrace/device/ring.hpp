#pragma once

// A Ring hands out fixed slots of one buffer in order, without locks: from a producer to consumers, and back to it once
// they have been released.
//
//     headrace::Ring ring(headrace::Device::parse("best"), headrace::MemoryKind::pinned, 2048, 64);
//     if (std::optional<std::uint64_t> position = ring.try_reserve()) {
//       ring.slot(*position)[0] = std::byte{7};
//       ring.publish(*position + 1);
//     }
//     if (std::optional<std::uint64_t> position = ring.try_claim()) {  // in any thread
//       std::printf("%d\n", std::to_integer<int>(ring.slot(*position)[0]));
//       ring.release(*position + 1);
//     }

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "headrace/base/detail/bytes.hpp"
#include "headrace/device/buffer.hpp"

namespace headrace {

/// Fixed slots in one buffer, handed out in order without locks or allocation: one producer, any number of consumers,
/// one releaser. A position counts slots since the start and never wraps in practice (64 bits); slot(position) is its
/// memory. A slot goes reserve -> publish -> claim -> release.
class Ring {
 public:
  /// Allocates the buffer of a ring of free slots.
  /// @param slot_bytes  bytes that a slot must hold.
  /// @param slot_count  a power of two.
  /// @param lead_bytes  distance of slots from a multiple of 256, so that data further into a slot can be aligned.
  ///
  /// Throws UsageError for another slot_count, and as Buffer does.
  Ring(Device device, MemoryKind kind, std::size_t slot_bytes, std::size_t slot_count, std::size_t lead_bytes = 0);

  [[nodiscard]] std::size_t slot_count() const noexcept { return mask_ + 1; }  ///< Slots in the buffer; a power of two.
  /// Distance from one slot to the next in bytes: lead and slot, rounded up to a multiple of 256.
  [[nodiscard]] std::size_t slot_stride() const noexcept { return stride_; }
  /// Bytes that a slot holds: at least as many as were asked for.
  [[nodiscard]] std::size_t slot_bytes() const noexcept { return stride_ - lead_; }
  /// The memory of the slot at `position`, which is that of every slot_count()-th position.
  [[nodiscard]] std::byte* slot(std::uint64_t position) const noexcept {
    return buffer_.data() + (position & mask_) * stride_ + lead_;
  }
  /// The buffer that all slots lie in.
  [[nodiscard]] const Buffer& buffer() const noexcept { return buffer_; }

  /// Producer: the first of `count` free positions, or empty if fewer are free. Reserving again before publish()
  /// returns the same position.
  [[nodiscard]] std::optional<std::uint64_t> try_reserve(std::size_t count = 1) noexcept {
    if (next_ + count - released_seen_ > slot_count()) {
      released_seen_ = released_.load(std::memory_order_acquire);  // pairs with release()
      if (next_ + count - released_seen_ > slot_count()) return std::nullopt;
    }
    return next_;
  }

  /// Producer: hands every slot below `end` to the consumers. Sequentially consistent, so that a producer may check for
  /// sleeping consumers right after it.
  void publish(std::uint64_t end) noexcept {
    next_ = end;
    published_.store(end, std::memory_order_seq_cst);
  }

  /// Slots that one consumer took together.
  struct Claim {
    std::uint64_t first = 0;  ///< The first position.
    std::uint64_t count = 0;  ///< How many positions; 0 if nothing was published.
  };

  /// Any consumer: takes up to `most` of the next published slots for itself. The count is 0 if there are none.
  [[nodiscard]] Claim try_claim_many(std::uint64_t most) noexcept {
    std::uint64_t position = claimed_.load(std::memory_order_relaxed);
    while (true) {
      const std::uint64_t published = published_.load(std::memory_order_seq_cst);
      if (position >= published) return {};
      const std::uint64_t count = std::min(most, published - position);
      if (claimed_.compare_exchange_weak(position, position + count, std::memory_order_acq_rel,
                                         std::memory_order_relaxed)) {
        return {position, count};
      }
    }
  }

  /// Any consumer: takes the next published slot for itself.
  [[nodiscard]] std::optional<std::uint64_t> try_claim() noexcept {
    const Claim claim = try_claim_many(1);
    return claim.count == 0 ? std::nullopt : std::optional(claim.first);
  }

  /// The releaser: every slot below `end` may be reused. Called in ring order.
  void release(std::uint64_t end) noexcept { released_.store(end, std::memory_order_release); }

  /// The position after the last published slot. Any thread.
  [[nodiscard]] std::uint64_t published() const noexcept { return published_.load(std::memory_order_acquire); }
  /// The position after the last released slot. Any thread.
  [[nodiscard]] std::uint64_t released() const noexcept { return released_.load(std::memory_order_acquire); }

 private:
  std::size_t lead_;
  std::size_t stride_;
  std::size_t mask_;
  Buffer buffer_;
  alignas(kNoSharing) std::uint64_t next_ = 0;  ///< Only the producer uses it.
  std::uint64_t released_seen_ = 0;  ///< Only the producer uses it, to avoid reading the releaser's cache line.
  alignas(kNoSharing) std::atomic<std::uint64_t> published_{0};
  alignas(kNoSharing) std::atomic<std::uint64_t> claimed_{0};
  alignas(kNoSharing) std::atomic<std::uint64_t> released_{0};
};

}  // namespace headrace
