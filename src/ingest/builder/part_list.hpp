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

/// True if the device supports this way.
[[nodiscard]] bool has_copy_way(Device device, CopyWay way) noexcept;

/// The entries of a list in the form that CUDA reads.
struct ListedEntries {
  void** to;
  const void** from;
  std::uint32_t* bytes;

  ListedEntries(std::byte* memory, std::size_t capacity) noexcept
      : to(reinterpret_cast<void**>(memory)),
        from(reinterpret_cast<const void**>(memory + capacity * sizeof(void*))),
        bytes(reinterpret_cast<std::uint32_t*>(memory + 2 * capacity * sizeof(void*))) {}
};

/// Copies that the host gathers and the device makes in one of the ways. If the way allows it, even payloads are kept
/// as runs, which need no list entries. A list is reused and allocates nothing after its construction. The caller must
/// not clear it while the device reads it.
class PartList {
 public:
  /// @param conversion  other than none: a kernel converts while it copies, whatever the way.
  /// Throws UsageError if the device does not support the way, DeviceError if there is no room.
  PartList(Device device, CopyWay way, std::uint32_t capacity, Conversion conversion = Conversion::none);

  /// The longest part that it takes.
  [[nodiscard]] std::uint32_t part_bytes() const noexcept { return part_bytes_; }
  /// Number of parts, those of runs included. Valid once the list is uploaded.
  [[nodiscard]] std::uint32_t count() const noexcept;
  [[nodiscard]] std::uint64_t bytes() const noexcept;  ///< Likewise.
  /// How many parts fit. Counts a run that is still short as parts, because it may yet have to be listed.
  [[nodiscard]] std::uint32_t room() const noexcept { return capacity_ - count_ - reserved_; }
  /// Most parts of one payload.
  [[nodiscard]] std::uint32_t parts_max(std::uint32_t payload_bytes) const noexcept {
    return payload_bytes / (part_bytes_ - kLineBytes) + 2;
  }
  /// Adds payloads, which are not empty. Requires: room() for parts_max() of each.
  void add(const EvenRun& payloads) noexcept;
  /// Adds a part. Requires: room(), and a part that is neither empty nor too long.
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

  /// Copies the list to where the device reads it.
  [[nodiscard]] Status upload(StreamRef stream) noexcept;
  /// Enqueues the copies of an uploaded list; may be called repeatedly. Returns how many blocks of the last kernel will
  /// report `done`; 0: none, because the way is not a kernel of Headrace's, or its kernel has too many blocks.
  [[nodiscard]] Result<std::uint32_t> copy(StreamRef stream, const DoneArgument& done = {}) const noexcept;

 private:
  /// Consumer of the list, and the form that it reads.
  enum class Reader : std::uint8_t {
    kernel,  ///< Parts.
    cuda,    ///< Arrays of addresses and of lengths; see detail::ListedCopies.
    host     ///< Parts, never uploaded.
  };
  [[nodiscard]] static Reader reader_of(CopyWay way) noexcept;
  /// Closes the last run: no later payload continues it.
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
  /// A shorter run is listed if the list has other parts.
  static constexpr std::uint32_t kRunMin = 128;

  CopyWay way_;
  Reader reader_;
  bool runs_allowed_;
  PartsKernel kernel_{};
  std::uint32_t capacity_;
  std::uint32_t part_bytes_;
  std::uint32_t count_ = 0;  ///< Listed parts.
  std::uint64_t listed_bytes_ = 0;
  EvenRun last_{};                     ///< The run that the next payload may continue.
  std::uint32_t reserved_ = 0;         ///< Parts that last_ and the runs before it may yet add to the list.
  std::uint32_t reserved_before_ = 0;  ///< Parts that the runs before last_ may yet add.
  std::array<EvenRun, kRunsMax> runs_{};
  std::size_t run_count_ = 0;
  Buffer host_;
  Buffer device_;
  Buffer scratch_;
};

}  // namespace headrace::ingest
