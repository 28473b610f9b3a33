#pragma once

#include <cstddef>
#include <utility>

namespace headrace {

/// Guards a mapping of a file. When another process cuts the file short, or a disk fails, reading a page that is gone
/// raises SIGBUS, which ends the process. In a guarded range such a read gives zeros instead, and lost() says so from
/// then on: whoever reads the range asks afterwards, and discards what was read.
///
/// The first guard installs a handler for SIGBUS. Faults outside of guarded ranges go to the handler that was there
/// before. A program that installs its own handler later takes the guard's place until the next range is guarded.
class GuardedRange {
 public:
  GuardedRange() noexcept = default;
  /// @param data  the first byte of a mapping of `bytes` bytes, which outlives the guard. Of no bytes nothing is done.
  /// Throws SystemError when the handler cannot be installed, std::bad_alloc.
  GuardedRange(const std::byte* data, std::size_t bytes);
  GuardedRange(GuardedRange&& other) noexcept : slot_(std::exchange(other.slot_, nullptr)) {}
  GuardedRange& operator=(GuardedRange&& other) noexcept {
    std::swap(slot_, other.slot_);
    return *this;
  }
  ~GuardedRange();

  /// Whether a page was gone when somebody read it. Those behind it read as zeros, too, even if the file has grown
  /// again.
  [[nodiscard]] bool lost() const noexcept;

 private:
  struct Slot;
  friend struct GuardedRanges;
  Slot* slot_ = nullptr;
};

}  // namespace headrace
