#pragma once

#include <cmath>
#include <cstdint>

#include "fetch/program/rows.hpp"
#include "fetch/scan/order.hpp"

/// The words that rows are ordered by, on a device and when parts of a result are merged.
namespace headrace::fetch {

/// The rank of a dictionary's entry.
[[nodiscard]] HEADRACE_HD inline std::int64_t rank_of(const OrderKey& key, std::int64_t index) noexcept {
  return index >= 0 && index < key.rank_count ? key.ranks[index] : 0;
}

/// The word of a missing value is above all others in either direction, and that of NaN above all other floats. Floats
/// leave 64-bit words unused for this; integers do not, so a separate pass sorts their missing values.
[[nodiscard]] HEADRACE_HD inline std::uint64_t word_of(const OrderKey& key, std::int64_t bits, bool valid) noexcept {
  constexpr std::uint64_t kNan = 0xFFF8'0000'0000'0000;
  if (key.narrow) {
    const std::uint64_t missing = std::uint64_t{1} << key.bits;
    if (!valid) return missing;
    const std::int64_t value = key.ranks == nullptr ? bits - key.least : rank_of(key, bits);
    const auto word = static_cast<std::uint64_t>(value);
    return key.descending ? missing - 1 - word : word;
  }
  if (!valid) return ~std::uint64_t{0};
  if (key.kind == Kind::real && std::isnan(as_double(bits))) return kNan;
  const std::uint64_t word = ordered(canonical(bits, key.kind), key.kind);
  return key.descending ? ~word : word;
}

/// The parameters with which word_of() of a present value is (bits ^ flip) - less. `there` is false for floats and
/// strings.
struct AffineWord {
  bool there = false;
  std::uint64_t flip = 0;
  std::uint64_t less = 0;
};
[[nodiscard]] HEADRACE_HD inline AffineWord affine_word(const OrderKey& key) noexcept {
  constexpr std::uint64_t kSign = std::uint64_t{1} << 63;
  constexpr std::uint64_t kAll = ~std::uint64_t{0};
  if (key.ranks != nullptr || key.kind == Kind::real) return {};
  const auto least = static_cast<std::uint64_t>(key.least);
  if (key.narrow) {
    // missing - 1 - (bits - least) is ~bits + missing + least.
    const std::uint64_t missing = std::uint64_t{1} << key.bits;
    return key.descending ? AffineWord{true, kAll, 0 - (missing + least)} : AffineWord{true, 0, least};
  }
  const std::uint64_t flip = key.kind == Kind::integer ? kSign : 0;
  return {true, key.descending ? ~flip : flip, 0};
}

}  // namespace headrace::fetch
