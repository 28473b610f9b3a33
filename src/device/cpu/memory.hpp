#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "headrace/base/result.hpp"
#include "headrace/device/buffer.hpp"

namespace headrace::detail {

/// The memory of a CPU device. Every kind is plain memory aligned to 256 bytes. Device, stream-ordered, pool and
/// managed memory count against the device's budget; the other kinds do not. Pinned and mapped memory is not
/// page-locked: no copy engine needs that, and the right to lock is often missing.
class CpuMemory {
 public:
  explicit CpuMemory(std::size_t budget_bytes) noexcept : budget_(budget_bytes) {}

  [[nodiscard]] Result<void*> allocate(MemoryKind kind, std::size_t bytes) noexcept;
  void deallocate(MemoryKind kind, void* data, std::size_t bytes) noexcept;
  /// Blocks that the pool keeps count as used, as on a CUDA device.
  [[nodiscard]] MemoryInfo info() const noexcept;

  /// Charges memory that lies elsewhere, such as the pages of a span. False if the budget does not allow it.
  [[nodiscard]] bool take_budget(std::size_t bytes) noexcept;
  /// For a forked child, because another thread of the parent may have held the locks. Memory that the parent has
  /// allocated or keeps in its pool is copied into the child and counts there, too.
  void renew_locks() noexcept;
  void give_budget(std::size_t bytes) noexcept { discharge(bytes); }

 private:
  /// A free block of the pool, stored in the block itself.
  struct FreeBlock {
    FreeBlock* next;
  };
  struct SizeClass {
    std::mutex mutex;
    FreeBlock* free = nullptr;
  };
  /// Four size classes per power of two, so at most a quarter of a block is unused.
  static constexpr std::size_t kClassesPerDouble = 4;
  static constexpr std::size_t kSmallestShift = 8;
  static constexpr std::size_t kClassCount = kClassesPerDouble * (40 - kSmallestShift);

  struct Class {
    std::size_t index;
    std::size_t bytes;
  };
  [[nodiscard]] static Class class_of(std::size_t bytes) noexcept;

  [[nodiscard]] Result<void*> allocate_pooled(std::size_t bytes) noexcept;
  [[nodiscard]] Result<void*> allocate_counted(std::size_t bytes) noexcept;
  [[nodiscard]] bool charge(std::size_t bytes) noexcept;
  void discharge(std::size_t bytes) noexcept { used_.fetch_sub(bytes, std::memory_order_relaxed); }
  /// Returns the free blocks of the pool to the system.
  void trim() noexcept;
  [[nodiscard]] static std::size_t class_bytes(std::size_t index) noexcept;

  const std::size_t budget_;
  std::atomic<std::size_t> used_{0};
  std::array<SizeClass, kClassCount> classes_;
};

}  // namespace headrace::detail
