#include "device/cpu/memory.hpp"

#include <sys/mman.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>

#include "device/cpu/properties.hpp"
#include "device/cpu/testing.hpp"
#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/detail/process.hpp"

namespace headrace::detail {

namespace {

constexpr std::size_t kAlignment = 256;

/// From this size on, memory is taken in huge pages if the system allows it: one page fault instead of 512.
constexpr std::size_t kHugeFrom = 8 * kMiB;
constexpr std::size_t kHugePage = 2 * kMiB;

/// Null if there is no memory. Never asks for more than the machine has, because the system may overcommit.
void* take_from_system(std::size_t bytes) noexcept {
  if (allocation_must_fail() || bytes > machine_memory_bytes()) return nullptr;
  void* const data = ::operator new(bytes, std::align_val_t{kAlignment}, std::nothrow);
  if (data != nullptr && bytes >= kHugeFrom) {
    const auto address = reinterpret_cast<std::uintptr_t>(data);
    const std::uintptr_t before = align_up(address, kHugePage) - address;
    const std::size_t whole = (bytes - before) / kHugePage * kHugePage;
    ::madvise(static_cast<std::byte*>(data) + before, whole, MADV_HUGEPAGE);  // only a hint
  }
  return data;
}

void give_to_system(void* data) noexcept { ::operator delete(data, std::align_val_t{kAlignment}); }

constexpr bool counted(MemoryKind kind) noexcept {
  return kind == MemoryKind::device || kind == MemoryKind::stream_ordered || kind == MemoryKind::managed;
}

}  // namespace

std::size_t CpuMemory::class_bytes(std::size_t index) noexcept {
  const std::size_t base = std::size_t{1} << (kSmallestShift + index / kClassesPerDouble);
  return base + base / kClassesPerDouble * (index % kClassesPerDouble);
}

CpuMemory::Class CpuMemory::class_of(std::size_t bytes) noexcept {
  std::size_t index = 0;
  if (bytes > (std::size_t{1} << kSmallestShift)) {
    const std::size_t shift = static_cast<std::size_t>(std::bit_width(bytes)) - 1;
    index = (shift - kSmallestShift) * kClassesPerDouble;
    while (index < kClassCount && class_bytes(index) < bytes) ++index;
  }
  return {index, class_bytes(index)};
}

bool CpuMemory::charge(std::size_t bytes) noexcept {
  std::size_t used = used_.load(std::memory_order_relaxed);
  do {
    if (bytes > budget_ || used > budget_ - bytes) return false;
  } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
  return true;
}

void CpuMemory::trim() noexcept {
  for (std::size_t i = 0; i < kClassCount; ++i) {
    FreeBlock* block = nullptr;
    {
      const std::lock_guard lock(classes_[i].mutex);
      block = std::exchange(classes_[i].free, nullptr);
    }
    while (block != nullptr) {
      FreeBlock* next = block->next;
      give_to_system(block);
      discharge(class_bytes(i));
      block = next;
    }
  }
}

// The lists are consistent whichever thread held a lock, because one store changes a list.
void CpuMemory::renew_locks() noexcept {
  for (SizeClass& one : classes_) renew(one.mutex);
}

bool CpuMemory::take_budget(std::size_t bytes) noexcept {
  if (charge(bytes)) return true;
  trim();
  return charge(bytes);
}

Result<void*> CpuMemory::allocate_counted(std::size_t bytes) noexcept {
  if (!take_budget(bytes)) return Errc::out_of_memory;
  void* data = take_from_system(bytes);
  if (data == nullptr) {
    discharge(bytes);
    return Errc::out_of_memory;
  }
  return data;
}

Result<void*> CpuMemory::allocate_pooled(std::size_t bytes) noexcept {
  const Class size_class = class_of(bytes);
  if (size_class.index >= kClassCount) return Errc::out_of_memory;
  SizeClass& list = classes_[size_class.index];
  {
    const std::lock_guard lock(list.mutex);
    if (FreeBlock* block = list.free; block != nullptr) {
      list.free = block->next;
      return static_cast<void*>(block);
    }
  }
  return allocate_counted(size_class.bytes);
}

Result<void*> CpuMemory::allocate(MemoryKind kind, std::size_t bytes) noexcept {
  if (kind == MemoryKind::pool) return allocate_pooled(bytes);
  if (counted(kind)) return allocate_counted(bytes);
  void* data = take_from_system(bytes);
  if (data == nullptr) return Errc::out_of_memory;
  return data;
}

void CpuMemory::deallocate(MemoryKind kind, void* data, std::size_t bytes) noexcept {
  if (kind == MemoryKind::pool) {
    SizeClass& list = classes_[class_of(bytes).index];
    const std::lock_guard lock(list.mutex);
    list.free = new (data) FreeBlock{list.free};
    return;
  }
  give_to_system(data);
  if (counted(kind)) discharge(bytes);
}

MemoryInfo CpuMemory::info() const noexcept {
  return {.free_bytes = budget_ - used_.load(std::memory_order_relaxed), .total_bytes = budget_};
}

}  // namespace headrace::detail
