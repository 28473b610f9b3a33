#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "headrace/base/clock.hpp"
#include "headrace/device/buffer.hpp"
#include "headrace/device/stream.hpp"

namespace headrace {

struct CopyBatchOptions {
  std::size_t flush_bytes =
      128 * std::size_t{1024} * 1024;      ///< Submit once this much is gathered (seed document 003: 128 MB).
  std::size_t flush_count = 65536;         ///< Or this many copies.
  Duration flush_after = Duration::max();  ///< Or when the oldest copy has waited this long; seen at add() and poll().
  std::size_t staging_bytes =
      4 * std::size_t{1024} * 1024;  ///< Pinned memory, in two halves, that small staged copies pass through.
};

/// How long the source of a copy stays valid.
enum class CopySource : std::uint8_t {
  stable,   ///< Until the batch has been waited for.
  reusable  ///< Only during add(): it is staged now. At most half of staging_bytes a copy.
};

struct CopyBatchStatistics {
  std::uint64_t copies = 0;       ///< add() calls.
  std::uint64_t merged = 0;       ///< Copies that continued the one before on both sides and went with it.
  std::uint64_t submissions = 0;  ///< Times that work was given to the stream.
  std::uint64_t bytes = 0;
};

/// Many copies gathered and submitted as few. Used by one thread at a time. The lists and the staging are recycled:
/// after the first flush of a given size nothing is allocated. Copies of one batch must not overlap: they run in any
/// order.
class CopyBatch {
 public:
  /// Throws DeviceError when the staging cannot be had.
  explicit CopyBatch(StreamRef stream, CopyBatchOptions options = {});
  CopyBatch(CopyBatch&&) noexcept = default;
  /// Waits for what has been submitted; what has not been is dropped.
  ~CopyBatch();

  /// Gathers a copy of `bytes` bytes; 0 is allowed and nothing. Flushes when a threshold is reached.
  [[nodiscard]] Status add(void* to, const void* from, std::size_t bytes,
                           CopySource source = CopySource::stable) noexcept;
  /// Submits everything gathered if the oldest has waited flush_after.
  [[nodiscard]] Status poll() noexcept;
  /// Submits everything gathered.
  [[nodiscard]] Status flush() noexcept;
  /// Flushes, and holds back later work on `consumer` until the copies are done. No host thread waits.
  [[nodiscard]] Status barrier(StreamRef consumer) noexcept;
  /// Flushes and waits.
  [[nodiscard]] Status wait() noexcept;

  [[nodiscard]] const CopyBatchStatistics& statistics() const noexcept { return statistics_; }

 private:
  struct Half {
    Event submitted;  ///< The stream is done reading this half.
    std::size_t used = 0;
  };

  [[nodiscard]] Result<std::byte*> stage(const void* from, std::size_t bytes) noexcept;

  StreamRef stream_;
  CopyBatchOptions options_;
  std::vector<Copy> copies_;
  std::size_t gathered_bytes_ = 0;
  Time oldest_{};
  Buffer staging_;
  std::vector<Half> halves_;
  std::size_t half_ = 0;
  Event done_;
  CopyBatchStatistics statistics_;
};

}  // namespace headrace
