#include <cstdint>
#include <cub/device/device_radix_sort.cuh>

#include "device/cuda/error.hpp"
#include "device/cuda/pair_sort.hpp"

namespace headrace::detail::cuda {

namespace {

constexpr int kKeyBits = 64;

using Keys = cub::DoubleBuffer<std::uint64_t>;
using Values = cub::DoubleBuffer<std::uint32_t>;

}  // namespace

Result<std::size_t> pair_scratch_bytes(std::size_t count) noexcept {
  Keys keys(nullptr, nullptr);
  Values values(nullptr, nullptr);
  std::size_t bytes = 0;
  const cudaError_t code = cub::DeviceRadixSort::SortPairs(nullptr, bytes, keys, values,
                                                           static_cast<std::int64_t>(count), 0, kKeyBits, nullptr);
  if (code != cudaSuccess) return to_error(code);
  return bytes;
}

Result<bool> sort_pairs(const PairLists& pairs, cudaStream_t stream) noexcept {
  Keys keys(pairs.keys, pairs.other_keys);
  Values values(pairs.values, pairs.other_values);
  std::size_t bytes = pairs.scratch_bytes;
  const cudaError_t code =
      cub::DeviceRadixSort::SortPairs(pairs.scratch, bytes, keys, values, static_cast<std::int64_t>(pairs.count), 0,
                                      static_cast<int>(pairs.key_bits), stream);
  if (code != cudaSuccess) return to_error(code);
  return keys.selector != 0;
}

}  // namespace headrace::detail::cuda
