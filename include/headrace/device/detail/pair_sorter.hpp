#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/device/buffer.hpp"
#include "headrace/device/stream.hpp"

namespace headrace {

/// Pairs of keys and values on a device, with the memory for sorting them by key. Used by one thread at a time.
class PairSorter {
 public:
  static constexpr std::size_t kPairsMax = std::size_t{1} << 31;

  /// Takes 24 bytes per pair, plus the scratch memory of the device's sort. `stream` must outlive it. Throws UsageError
  /// for more than kPairsMax pairs, DeviceError if the device lacks memory.
  PairSorter(StreamRef stream, std::size_t count);

  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  /// Addresses of the pairs on the device. They change with each sort.
  [[nodiscard]] std::uint64_t* keys() const noexcept { return keys_[present_].as<std::uint64_t>(); }
  [[nodiscard]] std::uint32_t* values() const noexcept { return values_[present_].as<std::uint32_t>(); }

  /// Sorts by the lowest `key_bits` bits, 1 to 64, in ascending order; pairs with equal bits keep their order. Runs
  /// after the work already enqueued on the stream. A CPU device waits for that work and sorts before this returns.
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
