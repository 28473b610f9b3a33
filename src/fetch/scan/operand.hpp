#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "fetch/scan/states.hpp"

namespace headrace::fetch {

/// Intermediate results. They are not members of the machine, whose members stay in registers only if none of them is
/// indexed.
template <std::uint32_t Rows>
struct Slots {
  std::int64_t values[kSlots][Rows];
  Flags<Rows> valid[kSlots];
};

/// The loading half of the machine: a tile of rows, and an operand for each of them.
template <class Group, std::uint32_t Rows>
class Operand {
 protected:
  static constexpr bool kFew = Flags<Rows>::kSmall;
  static constexpr std::uint32_t kRun = Tile<Group, Rows>::kRun;
  static constexpr std::uint32_t kRuns = Tile<Group, Rows>::kRuns;
  static constexpr std::uint32_t kRunStep = Tile<Group, Rows>::kRunStep;
  struct alignas(16) WideValue {
    std::int64_t low;
    std::int64_t high;
  };

  HEADRACE_HD Operand(const Group& group, const ScanWork& work, Slots<Rows>& slots, const TilePlace& place) noexcept
      : group_(group), work_(work), slots_(slots), fragment_(place.fragment), tile_(group, place) {}

  template <class Body>
  HEADRACE_HD void each(const Body& body) const noexcept {
    tile_.each(body);
  }

  HEADRACE_HD void fault(bool happened, Fault what) const noexcept {
    if (happened) group_.store_relaxed_on_device(work_.faults[static_cast<int>(what)], std::uint32_t{1});
  }

  /// Loads the operand of an instruction for the rows that pass.
  HEADRACE_HD void fetch(const Instruction& code, std::int64_t (&to)[Rows], Flags<Rows>& valid) const noexcept {
    switch (code.source) {
      case OperandSource::none: break;
      case OperandSource::column: fetch_column(code, to, valid); break;
      case OperandSource::constant:
        each([&](std::uint32_t i) { to[i] = code.value; });
        valid.set_first(Rows);
        break;
      case OperandSource::missing:
        each([&](std::uint32_t i) { to[i] = 0; });
        valid.set_first(0);
        break;
      case OperandSource::slot:
        each([&](std::uint32_t i) { to[i] = slots_.values[code.index][i]; });
        valid = slots_.valid[code.index];
        break;
    }
  }

  const Group& group_;
  const ScanWork& work_;
  Slots<Rows>& slots_;
  std::uint32_t fragment_;
  Tile<Group, Rows> tile_;

 private:
  using Memory = BlockMemory<Group>;

  /// Converts a value to the form that a register holds.
  template <class T>
  [[nodiscard]] HEADRACE_HD static std::int64_t widened(T value) noexcept {
    if constexpr (std::is_floating_point_v<T>) {
      return as_bits(static_cast<double>(value));
    } else {
      return static_cast<std::int64_t>(value);
    }
  }

  /// Loads the values of passing rows, if rows are few. All loads are issued before the first one is waited for.
  /// Aligned values are loaded in pieces of up to 16 bytes, of which the last may extend beyond the column; unaligned
  /// values are loaded one by one.
  template <class T>
  HEADRACE_HD void load(const T* values, T (&loaded)[Rows]) const noexcept {
    constexpr std::uint32_t kPiece = sizeof(T) * kRun > 16 ? 16 / sizeof(T) : kRun;
    struct alignas(kPiece * sizeof(T)) Piece {
      T values[kPiece];
    };
    const auto row_of = [](std::uint32_t i) { return i / kRun * kRunStep + i % kRun; };
    const auto load_piece = [&](std::uint32_t piece) {
      const Piece read = Memory::read(reinterpret_cast<const Piece*>(values + row_of(piece * kPiece)));
      each_constant<kPiece>([&](std::uint32_t k) { loaded[piece * kPiece + k] = read.values[k]; });
    };
    if (reinterpret_cast<std::uintptr_t>(values) % alignof(Piece) != 0) {
      each([&](std::uint32_t i) { loaded[i] = tile_.pass[i] ? Memory::read(values + row_of(i)) : T{}; });
    } else if (tile_.pass.all()) {
      each_constant<Rows / kPiece>(load_piece);
    } else {
      each([&](std::uint32_t i) { loaded[i] = T{}; });
      each_constant<Rows / kPiece>([&](std::uint32_t piece) {
        if (tile_.pass.any(piece * kPiece, kPiece)) load_piece(piece);
      });
    }
  }

  template <class T>
  HEADRACE_HD void fetch_values(const std::byte* column, std::int64_t (&to)[Rows]) const noexcept {
    const T* values = reinterpret_cast<const T*>(column) + tile_.first;
    if constexpr (kFew) {
      T loaded[Rows];
      load(values, loaded);
      each([&](std::uint32_t i) { to[i] = widened(loaded[i]); });
    } else {
      each([&](std::uint32_t i) { to[i] = widened(values[i]); });
    }
  }

