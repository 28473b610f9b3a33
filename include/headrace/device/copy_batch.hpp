#pragma once

// A CopyBatch gathers many small copies and submits them as few large ones, which devices copy much faster.
//
//     headrace::Stream stream(headrace::Device::parse("best"));
//     headrace::Buffer table(stream.device(), headrace::MemoryKind::pinned, 64 * 8192);
//     headrace::Buffer column(stream.device(), headrace::MemoryKind::device, 64 * 512);
//     headrace::CopyBatch batch(stream);
//     for (std::size_t row = 0; row < 64; ++row) {
//       batch.add(column.data() + row * 512, table.data() + row * 8192, 512).or_throw("copying a row");
//     }
//     batch.wait().or_throw("copying the rows");

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/detail/clock.hpp"
#include "headrace/device/buffer.hpp"
#include "headrace/device/detail/copy_route.hpp"
#include "headrace/device/stream.hpp"

namespace headrace {

namespace detail {
class LingeringCopier;
class StagedCopier;
}  // namespace detail

/// How the host writes to pinned slots that the copy engine reads afterwards.
enum class HostStores : std::uint8_t {
  cached,    ///< Through the caches, to the one that all cores share, from which the engine reads.
  streaming  ///< Past the caches: they keep other data, and a line is not read before it is written.
};

/// How copies from memory that the device cannot read directly go through pinned slots.
struct StagingOptions {
  /// Threads that fill slots, including the one that flushes; at most 256. 0: as many as the device's NUMA node has
  /// processors, at most 16. The flushing thread submits the slots to the stream and, with seven threads or more, does
  /// little else. The others start with the first batch that is large enough, and end with the CopyBatch.
  std::uint32_t threads = 0;
  /// Bytes of a slot, at least 4 KiB. There are four slots for each thread.
  std::size_t slot_bytes = 512 * kKiB;
  /// How the staging threads write to the slots.
  HostStores stores = HostStores::cached;
};

/// When and how a CopyBatch submits what it has gathered.
struct CopyBatchOptions {
  std::size_t flush_bytes = 128 * kMiB;    ///< Bytes at which it submits (a published fetch takes 128 MB).
  std::size_t flush_count = 65536;         ///< Copies at which it submits.
  Duration flush_after = Duration::max();  ///< Age of the oldest copy at which it submits; seen at add() and poll().
  std::size_t staging_bytes = 4 * kMiB;    ///< Pinned memory, in two halves, that small staged copies pass through.
  /// How the copies travel. A route other than `automatic` takes all of them; if it cannot, the flush fails with
  /// Errc::not_supported.
  CopyRoute route = CopyRoute::automatic;
  /// How pageable sources are staged.
  StagingOptions staging{};
  /// How long a kernel that has done a short batch (up to 64 parts of at most 4 KiB) of wait() stays on the device, so
  /// that the next batch needs no launch. 0: no such kernel; at most a second. Only for a stream without other work.
  /// While it stays, the kernel occupies 8 blocks of 256 threads, and calls that wait for the whole device, such as
  /// cudaFree or cudaDeviceSynchronize, wait for it.
  Duration linger{};
};

/// How long the source of a copy stays valid.
enum class CopySource : std::uint8_t {
  stable,    ///< Until the batch has been waited for.
  reusable,  ///< Only during add(), which stages it at once. A copy has at most half of staging_bytes.
  /// Until the batch has been flushed: host memory that the device cannot read directly, such as malloc's or a mapped
  /// file's. Threads stage it. The batch detects that a stable source is pageable, too, by asking the driver about
  /// each.
  pageable
};

/// What a CopyBatch has done since its construction.
struct CopyBatchStatistics {
  std::uint64_t copies = 0;        ///< Copies added.
  std::uint64_t merged = 0;        ///< Copies that continued the one before on both sides and were merged with it.
  std::uint64_t submissions = 0;   ///< Times that work was submitted to the stream.
  std::uint64_t bytes = 0;         ///< Bytes of all copies added.
  std::uint64_t lingered = 0;      ///< Submissions that went to a kernel that stays (CopyBatchOptions::linger).
  std::uint64_t staged_bytes = 0;  ///< Bytes that a flush staged: pageable sources, and the route `merged`.
};

/// Gathers many copies and submits them as few. Used by one thread at a time. The lists and the staging are recycled:
/// after the first flush of a given size nothing is allocated. Copies of one batch run in any order, so they must not
/// overlap.
///
/// Copies of memory that the device can read are submitted before the thresholds, so that the device works while the
/// rest is gathered: at 1 MiB after construction or wait(), then a quarter more each time (twice as much if copies have
/// 1 MiB or more), up to 32 MiB; or at 4096 copies that do not merge if the device is idle, and at 32768 in any case.
class CopyBatch {
 public:
  /// Throws UsageError for options out of range, DeviceError if the staging memory cannot be allocated.
  explicit CopyBatch(StreamRef stream, CopyBatchOptions options = {});
  CopyBatch(CopyBatch&&) noexcept;
  /// Waits for submitted copies; drops the others.
  ~CopyBatch();

