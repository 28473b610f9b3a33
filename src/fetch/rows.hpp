#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "fetch/program.hpp"

/// A thread's rows of a tile, and the arithmetic on one row.
namespace headrace::fetch {

/// One bit a row where rows are few (a CUDA thread's), one byte where they are many (a CPU vector's).
template <std::uint32_t Rows>
class Flags {
 public:
  static constexpr bool kSmall = Rows <= 32;
  [[nodiscard]] HEADRACE_HD bool operator[](std::uint32_t row) const noexcept {
    if constexpr (kSmall) {
      return ((bits_ >> row) & 1) != 0;
    } else {
      return bits_[row] != 0;
    }
  }
  HEADRACE_HD void set(std::uint32_t row, bool value) noexcept {
    if constexpr (kSmall) {
      bits_ = (bits_ & ~(1U << row)) | ((value ? 1U : 0U) << row);
    } else {
      bits_[row] = value ? 1 : 0;
    }
  }
  /// The first `count` rows are set, the others are not.
  HEADRACE_HD void set_first(std::uint32_t count) noexcept {
    if constexpr (kSmall) {
      bits_ = count == 0 ? 0 : ~std::uint32_t{0} >> (32 - count);
    } else {
      for (std::uint32_t row = 0; row < Rows; ++row) bits_[row] = row < count ? 1 : 0;
    }
  }
  /// Row i is bit first + i * step of a bitmap. Only where rows are many.
  HEADRACE_HD void set_bits(const std::uint8_t* bits, std::int64_t first, std::uint32_t step,
                            std::uint32_t count) noexcept {
    const auto bit = [&](std::int64_t at) { return static_cast<std::uint8_t>((bits[at >> 3] >> (at & 7)) & 1); };
    std::uint32_t row = 0;
    if (step == 1) {
      for (; row < count && ((first + row) & 7) != 0; ++row) bits_[row] = bit(first + row);
      for (; row + 8 <= count; row += 8) {
        // Bit k of the byte alone in byte k, then made 1.
        const std::uint64_t apart =
            (std::uint64_t{bits[(first + row) >> 3]} * 0x0101'0101'0101'0101) & 0x8040'2010'0804'0201;
        const std::uint64_t ones = ((apart + 0x7F7F'7F7F'7F7F'7F7F) >> 7) & 0x0101'0101'0101'0101;
        std::memcpy(bits_ + row, &ones, sizeof(ones));
      }
    }
    for (; row < count; ++row) bits_[row] = bit(first + std::int64_t{row} * step);
  }
  /// Whether all rows are set. Only where rows are few.
  [[nodiscard]] HEADRACE_HD bool all() const noexcept {
    static_assert(kSmall);
    return bits_ == ~std::uint32_t{0} >> (32 - Rows);
  }
  [[nodiscard]] HEADRACE_HD bool none(std::uint32_t count) const noexcept {
    if constexpr (kSmall) {
      return bits_ == 0;
    } else {
      std::uint8_t any = 0;
      for (std::uint32_t row = 0; row < count; ++row) any |= bits_[row];
      return any == 0;
    }
  }

 private:
  std::conditional_t<kSmall, std::uint32_t, std::uint8_t[kSmall ? 1 : Rows]> bits_;
};

/// Rows that are set in both of two.
template <std::uint32_t Rows>
struct BothFlags {
  const Flags<Rows>& one;
  const Flags<Rows>& other;
  [[nodiscard]] HEADRACE_HD bool operator[](std::uint32_t row) const noexcept { return one[row] & other[row]; }
  [[nodiscard]] HEADRACE_HD bool all() const noexcept { return one.all() & other.all(); }
};

/// A copy of the registers of a thread's rows, for a loop; where rows are many, themselves.
template <class T, std::uint32_t Rows, bool Copied = Flags<Rows>::kSmall>
class RowCopy {
 public:
  HEADRACE_HD explicit RowCopy(const T* values) noexcept {
    for (std::uint32_t i = 0; i < Rows; ++i) values_[i] = values[i];
  }
  [[nodiscard]] HEADRACE_HD const T& operator[](std::uint32_t row) const noexcept { return values_[row]; }

 private:
  T values_[Rows];
};
template <class T, std::uint32_t Rows>
class RowCopy<T, Rows, false> {
 public:
  HEADRACE_HD explicit RowCopy(const T* values) noexcept : values_(values) {}
  [[nodiscard]] HEADRACE_HD const T& operator[](std::uint32_t row) const noexcept { return values_[row]; }

 private:
  const T* values_;
};

/// A tile as one thread has it: its row i is the tile's row rank + i * size.
template <class Group, std::uint32_t Rows>
struct Tile {
  std::int64_t first = 0;   ///< The thread's first row, in the fragment.
  std::uint32_t count = 0;  ///< Rows that there are.
  Flags<Rows> pass;         ///< Rows that are still in the scan.

  HEADRACE_HD Tile(const Group& group, std::int64_t tile_first, std::int64_t fragment_rows) noexcept
      : first(tile_first + group.rank()) {
    const std::int64_t left = fragment_rows - first;
    const std::int64_t mine = left <= 0 ? 0 : (left + group.size() - 1) / group.size();
    count = mine > Rows ? Rows : static_cast<std::uint32_t>(mine);
    pass.set_first(count);
  }

  /// Calls body(i) for the thread's rows; where they are few, for those that are not there or do not pass too: without
  /// a branch for each, what they compute overlaps.
  template <class Body>
  HEADRACE_HD void each(const Body& body) const noexcept {
    if constexpr (Flags<Rows>::kSmall) {
      unrolled(body, std::make_integer_sequence<std::uint32_t, Rows>());
    } else {
      for (std::uint32_t i = 0; i < count; ++i) body(i);
    }
  }
  /// Calls body(i) for the rows of `wanted`, a short body: there is one without branches for when all are.
  template <class Body>
  HEADRACE_HD void each_of(const BothFlags<Rows>& wanted, const Body& body) const noexcept {
    if constexpr (Flags<Rows>::kSmall) {
      if (wanted.all()) return each(body);
    }
    each([&](std::uint32_t i) {
      if (wanted[i]) body(i);
    });
  }
  /// Calls body(i) for the rows of `wanted`, a long body: there is one of it, whose `i` is no constant. What it does
  /// with a row's registers it does with a copy of them, so that they stay registers elsewhere.
  template <class Body>
  HEADRACE_HD void each_in_turn(const BothFlags<Rows>& wanted, const Body& body) const noexcept {
#if defined(__CUDA_ARCH__)
#pragma unroll 1
#endif
    for (std::uint32_t i = 0; i < (Flags<Rows>::kSmall ? Rows : count); ++i) {
      if (wanted[i]) body(i);
    }
  }
  /// Calls body(i) for the rows that pass.
  template <class Body>
  HEADRACE_HD void each_passing(const Body& body) const noexcept {
    each([&](std::uint32_t i) {
      if (pass[i]) body(i);
    });
  }

 private:
  template <class Body, std::uint32_t... I>
  HEADRACE_HD static void unrolled(const Body& body, std::integer_sequence<std::uint32_t, I...> /*rows*/) noexcept {
    (body(I), ...);
  }
};

[[nodiscard]] HEADRACE_HD inline double as_double(std::int64_t bits) noexcept {
  static_assert(sizeof(double) == sizeof(std::int64_t));
  return __builtin_bit_cast(double, bits);
}
[[nodiscard]] HEADRACE_HD inline std::int64_t as_bits(double value) noexcept {
  return __builtin_bit_cast(std::int64_t, value);
}

/// Bits that are equal where floats compare equal: one zero, one NaN.
[[nodiscard]] HEADRACE_HD inline std::int64_t canonical(std::int64_t bits, Kind kind) noexcept {
  if (kind != Kind::real) return bits;
  const double value = as_double(bits);
  if (value != value) return 0x7FF8'0000'0000'0000;
  return value == 0 ? 0 : bits;
}

[[nodiscard]] HEADRACE_HD inline bool less_than(std::int64_t a, std::int64_t b, Kind kind) noexcept {
  if (kind == Kind::integer) return a < b;
  if (kind == Kind::natural) return static_cast<std::uint64_t>(a) < static_cast<std::uint64_t>(b);
  const double x = as_double(a);
  const double y = as_double(b);
  return x < y || (y != y && x == x);
}

[[nodiscard]] HEADRACE_HD inline bool same(std::int64_t a, std::int64_t b, Kind kind) noexcept {
  if (kind != Kind::real) return a == b;
  const double x = as_double(a);
  const double y = as_double(b);
  return x == y || (x != x && y != y);
}

/// The sum, the difference or the product modulo 2^64; `over` where that is not the number.
[[nodiscard]] HEADRACE_HD inline std::int64_t add(std::int64_t a, std::int64_t b, bool& over) noexcept {
  const auto sum = static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  over = ((a ^ sum) & (b ^ sum)) < 0;
  return sum;
}
[[nodiscard]] HEADRACE_HD inline std::int64_t subtract(std::int64_t a, std::int64_t b, bool& over) noexcept {
  const auto difference = static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
  over = ((a ^ b) & (a ^ difference)) < 0;
  return difference;
}
[[nodiscard]] HEADRACE_HD inline std::int64_t multiply(std::int64_t a, std::int64_t b, bool& over) noexcept {
  const __int128 product = static_cast<__int128>(a) * b;
  const auto low = static_cast<std::int64_t>(product);
  over = product != low;
  return low;
}

[[nodiscard]] HEADRACE_HD constexpr std::int64_t floor_divide(std::int64_t a, std::int64_t divisor) noexcept {
  const std::int64_t quotient = a / divisor;
  return quotient - (a % divisor < 0 ? 1 : 0);
}

/// By a divisor above 0, half away from zero.
[[nodiscard]] HEADRACE_HD constexpr std::int64_t round_divide(std::int64_t a, std::int64_t divisor) noexcept {
  const std::int64_t quotient = a / divisor;
  const std::int64_t rest = a % divisor;
  const std::int64_t size = rest < 0 ? -rest : rest;
  return quotient + (size >= divisor - size ? (a < 0 ? -1 : 1) : 0);
}

[[nodiscard]] HEADRACE_HD constexpr std::int64_t units_per_day(TimeUnit unit) noexcept {
  switch (unit) {
    case TimeUnit::second: return 86'400;
    case TimeUnit::millisecond: return 86'400'000;
    case TimeUnit::microsecond: return 86'400'000'000;
    case TimeUnit::nanosecond: return 86'400'000'000'000;
  }
  return 1;
}

/// The year of a day of an era of 400 years that starts in March of a year divisible by 400: Howard Hinnant,
/// "chrono-Compatible Low-Level Date Algorithms", civil_from_days.
[[nodiscard]] HEADRACE_HD constexpr std::uint32_t year_of_era(std::uint32_t day) noexcept {
  const std::uint32_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
  const std::uint32_t day_of_year = day - (365 * year + year / 4 - year / 100);
  return year + (day_of_year >= 306 ? 1 : 0);  // January and February belong to the next
}

inline constexpr std::uint32_t kEraDays = 146'097;
inline constexpr std::uint32_t kEpochDay = 719'468;  ///< 1970-01-01, from 0000-03-01.

/// The year of a day counted from 1970-01-01, in the proleptic Gregorian calendar. Of days within 2^62.
[[nodiscard]] HEADRACE_HD constexpr std::int64_t year_of(std::int64_t days) noexcept {
  const std::int64_t shifted = days + kEpochDay;
  const std::int64_t era = floor_divide(shifted, kEraDays);
  return era * 400 + year_of_era(static_cast<std::uint32_t>(shifted - era * kEraDays));
}
/// The same in 32 bits, of days that a timestamp of microseconds has. A product with 2^32 / 1461 has the year of a
/// century above its low word, and there the day of the year: C. Neri and L. Schneider, "Euclidean affine functions and
/// their application to calendar algorithms", 2022.
[[nodiscard]] HEADRACE_HD constexpr std::int32_t year_of_near(std::int32_t days) noexcept {
  constexpr std::uint32_t kErasBefore = 740;            // makes every day positive
  constexpr std::uint32_t kCenturyQuarters = kEraDays;  // of days
  constexpr std::uint32_t kYearFactor = 2'939'745;      // 2^32 / 1461, rounded up
  constexpr std::uint32_t kJanuary = 306 * 4 * kYearFactor;
  const std::uint32_t quarters = 4 * (static_cast<std::uint32_t>(days) + kEpochDay + kErasBefore * kEraDays) + 3;
  const std::uint32_t century = quarters / kCenturyQuarters;
  const std::uint64_t years = std::uint64_t{kYearFactor} * ((quarters - century * kCenturyQuarters) | 3);
  const std::uint32_t next = static_cast<std::uint32_t>(years) >= kJanuary ? 1 : 0;
  return static_cast<std::int32_t>(100 * century + static_cast<std::uint32_t>(years >> 32) + next - 400 * kErasBefore);
}

/// The day of a timestamp, for units so fine that a day is a multiple of a large power of two of them. By a reciprocal,
/// since vectors have no division: a timestamp counts parts of a day then, fewer than 2^51, and the middle of one is
/// farther from midnight than what rounding does to the quotient.
template <TimeUnit Unit>
[[nodiscard]] HEADRACE_HD inline std::int32_t day_of_fine_stamp(std::int64_t stamp) noexcept {
  constexpr int kShift = Unit == TimeUnit::microsecond ? 13 : 16;
  constexpr std::int64_t kParts = units_per_day(Unit) >> kShift;
  static_assert(kParts << kShift == units_per_day(Unit));
  constexpr double kDays = 1.0 / static_cast<double>(kParts);
  constexpr double kWhole = 6'755'399'441'055'744.0;  // 1.5 * 2^52: the low bits of a double near it are an integer
  const double parts = as_double((stamp >> kShift) + as_bits(kWhole)) - kWhole;
  // Half a day back, so that the nearest integer is the day.
  return static_cast<std::int32_t>(as_bits(parts * kDays + (0.5 * kDays - 0.5) + kWhole));
}

/// The year of a timestamp.
template <TimeUnit Unit>
[[nodiscard]] HEADRACE_HD inline std::int64_t year_of_stamp(std::int64_t stamp) noexcept {
  if constexpr (Unit == TimeUnit::second || Unit == TimeUnit::millisecond) {
    return year_of(floor_divide(stamp, units_per_day(Unit)));
  } else {
    return year_of_near(day_of_fine_stamp<Unit>(stamp));
  }
}

}  // namespace headrace::fetch
