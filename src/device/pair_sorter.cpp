#include "headrace/device/detail/pair_sorter.hpp"

#include <fmt/format.h>

#include "device/backend.hpp"
#include "headrace/base/error.hpp"

namespace headrace {

namespace {

constexpr std::uint32_t kKeyBits = 64;

std::size_t checked(std::size_t count) {
  if (count > PairSorter::kPairsMax) {
    throw UsageError(fmt::format("at most {} pairs can be sorted, not {}", PairSorter::kPairsMax, count));
  }
  return count;
}

}  // namespace

PairSorter::PairSorter(StreamRef stream, std::size_t count) : stream_(stream), count_(checked(count)) {
  const Device device = stream.device();
  for (Buffer& keys : keys_) keys = Buffer(device, MemoryKind::pool, count * sizeof(std::uint64_t));
  for (Buffer& values : values_) values = Buffer(device, MemoryKind::pool, count * sizeof(std::uint32_t));
  const std::size_t scratch_bytes = stream.backend().pair_scratch_bytes(count).or_throw("preparing to sort");
  scratch_ = Buffer(device, MemoryKind::pool, scratch_bytes);
}

Status PairSorter::sort(std::uint32_t key_bits) noexcept {
  if (key_bits == 0 || key_bits > kKeyBits) return Errc::invalid_argument;
  if (count_ < 2) return {};
  const std::size_t other = 1 - present_;
  detail::PairLists pairs{.keys = keys(),
                          .other_keys = keys_[other].as<std::uint64_t>(),
                          .values = values(),
                          .other_values = values_[other].as<std::uint32_t>(),
                          .count = count_,
                          .key_bits = key_bits,
                          .scratch = scratch_.data(),
                          .scratch_bytes = scratch_.bytes()};
  const auto swapped = stream_.backend().sort_pairs(pairs);
  if (!swapped) return swapped.error();
  if (*swapped) present_ = other;
  return {};
}

}  // namespace headrace
