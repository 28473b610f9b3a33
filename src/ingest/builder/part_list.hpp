#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "headrace/base/result.hpp"
#include "headrace/device/buffer.hpp"
#include "headrace/device/kernel.hpp"
#include "headrace/device/stream.hpp"
#include "headrace/ingest/detail/conversion.hpp"
#include "headrace/ingest/detail/copy_way.hpp"
#include "ingest/builder/even_run.hpp"
#include "ingest/builder/kernels.hpp"
#include "ingest/builder/say_done.hpp"
#include "ingest/line.hpp"

namespace headrace::ingest {

/// Whether the device has this way at all.
[[nodiscard]] bool has_copy_way(Device device, CopyWay way) noexcept;

/// The entries of a list as CUDA reads them.
struct ListedEntries {
  void** to;
  const void** from;
  std::uint32_t* bytes;

  ListedEntries(std::byte* memory, std::size_t capacity) noexcept
      : to(reinterpret_cast<void**>(memory)),
        from(reinterpret_cast<const void**>(memory + capacity * sizeof(void*))),
        bytes(reinterpret_cast<std::uint32_t*>(memory + 2 * capacity * sizeof(void*))) {}
};

/// Copies gathered by the host and made by the device in one of the ways. Payloads that are alike are kept as runs
/// where the way allows, which need no list. Recycled: nothing is allocated after its construction. The caller sees to
/// it that a list is not cleared while the device reads it.
class PartList {
 public:
  /// @param conversion  other than none: made while copying, by a kernel of its own, whatever the way.
  /// Throws UsageError where the device has no such way, DeviceError where there is no room.
  PartList(Device device, CopyWay way, std::uint32_t capacity, Conversion conversion = Conversion::none);

  /// The longest part that it takes.
  [[nodiscard]] std::uint32_t part_bytes() const noexcept { return part_bytes_; }
  /// Parts, also those of runs. What was added counts once the list is uploaded.
  [[nodiscard]] std::uint32_t count() const noexcept;
  [[nodiscard]] std::uint64_t bytes() const noexcept;  ///< Likewise.
  /// For parts. A run that is still short may yet have to be listed.
  [[nodiscard]] std::uint32_t room() const noexcept { return capacity_ - count_ - reserved_; }
  /// Parts that a payload may become.
  [[nodiscard]] std::uint32_t parts_max(std::uint32_t payload_bytes) const noexcept {
    return payload_bytes / (part_bytes_ - kLineBytes) + 2;
  }
  /// Payloads, which are not empty, and of each of which room() holds parts_max().
  void add(const EvenRun& payloads) noexcept;
  /// There is room(), and the part is not empty and not too long.
  void push(const Part& part) noexcept {
    if (reader_ == Reader::cuda) {
      const ListedEntries list(host_.data(), capacity_);
      list.to[count_] = part.to();
      list.from[count_] = part.from();
      list.bytes[count_] = part.bytes();
    } else {
      host_.as<Part>()[count_] = part;
    }
    ++count_;
    listed_bytes_ += part.bytes();
  }
  void clear() noexcept;

  /// Brings the list to where the device reads it.
  [[nodiscard]] Status upload(StreamRef stream) noexcept;
  /// Enqueues the copies of an uploaded list; may be called again and again. How many blocks of the last kernel will
  /// say `done`; 0: nothing will, since the way is not a kernel of Headrace's, or one of too many blocks.
  [[nodiscard]] Result<std::uint32_t> copy(StreamRef stream, const DoneArgument& done = {}) const noexcept;

 private:
  /// What reads the list, and in which form.
  enum class Reader : std::uint8_t {
    kernel,  ///< Parts.
    cuda,    ///< Addresses, and lengths behind them; see detail::ListedCopies.
    host     ///< Parts, never uploaded.
  };
  [[nodiscard]] static Reader reader_of(CopyWay way) noexcept;
  /// No payload goes on with the last run.
  void close_run() noexcept;
  void list(const EvenRun& run) noexcept;
  [[nodiscard]] std::uint32_t parts_listed(const EvenRun& run) const noexcept {
    return run.count < kRunMin ? run.count * parts_max(run.bytes) : 0;
  }
  /// The longest part of a run.
  [[nodiscard]] std::uint32_t run_part_bytes() const noexcept;
  [[nodiscard]] std::uint64_t run_bytes() const noexcept;
  [[nodiscard]] Result<std::uint32_t> launch_runs(StreamRef stream, const DoneArgument& done) const noexcept;
  [[nodiscard]] Result<std::uint32_t> launch_kernel(StreamRef stream, const DoneArgument& done) const noexcept;
  [[nodiscard]] Status copy_listed(StreamRef stream) const noexcept;
  [[nodiscard]] Status copy_one_by_one(StreamRef stream) const noexcept;

  static constexpr std::size_t kRunsMax = EvenRuns::kMax;
  /// A run that is shorter goes into the list where there is one.
  static constexpr std::uint32_t kRunMin = 128;

  CopyWay way_;
  Reader reader_;
  bool runs_allowed_;
  PartsKernel kernel_{};
  std::uint32_t capacity_;
  std::uint32_t part_bytes_;
  std::uint32_t count_ = 0;  ///< Listed.
  std::uint64_t listed_bytes_ = 0;
  EvenRun last_{};                     ///< The run that the next payload may go on with.
  std::uint32_t reserved_ = 0;         ///< For last_ and
  std::uint32_t reserved_before_ = 0;  ///< the runs before it, of which room() counts what may be listed.
  std::array<EvenRun, kRunsMax> runs_{};
  std::size_t run_count_ = 0;
  Buffer host_;
  Buffer device_;
  Buffer scratch_;
};

}  // namespace headrace::ingest
