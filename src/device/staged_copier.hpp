#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "device/helpers.hpp"
#include "device/staging_ring.hpp"
#include "headrace/base/result.hpp"
#include "headrace/device/buffer.hpp"
#include "headrace/device/copy_batch.hpp"
#include "headrace/device/stream.hpp"

namespace headrace::detail {

/// Copies from memory that the host reads, through a ring of pinned slots: threads fill slots while the copy engine
/// empties others. A slot takes as many copies as fit, or a part of one that does not; full slots beside each other
/// travel together, as one copy where their targets are one stretch. Only the calling thread talks to the driver, whose
/// calls cost several times as much when threads contend for it; in between it fills slots as the others do.
/// Used by one thread at a time.
class StagedCopier {
 public:
  /// How what lies in slots gets to targets that are not one stretch.
  enum class Scatter : std::uint8_t {
    from_slot,       ///< The stream's copy_many() reads the slots.
    through_device,  ///< The engine copies the slots to the device, from where a gather kernel spreads them.
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
  /// The copies that fill one slot: from byte `offset` of number `first`, so many bytes.
  struct Part {
    std::size_t first = 0;
    std::size_t offset = 0;
    std::size_t bytes = 0;
  };
  /// Parts beside each other in the ring that travel together; `first` as the ring numbers them.
  struct Run {
    std::uint64_t first = 0;
    std::size_t count = 0;
  };
  struct UnderWay {
    Run run;
    Event read;  ///< The stream is done with its slots.
  };
  /// One travels and one waits behind it, so that the link never does. What is filled meanwhile makes the next.
  static constexpr std::size_t kRunsMax = 2;

  [[nodiscard]] Status cut_into_parts(std::span<const Copy> copies) noexcept;
  /// How many threads are worth it; makes slots and starts threads for them.
  [[nodiscard]] std::uint32_t threads_for(std::size_t bytes) noexcept;
  [[nodiscard]] bool make_room_for_threads() noexcept;
  void start_over() noexcept;

  /// What each helper does: takes parts and fills slots with them until none is left, or the work has failed.
  void help() noexcept;
  [[nodiscard]] Status fill(std::uint64_t number) noexcept;

  /// What the calling thread does; `helpers` others fill slots.
  [[nodiscard]] Status send_all(std::uint32_t helpers) noexcept;
  /// Frees the slots of runs that have arrived.
  [[nodiscard]] Status reap() noexcept;
  [[nodiscard]] Status wait_for_oldest() noexcept;
  void release_oldest() noexcept;
  /// Of no parts where none is filled, or kRunsMax are under way.
  [[nodiscard]] Run next_run() const noexcept;
  [[nodiscard]] Status send(const Run& run) noexcept;
  [[nodiscard]] Status enqueue(const Run& run) noexcept;
  [[nodiscard]] Status enqueue_through_device(const Run& run) noexcept;
  /// Whether there was a part for the calling thread and a free slot for it; `left` parts are left to the helpers.
  [[nodiscard]] Result<bool> fill_one(std::uint32_t left) noexcept;

  StreamRef stream_;
  StagingOptions options_;
  StagingRing ring_;
  Buffer scratch_;              ///< Memory of the device as large as the ring; from the first use of through_device on.
  std::vector<UnderWay> runs_;  ///< kRunsMax; those under way are `under_way_` from `oldest_` on.
  std::size_t oldest_ = 0;
  std::size_t under_way_ = 0;
  std::vector<Copy> spread_;  ///< From the slots of a run to the targets.
  Helpers helpers_;

  std::span<const Copy> copies_;  ///< Of the work in hand, as is what follows.
  std::vector<Part> parts_;
  Scatter scatter_ = Scatter::from_slot;
  std::uint64_t begin_ = 0;  ///< Number of the first part.
  std::uint64_t end_ = 0;
  std::uint64_t unsent_ = 0;                                   ///< The lowest that is not sent.
  alignas(kNoSharing) std::atomic<std::uint64_t> claimed_{0};  ///< Those below have a thread that fills them.
  alignas(kNoSharing) std::atomic<bool> failed_{false};        ///< Helpers are to stop.
};

}  // namespace headrace::detail
