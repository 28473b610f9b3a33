#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "device/helpers.hpp"
#include "headrace/base/result.hpp"
#include "headrace/device/buffer.hpp"
#include "headrace/device/copy_batch.hpp"
#include "headrace/device/stream.hpp"

namespace headrace::detail {

/// Copies from memory that the host reads, through pinned slots: threads fill slots while the copy engine empties
/// others. A slot takes as many copies as fit, or a part of one that does not, and travels as one copy where its
/// targets are one stretch. Each thread has slots of its own, so that nothing is handed from thread to thread.
/// Used by one thread at a time.
class StagedCopier {
 public:
  /// How what lies in a slot gets to targets that are not one stretch.
  enum class Scatter : std::uint8_t {
    from_slot,       ///< The stream's copy_many() reads the slot.
    through_device,  ///< The engine copies the slot to the device, from where a gather kernel spreads it.
  };

  /// Throws UsageError for options out of range, DeviceError when the caller's own slots cannot be had.
  StagedCopier(StreamRef stream, const StagingOptions& options);
  StagedCopier(const StagedCopier&) = delete;
  StagedCopier& operator=(const StagedCopier&) = delete;
  /// Waits until the device has read the slots. The stream itself may be gone.
  ~StagedCopier();

  /// Returns once everything is in slots and their copies are enqueued, so that work enqueued later comes after them.
  /// The first failure of any thread ends it and is returned; copies enqueued before it run all the same.
  [[nodiscard]] Status copy(std::span<const Copy> copies, Scatter scatter) noexcept;

 private:
  struct Slot {
    Buffer pinned;
    Event read;      ///< The stream is done with the slot.
    Buffer scratch;  ///< Memory of the device of the same size; from the first use of through_device on.
  };
  /// What one thread works with.
  struct Lane {
    static constexpr std::size_t kSlots = 2;
    std::vector<Slot> slots;
    std::size_t next = 0;
    std::vector<Copy> spread;  ///< From the slot to the targets.
  };
  /// The copies that fill one slot: from byte `offset` of number `first`, so many bytes.
  struct Part {
    std::size_t first = 0;
    std::size_t offset = 0;
    std::size_t bytes = 0;
  };

  [[nodiscard]] Status make_lane() noexcept;
  /// How many threads are worth it; makes lanes and starts threads for them.
  [[nodiscard]] std::uint32_t threads_for(std::size_t bytes) noexcept;
  /// Takes parts and sends them until there are none.
  void work(Lane& lane) noexcept;
  /// False when none is left, or the work has failed.
  [[nodiscard]] bool take(Part& part) noexcept;
  void fail(Error error) noexcept;
  [[nodiscard]] Status fill(Lane& lane, const Slot& slot, const Part& part) const noexcept;
  [[nodiscard]] Status send(Lane& lane, Slot& slot, std::size_t bytes) noexcept;
  [[nodiscard]] Status send_through_device(Lane& lane, Slot& slot, std::size_t bytes) noexcept;

  StreamRef stream_;
  StagingOptions options_;
  std::vector<Lane> lanes_;  ///< The caller's first.
  Helpers helpers_;

  std::span<const Copy> copies_;  ///< Of the work in hand, as is what follows.
  Scatter scatter_ = Scatter::from_slot;
  std::uint32_t threads_ = 1;
  std::mutex mutex_;
  Part next_;              ///< Under mutex_, as is what follows; its bytes mean nothing.
  std::size_t taken_ = 0;  ///< Parts.
  bool failed_ = false;
  Error error_;
};

}  // namespace headrace::detail
