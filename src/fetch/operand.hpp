#pragma once

#include <cstdint>
#include <type_traits>

#include "fetch/states.hpp"

namespace headrace::fetch {

/// Results that wait. Apart from the machine, whose members are registers only where no address is computed.
template <std::uint32_t Rows>
struct Slots {
  std::int64_t values[kSlots][Rows];
  Flags<Rows> valid[kSlots];
};

/// The half of the machine that reads: a tile of rows, and an operand for each of them.
template <class Group, std::uint32_t Rows>
class Operand {
 protected:
  static constexpr bool kFew = Flags<Rows>::kSmall;
  struct alignas(16) WideValue {
    std::int64_t low;
    std::int64_t high;
  };

  HEADRACE_HD Operand(const Group& group, const ScanWork& work, Slots<Rows>& slots, const ColumnView* columns,
                      std::int64_t tile_first, std::int64_t fragment_rows) noexcept
      : group_(group), work_(work), slots_(slots), columns_(columns), tile_(group, tile_first, fragment_rows) {}

  template <class Body>
  HEADRACE_HD void each(const Body& body) const noexcept {
    tile_.each(body);
  }

  HEADRACE_HD void fault(bool happened, Fault what) const noexcept {
    if (happened) group_.store_relaxed_on_device(work_.faults[static_cast<int>(what)], std::uint32_t{1});
  }
  /// Brings the operand of an instruction, for the rows that pass.
  HEADRACE_HD void fetch(const Instruction& code) noexcept {
    switch (code.source) {
      case OperandSource::none: break;
      case OperandSource::column: fetch_column(columns_[code.index]); break;
      case OperandSource::constant:
        each([&](std::uint32_t i) { operand_[i] = code.value; });
        operand_valid_.set_first(Rows);
        break;
      case OperandSource::missing:
        each([&](std::uint32_t i) { operand_[i] = 0; });
        operand_valid_.set_first(0);
        break;
      case OperandSource::slot:
        each([&](std::uint32_t i) { operand_[i] = slots_.values[code.index][i]; });
        operand_valid_ = slots_.valid[code.index];
        break;
    }
  }

  /// A value as a register holds it.
  template <class T>
  [[nodiscard]] HEADRACE_HD static std::int64_t widened(T value) noexcept {
    if constexpr (std::is_floating_point_v<T>) {
      return as_bits(static_cast<double>(value));
    } else {
      return static_cast<std::int64_t>(value);
    }
  }

  /// Values of rows that pass, where rows are few: all loads are on their way before the first of them is waited for.
  template <class T>
  HEADRACE_HD void load(const T* values, T (&loaded)[Rows]) const noexcept {
    tile_.each_of({tile_.pass, tile_.pass}, [&](std::uint32_t i) { loaded[i] = values[i * group_.size()]; });
  }

  template <class T>
  HEADRACE_HD void fetch_values(const ColumnView& column) noexcept {
    const T* values = static_cast<const T*>(column.values) + column.offset + tile_.first;
    if constexpr (kFew) {
      T loaded[Rows]{};
      load(values, loaded);
      each([&](std::uint32_t i) { operand_[i] = widened(loaded[i]); });
    } else {
      each([&](std::uint32_t i) { operand_[i] = widened(values[i * group_.size()]); });
    }
  }

  HEADRACE_HD void fetch_integers(const ColumnView& column, Type type) noexcept {
    switch (type) {
      case Type::int8: fetch_values<std::int8_t>(column); break;
      case Type::uint8: fetch_values<std::uint8_t>(column); break;
      case Type::int16: fetch_values<std::int16_t>(column); break;
      case Type::uint16: fetch_values<std::uint16_t>(column); break;
      case Type::uint32: fetch_values<std::uint32_t>(column); break;
      case Type::int32:
      case Type::date32: fetch_values<std::int32_t>(column); break;
      default: fetch_values<std::int64_t>(column); break;
    }
  }

  /// The bits of the tile's rows, as flags.
  HEADRACE_HD void fetch_bits(const void* bitmap, std::int64_t first, Flags<Rows>& flags) const noexcept {
    const auto* bytes = static_cast<const std::uint8_t*>(bitmap);
    if constexpr (Group::kTeam == 1 && !kFew) {
      flags.set_bits(bytes, first, group_.size(), tile_.count);
    } else {
      std::uint8_t loaded[Rows]{};
      tile_.each_of({tile_.pass, tile_.pass},
                    [&](std::uint32_t i) { loaded[i] = bytes[(first + i * group_.size()) >> 3]; });
      each([&](std::uint32_t i) { flags.set(i, ((loaded[i] >> ((first + i * group_.size()) & 7)) & 1) != 0); });
    }
  }

  HEADRACE_HD void fetch_column(const ColumnView& column) noexcept {
    const std::int64_t first = column.offset + tile_.first;
    if (column.validity == nullptr) {
      operand_valid_.set_first(Rows);
    } else {
      fetch_bits(column.validity, first, operand_valid_);
    }
    switch (column.type.id) {
      case Type::boolean: {
        Flags<Rows> bits;
        bits.set_first(0);
        fetch_bits(column.values, first, bits);
        each([&](std::uint32_t i) { operand_[i] = bits[i] ? 1 : 0; });
        break;
      }
      case Type::float32: fetch_values<float>(column); break;
      case Type::float64: fetch_values<double>(column); break;
      case Type::decimal128: fetch_decimals(static_cast<const WideValue*>(column.values) + first); break;
      case Type::dictionary: fetch_integers(column, column.type.index); break;
      default: fetch_integers(column, column.type.id); break;
    }
  }

  HEADRACE_HD void fetch_decimals(const WideValue* values) noexcept {
    bool wide = false;
    const auto take = [&](std::uint32_t i, const WideValue& value) {
      operand_[i] = value.low;
      wide |= (value.high != value.low >> 63) & operand_valid_[i] & tile_.pass[i];
    };
    if constexpr (kFew) {
      WideValue loaded[Rows]{};
      load(values, loaded);
      each([&](std::uint32_t i) { take(i, loaded[i]); });
    } else {
      each([&](std::uint32_t i) { take(i, values[i * group_.size()]); });
    }
    fault(wide, Fault::wide_decimal);
  }

  const Group& group_;
  const ScanWork& work_;
  Slots<Rows>& slots_;
  const ColumnView* columns_;
  Tile<Group, Rows> tile_;
  std::int64_t operand_[Rows];
  Flags<Rows> operand_valid_;
};

}  // namespace headrace::fetch
