#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "device/copies/helpers.hpp"
#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/detail/process.hpp"
#include "headrace/base/result.hpp"
#include "headrace/device/buffer.hpp"
#include "headrace/device/copy_batch.hpp"
#include "headrace/device/stream.hpp"

namespace headrace::detail {

/// Copies from host-readable memory through pinned slots: threads fill slots while the copy engine empties others. A
/// slot takes as many copies as fit, or a part of a larger copy. Slots form a ring and are filled and sent in order.
/// Consecutive full slots form a run, which travels as one copy if its targets are contiguous, because every copy costs
/// the engine as much as 150 KB. Only the calling thread calls the driver, whose calls cost several times as much under
/// contention. Used by one thread at a time.
class StagedCopier {
 public:
  /// How the contents of a slot reach targets that are not contiguous.
  enum class Scatter : std::uint8_t {
    from_slot,       ///< The stream's copy_many() reads the slot.
    through_device,  ///< The engine copies the slot to the device, and a gather kernel spreads it from there.
  };

  /// Throws UsageError for options out of range, DeviceError if slots for the caller cannot be allocated.
  StagedCopier(StreamRef stream, const StagingOptions& options);
  StagedCopier(const StagedCopier&) = delete;
  StagedCopier& operator=(const StagedCopier&) = delete;
  /// Waits until the device has read the slots. The stream itself may already be destroyed.
  ~StagedCopier();

  /// Returns once all bytes are in slots and their copies are enqueued, so that work enqueued later runs after them.
  /// Stops at the first failure and returns it; copies enqueued before it still run.
  [[nodiscard]] Status copy(std::span<const Copy> copies, Scatter scatter) noexcept;

 private:
  /// The slots of each thread.
  static constexpr std::size_t kSlots = 4;
  /// One run travels and one waits, so that the engine always has work.
  static constexpr std::size_t kRuns = 2;

  struct Slot {
    std::vector<Copy> spread;  ///< From the slot to the targets.
    std::size_t bytes = 0;     ///< Bytes in the slot.
    /// The number of slots taken so far when this one was taken for its current contents. The filling thread stores it.
    alignas(kNoSharing) std::atomic<std::uint64_t> filled{0};
  };

  struct Ring {
    Ring() = default;
    /// Throws DeviceError or std::bad_alloc.
    Ring(Device device, std::size_t slot_count, std::size_t slot_bytes);

    Buffer pinned;
    Buffer scratch;  ///< Device memory of the same size, allocated at the first use of through_device.
    std::unique_ptr<Slot[]> slots;
    std::size_t count = 0;
  };

  struct Run {
    Event read;             ///< Recorded when the stream is done with its slots.
    std::uint64_t end = 0;  ///< Slots sent so far, including this run.
  };

  /// The copies that fill one slot: `bytes` bytes from byte `offset` of copy `first` on.
  struct Part {
    std::uint64_t number = 0;  ///< The number of the slot, in the order in which they are taken.
    std::size_t first = 0;
    std::size_t offset = 0;
    std::size_t bytes = 0;
  };
  enum class Taken : std::uint8_t { part, no_slot, nothing_left };

  /// Returns how many threads are worthwhile, and makes slots and starts threads for them.
  [[nodiscard]] std::uint32_t threads_for(std::size_t bytes) noexcept;
  /// Grows the ring to the size for all threads, once the runs in flight have been read. False if the memory cannot be
  /// allocated.
  [[nodiscard]] bool grow() noexcept;
  /// Waits for the runs in flight and frees all slots. No other thread is at work.
  void start_over() noexcept;

  [[nodiscard]] Taken take(Part& part) noexcept;
  /// Work of each helper: takes parts and fills slots until no part is left or the work has failed.
  void help() noexcept;
  [[nodiscard]] Status fill(const Part& part) noexcept;

  /// Work of the calling thread while `helpers` other threads fill slots.
  [[nodiscard]] Status send_all(std::uint32_t helpers) noexcept;
  /// Returns whether there was a run worth sending.
  [[nodiscard]] Result<bool> send_run(std::uint32_t helpers) noexcept;
  [[nodiscard]] Status send(std::size_t slots) noexcept;
  [[nodiscard]] Status enqueue(std::size_t first, std::size_t slots) noexcept;
  [[nodiscard]] Status enqueue_through_device(std::size_t first, std::size_t slots) noexcept;
  /// Returns whether there was a free slot and a part for it.
  [[nodiscard]] Result<bool> fill_one() noexcept;
  /// Frees the slots that the device has read.
  [[nodiscard]] Status free_read() noexcept;
  [[nodiscard]] Status wait_for_oldest() noexcept;
  void free_oldest() noexcept;

  StreamRef stream_;
  StagingOptions options_;
  Ring ring_;
  std::array<Run, kRuns> runs_;
  std::uint64_t sent_runs_ = 0;
  std::uint64_t read_runs_ = 0;
  std::uint64_t sent_ = 0;    ///< Slots.
  std::vector<Copy> spread_;  ///< The copies of the run being sent.
  const Birth birth_;
  ProcessOwned<Helpers> helpers_ = make_process_owned<Helpers>();

  std::span<const Copy> copies_;  ///< The copies of the current call, like the following members.
  Scatter scatter_ = Scatter::from_slot;
  std::size_t bytes_ = 0;
  std::size_t sent_bytes_ = 0;
  alignas(kNoSharing) std::mutex mutex_;
  Part next_;                                                ///< Under mutex_; its bytes are all bytes not taken yet.
  std::atomic<std::uint64_t> taken_{0};                      ///< Slots; stored under mutex_.
  alignas(kNoSharing) std::atomic<std::uint64_t> freed_{0};  ///< Slots; stored by the calling thread.
  alignas(kNoSharing) std::atomic<bool> stop_{false};  ///< Helpers are to stop: all is sent, or the work has failed.
};

}  // namespace headrace::detail
