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

/// Copies from memory that the host reads, through pinned slots: threads fill slots while the copy engine empties
/// others. A slot takes as many copies as fit, or a part of one that does not. Slots lie in a ring, and are filled and
/// sent in order: those that are full and follow each other are a run, which travels as one copy where its targets are
/// one stretch, because every copy costs the engine as much as 150 KB. Only the calling thread talks to the driver,
/// whose calls cost several times as much when threads contend for it. Used by one thread at a time.
class StagedCopier {
 public:
  /// How what lies in a slot gets to targets that are not one stretch.
  enum class Scatter : std::uint8_t {
    from_slot,       ///< The stream's copy_many() reads the slot.
    through_device,  ///< The engine copies the slot to the device, from where a gather kernel spreads it.
  };

  /// Throws UsageError for options out of range, DeviceError when slots for the caller cannot be had.
  StagedCopier(StreamRef stream, const StagingOptions& options);
  StagedCopier(const StagedCopier&) = delete;
  StagedCopier& operator=(const StagedCopier&) = delete;
  /// Waits until the device has read the slots. The stream itself may be gone.
  ~StagedCopier();

  /// Returns once everything is in slots and their copies are enqueued, so that work enqueued later comes after them.
  /// The first failure ends it and is returned; copies enqueued before it run all the same.
  [[nodiscard]] Status copy(std::span<const Copy> copies, Scatter scatter) noexcept;

 private:
  /// The slots of each thread.
  static constexpr std::size_t kSlots = 4;
  /// One that travels and one that waits for it: the engine is never without.
  static constexpr std::size_t kRuns = 2;

  struct Slot {
    std::vector<Copy> spread;  ///< From the slot to the targets.
    std::size_t bytes = 0;     ///< Bytes that lie in it.
    /// How many slots had been taken when this one was, for what lies in it now. Stored by who fills it.
    alignas(kNoSharing) std::atomic<std::uint64_t> filled{0};
  };

  struct Ring {
    Ring() = default;
    /// Throws DeviceError or std::bad_alloc.
    Ring(Device device, std::size_t slot_count, std::size_t slot_bytes);

    Buffer pinned;
    Buffer scratch;  ///< Memory of the device of the same size; from the first use of through_device on.
    std::unique_ptr<Slot[]> slots;
    std::size_t count = 0;
  };

  struct Run {
    Event read;             ///< The stream is done with its slots.
    std::uint64_t end = 0;  ///< How many slots had been sent with it.
  };

  /// The copies that fill one slot: from byte `offset` of number `first`, so many bytes.
  struct Part {
    std::uint64_t number = 0;  ///< The number of the slot, in the order in which they are taken.
    std::size_t first = 0;
    std::size_t offset = 0;
    std::size_t bytes = 0;
  };
  enum class Taken : std::uint8_t { part, no_slot, nothing_left };

  /// How many threads are worth it; makes slots and starts threads for them.
  [[nodiscard]] std::uint32_t threads_for(std::size_t bytes) noexcept;
  /// Makes the ring as large as all threads want it, once what travels has been read. False when it cannot be had.
  [[nodiscard]] bool grow() noexcept;
  /// Waits for what is under way, and frees all slots. No other thread is at work.
  void start_over() noexcept;

  [[nodiscard]] Taken take(Part& part) noexcept;
  /// What each helper does: takes parts and fills slots with them until none is left, or the work has failed.
  void help() noexcept;
  [[nodiscard]] Status fill(const Part& part) noexcept;

  /// What the calling thread does; `helpers` others fill slots.
  [[nodiscard]] Status send_all(std::uint32_t helpers) noexcept;
  /// Whether there was a run that is worth it.
  [[nodiscard]] Result<bool> send_run(std::uint32_t helpers) noexcept;
  [[nodiscard]] Status send(std::size_t slots) noexcept;
  [[nodiscard]] Status enqueue(std::size_t first, std::size_t slots) noexcept;
  [[nodiscard]] Status enqueue_through_device(std::size_t first, std::size_t slots) noexcept;
  /// Whether there was a free slot, and a part for it.
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
  std::vector<Copy> spread_;  ///< The copies of the run that is sent.
  const Birth birth_;
  ProcessOwned<Helpers> helpers_ = make_process_owned<Helpers>();

  std::span<const Copy> copies_;  ///< The copies of the work in hand, as is what follows.
  Scatter scatter_ = Scatter::from_slot;
  std::size_t bytes_ = 0;
  std::size_t sent_bytes_ = 0;
  alignas(kNoSharing) std::mutex mutex_;
  Part next_;                                                ///< Under mutex_; its bytes are all that nobody has taken.
  std::atomic<std::uint64_t> taken_{0};                      ///< Slots; stored under mutex_.
  alignas(kNoSharing) std::atomic<std::uint64_t> freed_{0};  ///< Slots; stored by the calling thread.
  alignas(kNoSharing) std::atomic<bool> stop_{false};  ///< Helpers are to stop: all is sent, or the work has failed.
};

}  // namespace headrace::detail
