#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "headrace/base/detail/bytes.hpp"
#include "headrace/serve/engine.hpp"

namespace headrace::serve::detail {

/// The last sampled queries of one writer, which any thread may read while it writes.
///
/// Each entry has a sequence number, which is odd while the entry is written. The fields are stored with release after
/// the odd number, and loaded with acquire before the number is loaded again. A reader that sees a field of a later
/// round therefore also sees that round's odd number, and drops the entry.
class SampleRing {
 public:
  static constexpr std::size_t kEntries = 32;

  /// Only the one writer may call it.
  void push(const StageSample& sample) noexcept;
  /// Appends the samples to `samples`, in no particular order, except one that is being overwritten.
  void read(std::vector<StageSample>& samples) const;

 private:
  static constexpr std::size_t kFields = 7;
  struct Entry {
    std::atomic<std::uint64_t> sequence{0};
    std::array<std::atomic<std::int64_t>, kFields> fields{};
  };

  std::array<Entry, kEntries> entries_;
  std::uint64_t next_ = 0;  ///< Only the writer uses it.
};

/// Counters of one worker, which only that worker writes.
struct alignas(kNoSharing) WorkerCounters {
  std::atomic<std::uint64_t> answered{0};
  std::atomic<std::uint64_t> failed{0};
  std::atomic<std::uint64_t> cancelled{0};
  std::atomic<std::uint64_t> expired{0};
  std::atomic<std::uint64_t> samples{0};
  std::atomic<std::int64_t> queue_ns{0};
  std::atomic<std::int64_t> copy_in_ns{0};
  std::atomic<std::int64_t> kernel_ns{0};
  std::atomic<std::int64_t> copy_out_ns{0};
  std::atomic<std::int64_t> host_ns{0};
  SampleRing recent;
};

/// Adds a sampled query to the sums and to the last samples. Only the worker that owns the counters may call it.
void record_sample(WorkerCounters& counters, const StageSample& sample) noexcept;

}  // namespace headrace::serve::detail
