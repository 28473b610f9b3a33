#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "headrace/device/group.hpp"

/// The data that the random access patterns touch, as functions of a draw's number, so that another kernel can compute
/// it again.
namespace headrace::measure {

/// The output function of SplitMix64 (Steele, Lea and Flood 2014): a bijection whose every output bit depends on every
/// input bit.
[[nodiscard]] HEADRACE_HD constexpr std::uint64_t mixed(std::uint64_t x) noexcept {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

/// 0..count-1 in random order: additions, odd multiplications and shifts are bijections of the numbers below a power of
/// two, and results beyond the count are mapped again (cycle walking: Black and Rogaway 2002).
struct Scatter {
  std::uint64_t count = 1;
  std::uint64_t mask = 0;   ///< The least power of two not below the count, minus 1.
  std::uint32_t shift = 0;  ///< Half of the bits of the mask.

  [[nodiscard]] static constexpr Scatter over(std::uint64_t count) noexcept {
    Scatter made;
    made.count = count;
    std::uint32_t bits = 0;
    while (bits < 63 && (std::uint64_t{1} << bits) < count) ++bits;
    made.mask = (std::uint64_t{1} << bits) - 1;
    made.shift = (bits + 1) / 2;
    return made;
  }

  /// The position of `index` < count; each `seed` gives another order.
  [[nodiscard]] HEADRACE_HD constexpr std::uint64_t at(std::uint64_t index, std::uint64_t seed) const noexcept {
    std::uint64_t x = index;
    do {
      x = ((x + seed) * 0x9E3779B97F4A7C15) & mask;
      x ^= x >> shift;
      x = ((x + (seed >> 32)) * 0xD1B54A32D192ED03) & mask;
      x ^= x >> shift;
      x = (x * 0x8CB92BA72F3D8DD7) & mask;
    } while (x >= count);
    return x;
  }
};

/// Regions of 128 bytes, each drawn once, in an order that changes the page with every draw (NVIDIA 2021's random warp,
/// but without repeats, so that writes and their check need no atomics).
struct RandomRegions {
  static constexpr std::size_t kBytes = 128;
  static constexpr std::uint32_t kItems = kBytes / sizeof(std::uint32_t);

  Scatter pages;
  std::uint64_t page_regions = 1;  ///< A power of two.
  std::uint64_t seed = 0;

  [[nodiscard]] HEADRACE_HD constexpr std::uint64_t draw_count() const noexcept { return pages.count * page_regions; }
  /// The region of a draw.
  [[nodiscard]] HEADRACE_HD constexpr std::uint64_t at(std::uint64_t draw) const noexcept {
    const std::uint64_t round = draw / pages.count;
    const std::uint64_t page = pages.at(draw % pages.count, mixed(seed + round));
    const std::uint64_t region = (round + mixed(seed ^ page)) & (page_regions - 1);
    return page * page_regions + region;
  }
  /// The first item of a draw's region.
  [[nodiscard]] HEADRACE_HD constexpr std::uint64_t first(std::uint64_t draw) const noexcept {
    return at(draw) * kItems;
  }
};

/// Rows of 512 bytes, drawn with probability proportional to 1 / rank and stored in order of rank, or scattered.
///
/// Drawn by rejection-inversion (Hörmann and Derflinger 1996, "Rejection-inversion to generate variates from monotone
/// discrete distributions", for exponent 1): exact, one exponential function per draw, without a table.
struct ZipfRows {
  static constexpr std::size_t kBytes = 512;
  static constexpr std::uint32_t kItems = kBytes / 16;

  Scatter rows;
  bool scattered = false;
  std::uint64_t seed = 0;
  std::uint64_t draws = 0;
  double area_first = 0;  ///< Start of the area of rank 1, under an integral of 1 / x,
  double area_last = 0;   ///< and the end of that of the last rank.
  double sure = 0;        ///< A point this little below its rank is never rejected.

  [[nodiscard]] static ZipfRows over(std::uint64_t row_count, std::uint64_t draw_count, bool scattered,
                                     std::uint64_t seed) noexcept {
    ZipfRows made;
    made.rows = Scatter::over(row_count);
    made.scattered = scattered;
    made.seed = seed;
    made.draws = draw_count;
    made.area_first = std::log(1.5) - 1.0;
    made.area_last = std::log(static_cast<double>(row_count) + 0.5);
    made.sure = 2.0 - std::exp(std::log(2.5) - 0.5);
    return made;
  }

  [[nodiscard]] HEADRACE_HD constexpr std::uint64_t draw_count() const noexcept { return draws; }
  /// The rank of a draw, from 0.
  [[nodiscard]] HEADRACE_HD std::uint64_t rank(std::uint64_t draw) const noexcept {
    std::uint64_t state = mixed(seed + draw);
    while (true) {
      constexpr double kUnit = 0x1p-53;
      const double area = area_last + static_cast<double>(state >> 11) * kUnit * (area_first - area_last);
      const double x = std::exp(area);
      const double nearest = std::floor(x + 0.5);
      const auto last = static_cast<double>(rows.count);
      const double k = nearest < 1 ? 1 : (nearest > last ? last : nearest);
      if (k - x <= sure || area >= std::log(k + 0.5) - 1.0 / k) return static_cast<std::uint64_t>(k) - 1;
      state = mixed(state);
    }
  }
  /// The row of a draw.
  [[nodiscard]] HEADRACE_HD std::uint64_t at(std::uint64_t draw) const noexcept {
    const std::uint64_t found = rank(draw);
    return scattered ? rows.at(found, kScatterSeed) : found;
  }
  [[nodiscard]] HEADRACE_HD std::uint64_t first(std::uint64_t draw) const noexcept { return at(draw) * kItems; }

 private:
  /// The seed of the rows' positions, which do not depend on the draws.
  static constexpr std::uint64_t kScatterSeed = 0x243F6A8885A308D3;
};

}  // namespace headrace::measure