  /// Bits of the thread's rows whose loads are in flight: the bytes of each run, and the number of bits to skip in
  /// them. If rows are many, only their address.
  struct Bits {
    const std::uint8_t* bitmap = nullptr;
    std::int64_t first = 0;
    std::uint32_t bytes[kFew ? kRuns : 1] = {};
    std::uint32_t skipped = 0;
  };
  [[nodiscard]] HEADRACE_HD Bits load_bits(const std::uint8_t* bitmap, std::int64_t first) const noexcept {
    Bits bits{.bitmap = bitmap, .first = first};
    if constexpr (kFew) {
      static_assert(kRunStep % 8 == 0, "the bits of all runs lie in their bytes alike");
      const std::uint8_t* const from = bitmap + (first >> 3);
      bits.skipped = static_cast<std::uint32_t>(first & 7);
      each_constant<kRuns>([&](std::uint32_t run) {
        if (tile_.rows_of(run) > 0) bits.bytes[run] = Memory::read(from + run * (kRunStep / 8));
      });
      if (bits.skipped > 8 - kRun) {  // never for a bitmap that starts at a boundary of a run
        each_constant<kRuns>([&](std::uint32_t run) {
          if (bits.skipped + tile_.rows_of(run) > 8) {
            bits.bytes[run] |= std::uint32_t{Memory::read(from + run * (kRunStep / 8) + 1)} << 8;
          }
        });
      }
    }
    return bits;
  }
  HEADRACE_HD void take_bits(const Bits& bits, Flags<Rows>& flags) const noexcept {
    if constexpr (kFew) {
      std::uint32_t all = 0;
      each_constant<kRuns>(
          [&](std::uint32_t run) { all |= ((bits.bytes[run] >> bits.skipped) & ((1U << kRun) - 1)) << (run * kRun); });
      flags.set_bits(all);
    } else {
      flags.set_bits(bits.bitmap, bits.first, tile_.count);
    }
  }

  /// Issues the load of the validity before those of the values, and waits for it after them.
  HEADRACE_HD void fetch_column(const Instruction& code, std::int64_t (&to)[Rows], Flags<Rows>& valid) const noexcept {
    const ColumnPlace& place = work_.columns[std::size_t{fragment_} * work_.column_count + code.index];
    const std::byte* const values = Memory::read_kept(&place.values);
    const std::uint8_t* const validity = Memory::read_kept(&place.validity);
    const std::int64_t bit = Memory::read_kept(&place.first_bit) + tile_.first;
    const bool misses = validity != nullptr;
    // Missing decimals must not be checked for their width, so their validity is needed first.
    const bool waits = misses & (code.type == Type::decimal128);
    Bits bits;
    valid.set_first(Rows);
    if (misses) bits = load_bits(validity, bit);
    if (waits) take_bits(bits, valid);
    fetch_values_of(code, values, bit, to, valid);
    if (misses & !waits) take_bits(bits, valid);
  }

  HEADRACE_HD void fetch_values_of(const Instruction& code, const std::byte* values, std::int64_t bit,
                                   std::int64_t (&to)[Rows], const Flags<Rows>& valid) const noexcept {
    switch (code.type) {
      case Type::boolean: {
        Flags<Rows> bits;
        bits.set_first(0);
        take_bits(load_bits(reinterpret_cast<const std::uint8_t*>(values), bit), bits);
        each([&](std::uint32_t i) { to[i] = bits[i] ? 1 : 0; });
        break;
      }
      case Type::int8: fetch_values<std::int8_t>(values, to); break;
      case Type::uint8: fetch_values<std::uint8_t>(values, to); break;
      case Type::int16: fetch_values<std::int16_t>(values, to); break;
      case Type::uint16: fetch_values<std::uint16_t>(values, to); break;
      case Type::uint32: fetch_values<std::uint32_t>(values, to); break;
      case Type::int32:
      case Type::date32: fetch_values<std::int32_t>(values, to); break;
      case Type::float32: fetch_values<float>(values, to); break;
      case Type::float64: fetch_values<double>(values, to); break;
      case Type::decimal128: fetch_decimals(values, part_of(code), to, valid); break;
      default: fetch_values<std::int64_t>(values, to); break;
    }
  }

  /// Only Op::load takes a part; in other instructions the flags mean something else.
  [[nodiscard]] HEADRACE_HD static DecimalPart part_of(const Instruction& code) noexcept {
    return code.op == Op::load ? static_cast<DecimalPart>(code.flags) : DecimalPart::whole;
  }

  HEADRACE_HD void fetch_decimals(const std::byte* column, DecimalPart part, std::int64_t (&to)[Rows],
                                  const Flags<Rows>& valid) const noexcept {
    const auto* values = reinterpret_cast<const WideValue*>(column) + tile_.first;
    const bool checks = part == DecimalPart::whole;
    const bool high = part == DecimalPart::high;
    bool wide = false;
    const auto take = [&](std::uint32_t i, const WideValue& value) {
      to[i] = high ? value.high : value.low;
      wide |= (value.high != value.low >> 63) & checks & valid[i] & tile_.pass[i];
    };
    if constexpr (kFew) {
      WideValue loaded[Rows];
      load(values, loaded);
      each([&](std::uint32_t i) { take(i, loaded[i]); });
    } else {
      each([&](std::uint32_t i) { take(i, values[i]); });
    }
    fault(wide, Fault::wide_decimal);
  }
};

}  // namespace headrace::fetch
