#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "headrace/base/bytes.hpp"
#include "headrace/device/buffer.hpp"

namespace headrace {

/// Fixed slots in one buffer, taken and given back in any order by any thread, without locks or allocation.
class Pool {
 public:
  /// @param slot_bytes  bytes a slot must hold; the stride is rounded up to 256.
  /// @param slot_count  at least 1 and below 2^32 - 1, else UsageError.
  Pool(Device device, MemoryKind kind, std::size_t slot_bytes, std::size_t slot_count);

  [[nodiscard]] std::size_t slot_count() const noexcept { return count_; }
  [[nodiscard]] std::size_t slot_stride() const noexcept { return stride_; }
  [[nodiscard]] std::byte* slot(std::uint32_t index) const noexcept { return buffer_.data() + index * stride_; }

  /// A slot for the caller alone, or empty when all are taken.
  [[nodiscard]] std::optional<std::uint32_t> try_take() noexcept;
  /// Gives a slot back. It must have come from try_take() and not been given back since.
  void give(std::uint32_t index) noexcept;

 private:
  std::size_t count_;
  std::size_t stride_;
  Buffer buffer_;
  std::unique_ptr<std::atomic<std::uint32_t>[]> below_;  ///< below_[i]: the free slot under i on the stack.
  alignas(kNoSharing) std::atomic<std::uint64_t> top_;   ///< Index of the top, and a count against ABA above it.
};

}  // namespace headrace
