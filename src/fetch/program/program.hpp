#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/fetch/detail/column.hpp"

/// What the scan kernel runs: an accumulator machine whose instructions each work on a tile of rows. The accumulator
/// and the operand of a thread's rows are registers on CUDA and vectors of a core's cache on the CPU; a result that has
/// to wait goes to a slot.
namespace headrace::fetch {

enum class Op : std::uint8_t {
  load,
  save,  ///< To slot `index`.
  // The accumulator and an operand.
  add,
  subtract,
  multiply,
  divide,
  modulo,
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  both,
  either,
  // The accumulator alone.
  negate,
  is_null,
  is_in,  ///< One of `count` constants from `index` on; `flags` 1: or missing.
  to_float,
  to_float32,    ///< Rounded to what a float holds.
  to_integer,    ///< A float, half to even; within value to second.
  check,         ///< Within value to second.
  divide_round,  ///< By `value`, half away from zero.
  divide_floor,  ///< By `value`.
  year_of_days,
  year_of_stamp,  ///< `index`: a TimeUnit.
  /// The same by a YearTable: `value` its base, `second` its first year, `shift` and `factor`, and `count` starts from
  /// `index` on. `flags`: a TimeUnit, or kDayUnit, for stamps that are not in it.
  year_near,
  rank,  ///< The place of a dictionary's entry in order: table `index` of ranks, which has `value` of them.
  // What becomes of rows.
  filter,
  key,       ///< index = index * second + (acc - value); a missing value is second - 1. `flags` 1: within 32 bits.
  wide_key,  ///< The same with the place of acc in table `index`.
  intern,    ///< index = its place in table `index`.
  count_rows,
  count,
  sum,       ///< In 64 bits.
  sum_wide,  ///< In two words: of the low halves, without a sign, and of the high halves.
  sum_float,
  least,
  greatest,
  tally,  ///< Counts the rows of the tile.
  place,  ///< Gives each row its place in the result.
  // The first rows in an order, of which a bound is known.
  bound,   ///< Drops rows that come behind the bound by key `index` of the order; `count` 1: it is the last key.
  append,  ///< Gives each row a place behind those that have one.
  number,  ///< The row's place in the table's order.
  emit,    ///< Output `index`.
};

/// Which part of a decimal128 a load takes, as its `flags`.
enum class DecimalPart : std::uint8_t {
  whole,  ///< In 64 bits: a value that takes more is a fault.
  low,    ///< The low half, whatever the value is.
  high    ///< The high half.
};

/// How the accumulator is read.
enum class Kind : std::uint8_t { integer, natural, real };

enum class OperandSource : std::uint8_t { none, column, constant, missing, slot };

struct alignas(16) Instruction {
  Op op = Op::load;
  Kind kind = Kind::integer;
  OperandSource source = OperandSource::none;
  std::uint8_t flags = 0;
  std::uint16_t index = 0;  ///< A column of the program, slot, aggregate, table or output.
  std::uint16_t count = 0;
  Type type = Type::int64;  ///< The type of a column's values as they lie: of a dictionary its indices.
  std::uint8_t shift = 0;
  std::uint32_t factor = 0;
  std::int64_t value = 0;
  std::int64_t second = 0;
};
static_assert(sizeof(Instruction) == 32);

inline constexpr std::uint32_t kInstructionsMax = 128;
inline constexpr std::uint32_t kConstantsMax = 256;
inline constexpr std::uint32_t kYearStartsMax = 128;
inline constexpr std::uint8_t kDayUnit = 4;  ///< Beside the values of TimeUnit.
inline constexpr std::uint32_t kSlots = 6;
inline constexpr std::uint32_t kStatesMax = 32;
inline constexpr std::uint32_t kTablesMax = 8;
inline constexpr std::uint32_t kOutputsMax = 64;
inline constexpr std::uint32_t kRanksMax = 8;

/// One number of each group: 32-bit counts where blocks gather them, 64 bits elsewhere.
struct State {
  Op op = Op::count_rows;
  std::uint32_t local_word = 0;  ///< Where its values start in a block's memory, in 32-bit words.
  std::uint32_t block = 0;       ///< Where they start in the device's: `groups` times this, in 64-bit words.
};

/// Keys that have been given a place; the empty key's place is the one after the last.
struct KeyTable {
  std::uint64_t* keys = nullptr;
  std::uint64_t mask = 0;  ///< Places - 1, of a power of two.
};

struct Program {
  Instruction code[kInstructionsMax];
  std::int64_t constants[kConstantsMax];
  std::int64_t year_starts[kYearStartsMax];
  State states[kStatesMax];
  std::uint32_t code_count = 0;
  std::uint32_t state_count = 0;
  /// Copies of the states in a block's memory, a power of two; 0: none, states are those of the device.
  std::uint32_t copies = 0;
  /// Where there are no copies: how many groups a block has room for, those that it meets first, a power of two; 0:
  /// none.
  std::uint32_t held = 0;
  std::uint64_t groups = 0;
  std::uint32_t local_words = 0;
};

/// What may go wrong with a row, each a word that is then not 0.
enum class Fault : std::uint8_t { overflow, conversion, table_full, wide_decimal };
inline constexpr std::uint32_t kFaults = 4;

struct Output {
  std::int64_t* values = nullptr;
  std::uint8_t* valid = nullptr;
};

/// The place of a fragment among a scan's rows, which 32 bits count.
struct alignas(8) FragmentPlace {
  std::uint32_t rows = 0;
  std::uint32_t first_tile = 0;
};

/// Where a column of a fragment lies.
struct ColumnPlace {
  const std::byte* values = nullptr;       ///< The value of row 0; booleans: their bitmap.
  const std::uint8_t* validity = nullptr;  ///< A bitmap; null where no value is missing.
  std::int64_t first_bit = 0;              ///< Row 0 in the bitmaps.
};

[[nodiscard]] inline ColumnPlace place_of(const ColumnView& view) noexcept {
  const std::uint32_t bits = value_bits(view.type);
  return {.values = static_cast<const std::byte*>(view.values) + view.offset * (bits / 8),
          .validity = view.validity,
          .first_bit = view.offset};
}

struct OrderKey;
inline constexpr std::uint32_t kOrderKeysMax = 4;

/// A row that others are held against: those that come behind it in an order, or are equal, are not wanted.
struct OrderBound {
  bool there = false;
  bool missing[kOrderKeysMax] = {};  ///< Whether the row has no value, by key.
  std::uint64_t words[kOrderKeysMax] = {};
};

/// Arguments of the kernel.
struct ScanWork {
  const Program* program = nullptr;
  const FragmentPlace* fragments = nullptr;
  const ColumnPlace* columns = nullptr;  ///< [fragment][column of the program]
  std::uint32_t column_count = 0;        ///< The columns of the program.
  std::uint32_t first_tile = 0;
  std::uint32_t tiles = 0;            ///< Up to which, not how many.
  std::uint64_t* states = nullptr;    ///< Program::groups words for each state, twice as many for a wide sum.
  std::int64_t* tile_rows = nullptr;  ///< Rows of each tile that pass; then where they go.
  std::int64_t limit = 0;
  std::uint32_t* faults = nullptr;
  KeyTable tables[kTablesMax];
  const Output* outputs = nullptr;
  const std::int32_t* ranks[kRanksMax] = {};
  const OrderKey* order = nullptr;    ///< Keys, for a bound.
  std::uint64_t* appended = nullptr;  ///< Rows that have a place, whether or not there was one for them.
  OrderBound bound{};
};

inline constexpr std::uint32_t kTileRows = 1024;
inline constexpr std::uint32_t kScanThreads = 128;
/// 32-bit words of a block's memory for states: of shared memory on CUDA, where with the program beside it four blocks
/// fit a multiprocessor; of a core's second-level cache on the CPU.
inline constexpr std::uint32_t kBlockWords = 10'240;
inline constexpr std::uint32_t kCoreWords = 1U << 16;
/// What no key but one is: see KeyTable.
inline constexpr unsigned char kEmptyByte = 0xA5;
inline constexpr std::uint64_t kEmptyKey = 0xA5A5'A5A5'A5A5'A5A5;

[[nodiscard]] HEADRACE_HD constexpr std::uint32_t state_words(Op op) noexcept { return op == Op::sum_wide ? 2 : 1; }
[[nodiscard]] HEADRACE_HD constexpr std::uint32_t local_state_words(Op op) noexcept {
  return op == Op::count_rows || op == Op::count ? 1 : 2 * state_words(op);
}

/// For how many groups a block has memory, copies counted.
[[nodiscard]] HEADRACE_HD constexpr std::uint32_t local_groups(const Program& program) noexcept {
  return program.copies == 0 ? program.held : static_cast<std::uint32_t>(program.groups) * program.copies;
}

/// Floats in an order that integers without a sign have, and back. NaN is above all, and -0 is 0.
[[nodiscard]] HEADRACE_HD constexpr std::uint64_t ordered(std::int64_t bits, Kind kind) noexcept {
  constexpr std::uint64_t sign = std::uint64_t{1} << 63;
  const auto word = static_cast<std::uint64_t>(bits);
  if (kind == Kind::natural) return word;
  if (kind == Kind::integer) return word ^ sign;
  return bits < 0 ? ~word : word ^ sign;
}
[[nodiscard]] constexpr std::int64_t unordered(std::uint64_t word, Kind kind) noexcept {
  constexpr std::uint64_t sign = std::uint64_t{1} << 63;
  if (kind == Kind::natural) return static_cast<std::int64_t>(word);
  if (kind == Kind::integer) return static_cast<std::int64_t>(word ^ sign);
  return static_cast<std::int64_t>((word & sign) != 0 ? word ^ sign : ~word);
}

}  // namespace headrace::fetch