  /// Gathers a copy of `bytes` bytes; 0 is allowed and does nothing. Flushes if a threshold is reached.
  [[nodiscard]] Status add(void* to, const void* from, std::size_t bytes,
                           CopySource source = CopySource::stable) noexcept;
  /// Records `event` on the stream right before the copies of the next submission, or at the next flush() if nothing is
  /// gathered. The event must live until then.
  void mark_next(EventRef event) noexcept { mark_ = &event.backend(); }
  /// Submits everything gathered if the oldest has waited flush_after.
  [[nodiscard]] Status poll() noexcept;
  /// Submits everything gathered. Returns once all staging is done. If a copy fails, the rest is not submitted and
  /// everything stays gathered: the caller may flush again, which may repeat copies.
  [[nodiscard]] Status flush() noexcept;
  /// Flushes, and holds back later work on `consumer` until the copies are done, without blocking the host.
  [[nodiscard]] Status barrier(StreamRef consumer) noexcept;
  /// Flushes and waits.
  [[nodiscard]] Status wait() noexcept;

  /// The counts so far. Call it from the thread that uses the batch.
  [[nodiscard]] CopyBatchStatistics statistics() const noexcept;

 private:
  struct Half {
    Event submitted;  ///< The stream is done reading this half.
    std::size_t used = 0;
  };

  /// The slow path of add(), for everything but a stable copy that fits the list.
  [[nodiscard]] Status add_any(const Copy& copy, CopySource source) noexcept;
  [[nodiscard]] Result<std::byte*> stage(const void* from, std::size_t bytes) noexcept;
  /// Resets the thresholds, so that the first submissions after a pause are early.
  void start_small() noexcept;
  /// Whether the copies should be submitted early.
  [[nodiscard]] bool is_due() noexcept;
  /// The bytes that the fast path of add() has listed and not counted yet.
  [[nodiscard]] std::size_t unsettled() const noexcept { return room_given_ - room_bytes_; }
  /// Counts the unsettled bytes.
  void settle() noexcept;
  /// Settles, and computes how much the fast path of add() may list.
  void make_room() noexcept;
  [[nodiscard]] bool empty() const noexcept { return copies_.empty() && pageable_.empty(); }
  [[nodiscard]] Status mark() noexcept;
  /// Gives everything gathered to the stream; does not record done_. Returns whether all work of the stream is done
  /// already, which is possible only with `and_wait`, when the caller waits at once.
  [[nodiscard]] Result<bool> submit(bool and_wait) noexcept;
  [[nodiscard]] Status submit_copies(CopyRoute chosen, bool and_wait) noexcept;
  [[nodiscard]] CopyRoute route() const noexcept;
  [[nodiscard]] Status submit_merged() noexcept;
  /// Returns whether the lingering kernel has copied everything gathered.
  [[nodiscard]] Result<bool> copied_by_lingering() noexcept;
  [[nodiscard]] Status wait_for_submitted() noexcept;
  /// Empties the batch.
  void clear() noexcept;

  StreamRef stream_;
  CopyBatchOptions options_;
  std::vector<Copy> copies_;
  std::vector<Copy> pageable_;       ///< Copies whose source is known to be pageable.
  std::vector<Copy> detected_;       ///< Copies of copies_ that a submission found to be pageable.
  std::size_t gathered_bytes_ = 0;   ///< Without unsettled bytes.
  std::size_t copies_bytes_ = 0;     ///< Bytes of copies_, without unsettled bytes.
  std::size_t threshold_bytes_ = 0;  ///< The flush threshold of copies_; see above.
  std::size_t threshold_count_ = 0;  ///< Entries of copies_ at which is_due() asks whether the device is idle.
  std::size_t room_given_ = 0;       ///< Bytes that make_room() allowed.
  std::size_t room_bytes_ = 0;       ///< Bytes left of room_given_.
  std::size_t room_count_ = 0;       ///< Entries of copies_ up to which the fast path of add() may fill it.
  Time oldest_{};
  Buffer staging_;
  std::vector<Half> halves_;
  std::size_t half_ = 0;
  std::unique_ptr<detail::StagedCopier> stager_;
  std::unique_ptr<detail::LingeringCopier> lingering_;  ///< Only if options_.linger is not 0.
  Event done_;
  detail::EventBackend* mark_ = nullptr;
  CopyBatchStatistics statistics_;
};

}  // namespace headrace
