#pragma once

#include <cstddef>
#include <utility>

namespace headrace {

/// Guards a mapping of a file. If another process truncates the file or a disk fails, reading a lost page raises
/// SIGBUS, which ends the process. In a guarded range such a read returns zeros instead, and lost() is true from then
/// on. A reader of the range checks lost() afterwards and discards what it read.
///
/// The first guard installs a handler for SIGBUS. Faults outside of guarded ranges go to the previous handler. A
/// handler that the program installs later replaces the guard until the next range is guarded.
class GuardedRange {
 public:
  GuardedRange() noexcept = default;
  /// @param data  the first byte of a mapping of `bytes` bytes, which outlives the guard. 0 bytes need no guard.
  /// Throws SystemError if the handler cannot be installed, std::bad_alloc.
  GuardedRange(const std::byte* data, std::size_t bytes);
  GuardedRange(GuardedRange&& other) noexcept : slot_(std::exchange(other.slot_, nullptr)) {}
  GuardedRange& operator=(GuardedRange&& other) noexcept {
    std::swap(slot_, other.slot_);
    return *this;
  }
  ~GuardedRange();

  /// Whether a page was missing when a thread read it. The pages behind it read as zeros, too, even if the file has
  /// grown again.
  [[nodiscard]] bool lost() const noexcept;

 private:
  struct Slot;
  friend struct GuardedRanges;
  Slot* slot_ = nullptr;
};

}  // namespace headrace
