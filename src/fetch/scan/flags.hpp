#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "headrace/device/group.hpp"

/// A flag for each of a thread's rows: one bit, or one byte.
namespace headrace::fetch {

/// Calls body(i) for i from 0 to Count - 1. Each i is a constant if the call is inlined.
template <std::uint32_t Count, class Body>
HEADRACE_HD void each_constant(const Body& body) noexcept {
  [&]<std::uint32_t... I>(std::integer_sequence<std::uint32_t, I...> /*numbers*/) {
    (body(I), ...);
  }(std::make_integer_sequence<std::uint32_t, Count>());
}

/// One bit per row if the thread has few rows (CUDA), one byte if it has many (CPU vectors).
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
  /// Sets the first `count` rows and clears the others.
  HEADRACE_HD void set_first(std::uint32_t count) noexcept {
    if constexpr (kSmall) {
      bits_ = count == 0 ? 0 : ~std::uint32_t{0} >> (32 - count);
    } else {
      for (std::uint32_t row = 0; row < Rows; ++row) bits_[row] = row < count ? 1 : 0;
    }
  }
  /// Row i gets bit i of `bits`. Only if rows are few.
  HEADRACE_HD void set_bits(std::uint32_t bits) noexcept {
    static_assert(kSmall);
    bits_ = bits & kAll;
  }
  /// Row i gets bit first + i of a bitmap. Only if rows are many.
  HEADRACE_HD void set_bits(const std::uint8_t* bits, std::int64_t first, std::uint32_t count) noexcept {
    const auto bit = [&](std::int64_t at) { return static_cast<std::uint8_t>((bits[at >> 3] >> (at & 7)) & 1); };
    std::uint32_t row = 0;
    for (; row < count && ((first + row) & 7) != 0; ++row) bits_[row] = bit(first + row);
    for (; row + 8 <= count; row += 8) {
      // Isolates bit k of the byte in byte k, then turns it into 1.
      const std::uint64_t apart =
          (std::uint64_t{bits[(first + row) >> 3]} * 0x0101'0101'0101'0101) & 0x8040'2010'0804'0201;
      const std::uint64_t ones = ((apart + 0x7F7F'7F7F'7F7F'7F7F) >> 7) & 0x0101'0101'0101'0101;
      std::memcpy(bits_ + row, &ones, sizeof(ones));
    }
    for (; row < count; ++row) bits_[row] = bit(first + row);
  }
  /// Whether all rows are set. Only if rows are few.
  [[nodiscard]] HEADRACE_HD bool all() const noexcept {
    static_assert(kSmall);
    return bits_ == kAll;
  }
  /// Whether any of `count` rows from `first` on is set. Only if rows are few.
  [[nodiscard]] HEADRACE_HD bool any(std::uint32_t first, std::uint32_t count) const noexcept {
    static_assert(kSmall);
    return ((bits_ >> first) & (~std::uint32_t{0} >> (32 - count))) != 0;
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
  static constexpr std::uint32_t kAll = kSmall ? ~std::uint32_t{0} >> (32 - (kSmall ? Rows : 32)) : 0;
  std::conditional_t<kSmall, std::uint32_t, std::uint8_t[kSmall ? 1 : Rows]> bits_;
};

/// Rows that are set in both of two flags.
template <std::uint32_t Rows>
struct BothFlags {
  const Flags<Rows>& one;
  const Flags<Rows>& other;
  [[nodiscard]] HEADRACE_HD bool operator[](std::uint32_t row) const noexcept { return one[row] & other[row]; }
  [[nodiscard]] HEADRACE_HD bool all() const noexcept { return one.all() & other.all(); }
};

/// A copy of the registers of a thread's rows, for use in a loop; if rows are many, a reference to them.
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

}  // namespace headrace::fetch
