#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "headrace/device/buffer.hpp"
#include "headrace/device/kernel.hpp"
#include "headrace/device/stream.hpp"
#include "measure/access_kernels.hpp"
#include "measure/access_launch.hpp"
#include "measure/oversubscription.hpp"

namespace headrace::measure {

/// A kernel's work and its launch shape.
struct AccessWork {
  AccessPattern pattern = AccessPattern::grid_stride;
  AccessOperation operation = AccessOperation::read;
  RowOrder rows = RowOrder::ordered;
  std::size_t page_bytes = kPageBytes;
  std::uint32_t threads = 256;
  bool synchronised = false;
  std::uint32_t blocks_per_multiprocessor = 0;
};

/// The seed of draws: a placement learns from other draws than those that are timed.
enum class DrawSeed : std::uint64_t { learnt = 1, timed = 2 };

/// Bytes touched in each granule of data; every access to a byte counts.
struct Touches {
  std::size_t granule_bytes = kPageBytes;
  std::vector<std::uint64_t> bytes;
};

/// Runs access kernels over data of whole pages, times them and verifies their results. Not thread-safe.
class AccessBench {
 public:
  explicit AccessBench(Device device);

  [[nodiscard]] StreamRef stream() const noexcept { return stream_; }
  [[nodiscard]] Device device() const noexcept { return stream_.device(); }

  /// Fills the data with its contents before an operation.
  void fill(std::byte* data, std::size_t page_count);
  /// Time of one run of the kernel, on the device's clock. `run` distinguishes runs.
  [[nodiscard]] Duration time(const AccessWork& work, std::byte* data, std::size_t page_count, std::uint32_t run);
  /// The sum of the words that the last time() read, if its operation is a read.
  [[nodiscard]] std::uint64_t sum() const noexcept { return sum_; }
  /// The expected sum, computed only from the indices and draws.
  [[nodiscard]] std::uint64_t expected_sum(const AccessWork& work, std::size_t page_count);
  /// Number of units without the contents that `run` of the work leaves in filled data.
  [[nodiscard]] std::uint64_t wrong_units(const AccessWork& work, std::byte* data, std::size_t page_count,
                                          std::uint32_t run);
  /// The bytes that the work touches. The device counts drawn ones.
  [[nodiscard]] Touches touches(const AccessWork& work, std::size_t page_count, std::size_t granule_bytes,
                                DrawSeed seed);
  /// Blocks of the launch for that work.
  [[nodiscard]] std::uint32_t blocks(const AccessWork& work) const;

 private:
  struct Drawn {
    std::vector<std::uint32_t> pages;  ///< Draws per granule.
    Buffer rows;                       ///< 1 for each drawn row.
  };

  template <class... Wanted, class... Given>
  void run(const TypedKernel<Wanted...>& kernel, LaunchShape shape, const Given&... arguments);
  [[nodiscard]] AccessData of(std::byte* data, std::size_t page_count) const noexcept;
  [[nodiscard]] LaunchShape shape(const Kernel& kernel, std::uint32_t threads,
                                  std::uint32_t blocks_per_multiprocessor) const;
  [[nodiscard]] LaunchShape plain_shape(const Kernel& kernel) const { return shape(kernel, 256, 0); }
  void launch_work(const AccessWork& work, const AccessData& data);
  [[nodiscard]] std::uint64_t sum_of(std::uint32_t blocks);
  [[nodiscard]] Drawn count(const AccessWork& work, std::size_t page_count, std::size_t granule_bytes, DrawSeed seed);

  Stream stream_;
  Event start_;
  Event stop_;
  Buffer sums_;
  Buffer sums_on_host_;
  std::uint32_t last_blocks_ = 0;  ///< The blocks of the last launch.
  std::uint64_t sum_ = 0;
};

}  // namespace headrace::measure
