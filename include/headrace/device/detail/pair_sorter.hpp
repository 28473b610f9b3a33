#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/device/buffer.hpp"
#include "headrace/device/stream.hpp"

namespace headrace {

/// Keys on a device, each with a value that goes where it goes, and the memory that sorting them takes. Used by one
/// thread at a time.
class PairSorter {
 public:
  static constexpr std::size_t kPairsMax = std::size_t{1} << 31;

  /// Takes 24 bytes a pair and what the device's sort needs beside. `stream` must outlive it.
  /// Throws UsageError for more than kPairsMax pairs, DeviceError when the device lacks memory.
  PairSorter(StreamRef stream, std::size_t count);

  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  /// Where the pairs are, on the device: at another place after each sort.
  [[nodiscard]] std::uint64_t* keys() const noexcept { return keys_[present_].as<std::uint64_t>(); }
  [[nodiscard]] std::uint32_t* values() const noexcept { return values_[present_].as<std::uint32_t>(); }

  /// Sorts by the lowest `key_bits` bits, 1 to 64, the least first; pairs of equal bits keep their order. What was
  /// enqueued on the stream before is done first; a CPU device waits for it, and sorts before this returns.
  [[nodiscard]] Status sort(std::uint32_t key_bits) noexcept;

 private:
  StreamRef stream_;
  std::size_t count_;
  Buffer keys_[2];
  Buffer values_[2];
  Buffer scratch_;
  std::size_t present_ = 0;
};

}  // namespace headrace
