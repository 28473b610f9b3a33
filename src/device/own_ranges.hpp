#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <shared_mutex>

#include "device/known_range.hpp"

namespace headrace::detail {

/// What a device knows about memory that it has allocated and not freed yet. A query to the driver takes over a
/// microsecond, so the driver is asked only about other memory. Any thread may use it.
class OwnRanges {
 public:
  /// Call it right after the allocation. A range that cannot be stored will not be found.
  void add(const KnownRange& range) noexcept {
    try {
      const std::unique_lock lock(mutex_);
      ranges_.insert_or_assign(range.begin, range);
    } catch (const std::bad_alloc&) {  // then the driver is asked, as for other memory
    }
  }
  /// Call it before the memory is freed, because then its addresses may be reused.
  void remove(const void* data) noexcept {
    const std::unique_lock lock(mutex_);
    ranges_.erase(reinterpret_cast<std::uintptr_t>(data));
  }
  [[nodiscard]] std::optional<KnownRange> find(const void* data) const noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(data);
    const std::shared_lock lock(mutex_);
    auto behind = ranges_.upper_bound(address);
    if (behind == ranges_.begin()) return std::nullopt;
    const KnownRange& range = (--behind)->second;
    return address < range.end ? std::optional(range) : std::nullopt;
  }

 private:
  mutable std::shared_mutex mutex_;
  std::map<std::uintptr_t, KnownRange> ranges_;  ///< Ranges by first address.
};

}  // namespace headrace::detail
