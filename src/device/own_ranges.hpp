#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <shared_mutex>

#include "device/known_range.hpp"

namespace headrace::detail {

/// What a device knows of the memory that it has allocated itself and not freed yet, so that its driver, of which a
/// question takes over a microsecond, is asked about that of others only. Used by any thread.
class OwnRanges {
 public:
  /// Right after it was allocated. What cannot be kept is not found.
  void add(const KnownRange& range) noexcept {
    try {
      const std::unique_lock lock(mutex_);
      ranges_.insert_or_assign(range.begin, range);
    } catch (const std::bad_alloc&) {  // then the driver is asked, as for memory of others
    }
  }
  /// Before it is freed: then its addresses may be somebody else's.
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
  std::map<std::uintptr_t, KnownRange> ranges_;  ///< By their first address.
};

}  // namespace headrace::detail
