#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "device/helpers.hpp"
#include "headrace/base/bytes.hpp"
#include "headrace/base/result.hpp"
#include "headrace/device/buffer.hpp"
#include "headrace/device/copy_batch.hpp"
#include "headrace/device/stream.hpp"

namespace headrace::detail {

/// Copies from memory that the host reads, through pinned slots: threads fill slots while the copy engine empties
/// others. A slot takes as many copies as fit, or a part of one that does not, and travels as one copy where its
/// targets are one stretch. Each thread has slots of its own, which it fills sooner than those of others. Only the
/// calling thread talks to the driver, whose calls cost several times as much when threads contend for it.
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
  /// The first failure ends it and is returned; copies enqueued before it run all the same.
  [[nodiscard]] Status copy(std::span<const Copy> copies, Scatter scatter) noexcept;

 private:
  /// `free` belongs to the thread that fills it, the others to the calling thread.
  enum class State : std::uint8_t { free, filled, under_way };

  struct Slot {
    /// Throws DeviceError.
    Slot(Device device, std::size_t offset_in_lane) : read(device), offset(offset_in_lane) {}

    Event read;                 ///< The stream is done with the slot.
    std::size_t offset;         ///< In the memory of its lane.
    std::size_t bytes = 0;      ///< That lie in it.
    std::vector<Copy> spread;   ///< From the slot to the targets.
    Slot* sent_next = nullptr;  ///< The one under way behind it.
    alignas(kNoSharing) std::atomic<State> state{State::free};
  };

  /// The slots of one thread, which are filled and sent in turn.
  struct Lane {
    /// One that is filled and one that travels.
    static constexpr std::size_t kSlots = 2;

    /// Throws DeviceError.
    Lane(Device device, std::size_t slot_bytes);

    Buffer pinned;
    Buffer scratch;  ///< Memory of the device of the same size; from the first use of through_device on.
    std::array<Slot, kSlots> slots;
    std::size_t fill_next = 0;
    std::size_t send_next = 0;
  };

  /// The copies that fill one slot: from byte `offset` of number `first`, so many bytes.
  struct Part {
    std::size_t first = 0;
    std::size_t offset = 0;
    std::size_t bytes = 0;
  };

  /// False when it cannot be had.
  [[nodiscard]] bool make_lane() noexcept;
  /// How many threads are worth it; makes lanes and starts threads for them.
  [[nodiscard]] std::uint32_t threads_for(std::size_t bytes) noexcept;
  /// Waits for what is under way, and frees all slots. No other thread is at work.
  void start_over() noexcept;

  /// A part of no bytes when none is left.
  [[nodiscard]] Part take(bool by_helper) noexcept;
  /// What each helper does: takes parts and fills its slots with them until none is left, or the work has failed.
  void help(Lane& lane) noexcept;
  [[nodiscard]] Status fill(Lane& lane, const Part& part) noexcept;

  /// What the calling thread does; `helpers` others fill slots.
  [[nodiscard]] Status send_all(std::uint32_t helpers) noexcept;
  /// Whether any slot was filled.
  [[nodiscard]] Result<bool> send_filled() noexcept;
  [[nodiscard]] Status send(Lane& lane, Slot& slot) noexcept;
  [[nodiscard]] Status enqueue(Lane& lane, Slot& slot) noexcept;
  [[nodiscard]] Status enqueue_through_device(Lane& lane, Slot& slot) noexcept;
  /// Whether the calling thread has a free slot, and there was a part for it.
  [[nodiscard]] Result<bool> fill_one() noexcept;
  /// Frees the slots that the device has read.
  [[nodiscard]] Status free_read() noexcept;
  [[nodiscard]] Status wait_for_oldest() noexcept;
  void free_oldest() noexcept;

  StreamRef stream_;
  StagingOptions options_;
  std::vector<std::unique_ptr<Lane>> lanes_;  ///< The caller's first.
  Slot* oldest_ = nullptr;                    ///< Of those under way.
  Slot* newest_ = nullptr;
  Helpers helpers_;

  std::span<const Copy> copies_;  ///< Of the work in hand, as is what follows.
  Scatter scatter_ = Scatter::from_slot;
  std::uint32_t threads_ = 1;
  std::size_t bytes_ = 0;
  std::size_t sent_bytes_ = 0;
  alignas(kNoSharing) std::mutex mutex_;
  Part next_;                                            ///< Under mutex_; its bytes are all that nobody has taken.
  alignas(kNoSharing) std::atomic<bool> failed_{false};  ///< Helpers are to stop.
};

}  // namespace headrace::detail
