#include "operators/lookup/lookup_sampler.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "headrace/base/error.hpp"
#include "operators/sample.hpp"

namespace headrace::operators {

namespace {

constexpr double kExponent = 1.05;
constexpr std::uint64_t kFewerEvery = 8;  ///< One in this many queries asks for fewer than the maximum number of rows.

std::vector<std::uint64_t> running_sums(const LookupOptions& options) {
  if (options.exponent) return {};
  std::vector<std::uint64_t> sums;
  sums.reserve(options.counts.size());
  std::uint64_t sum = 0;
  for (const std::uint64_t count : options.counts) {
    if (sum + count < sum) throw UsageError("lookup: counts add up to 2^64 or more");
    sum += count;
    sums.push_back(sum);
  }
  if (!sums.empty() && sum == 0) throw UsageError("lookup: counts are all 0");
  return sums;
}

/// A number that is coprime to the number of rows and near their golden section: its multiples, modulo the number of
/// rows, cover all rows, and consecutive ones lie far apart (Knuth, The Art of Computer Programming, 6.4).
std::uint64_t scattering_stride(std::uint64_t rows) {
  auto stride = static_cast<std::uint64_t>(static_cast<double>(rows) * 0.6180339887498949);
  while (std::gcd(stride, rows) != 1) ++stride;
  return stride;
}

}  // namespace

LookupSampler::LookupSampler(const LookupState& state, const LookupOptions& options)
    : row_count_(state.row_count),
      most_(state.most),
      weighted_(state.weighted),
      counted_(running_sums(options)),
      law_(static_cast<std::uint32_t>(state.row_count), options.exponent.value_or(kExponent)),
      stride_(scattering_stride(state.row_count)) {}

std::uint32_t LookupSampler::draw_row(std::uint64_t& random) const noexcept {
  if (counted_.empty()) {
    const std::uint64_t rank = law_.draw(random);
    return static_cast<std::uint32_t>(rank * stride_ % row_count_);
  }
  const std::uint64_t drawn = next_random(random) % counted_.back();
  return static_cast<std::uint32_t>(std::ranges::upper_bound(counted_, drawn) - counted_.begin());
}

void LookupSampler::write(std::uint64_t index, std::byte* query) const noexcept {
  std::uint64_t random = index * 0xD1342543DE82EF95ULL;
  const std::uint64_t fewer = next_random(random) % (std::uint64_t{most_} + 1);
  const auto count = static_cast<std::uint32_t>(index % kFewerEvery == kFewerEvery - 1 ? fewer : most_);
  std::memcpy(query, &count, sizeof(count));
  std::byte* const rows = query + sizeof(count);
  for (std::uint32_t i = 0; i < most_; ++i) {
    const std::uint32_t row = draw_row(random);
    std::memcpy(rows + i * sizeof(row), &row, sizeof(row));
  }
  for (std::uint32_t i = 0; weighted_ && i < most_; ++i) {
    const float weight = static_cast<float>(next_random(random) >> 40) * 0x1p-23F - 1;
    std::memcpy(rows + (std::size_t{most_} + i) * sizeof(weight), &weight, sizeof(weight));
  }
}

}  // namespace headrace::operators
