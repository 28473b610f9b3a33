#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/fetch/detail/column.hpp"

/// The program that the scan kernel runs: an accumulator machine whose instructions each work on a tile of rows. The
/// accumulator and the operand of a thread's rows are registers on CUDA, and vectors in a core's cache on the CPU.
/// Slots hold intermediate results.
namespace headrace::fetch {

enum class Op : std::uint8_t {
  load,
  save,  ///< Saves the accumulator to slot `index`.
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
  is_in,  ///< Tests for `count` constants from `index` on; `flags` 1: and a missing one.
  to_float,
  to_float32,    ///< Rounds to float precision.
  to_integer,    ///< Rounds a float half to even; must be within `value` to `second`.
  check,         ///< Must be within `value` to `second`.
  divide_round,  ///< Divides by `value`, rounding half away from zero.
  divide_floor,  ///< Divides by `value`, rounding down.
  year_of_days,
  year_of_stamp,  ///< `index`: a TimeUnit.
  /// The same with a YearTable: `value` is its base, `second` its first year, with its `shift` and `factor`, and
  /// `count` starts from `index` on. `flags` is the TimeUnit, or kDayUnit, of stamps outside the table.
  year_near,
  rank,  ///< Replaces a dictionary index by its rank: table `index` of ranks, with `value` entries.
  // Filters, groups and outputs.
  filter,
  key,       ///< index = index * second + (acc - value); a missing value is second - 1. `flags` 1: 32 bits suffice.
  wide_key,  ///< The same, with the place of acc in table `index` as the digit.
  intern,    ///< Replaces the group number by its place in table `index`.
  count_rows,
  count,
  sum,       ///< A sum in 64 bits.
  sum_wide,  ///< A sum in two words: of the low halves, unsigned, and of the high halves.
  sum_float,
  least,
  greatest,
  tally,  ///< Counts the rows of the tile.
  place,  ///< Gives each row its place in the result.
  // For the first rows in an order with a known bound.
  bound,   ///< Drops rows that come after the bound by key `index` of the order. `count` 1: this is the last key.
  append,  ///< Gives each row the next free place.
  number,  ///< Loads the row's number in the table.
  emit,    ///< Writes output `index`.
};

/// Which part of a decimal128 a load takes, as its `flags`.
enum class DecimalPart : std::uint8_t {
  whole,  ///< In 64 bits; a larger value is a fault.
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
  Type type = Type::int64;  ///< The type of a column's stored values; for a dictionary, of its indices.
  std::uint8_t shift = 0;
  std::uint32_t factor = 0;
  std::int64_t value = 0;
  std::int64_t second = 0;
};
static_assert(sizeof(Instruction) == 32);

inline constexpr std::uint32_t kInstructionsMax = 128;
inline constexpr std::uint32_t kConstantsMax = 256;
inline constexpr std::uint32_t kYearStartsMax = 128;
inline constexpr std::uint8_t kDayUnit = 4;  ///< Follows the values of TimeUnit.
inline constexpr std::uint32_t kSlots = 6;
inline constexpr std::uint32_t kStatesMax = 32;
inline constexpr std::uint32_t kTablesMax = 8;
inline constexpr std::uint32_t kOutputsMax = 64;
inline constexpr std::uint32_t kRanksMax = 8;

/// One number per group. In block memory counts have 32 bits; all else has 64 bits.
struct State {
  Op op = Op::count_rows;
  std::uint32_t local_word = 0;  ///< Offset of its values in a block's memory, in 32-bit words.
  std::uint32_t block = 0;       ///< Offset in device memory: `groups` times this, in 64-bit words.
};

/// A hash table that gives keys their places. The place of the empty key is the one after the last.
struct KeyTable {
  std::uint64_t* keys = nullptr;
  std::uint64_t mask = 0;  ///< Number of places - 1; that number is a power of two.
};

struct Program {
  Instruction code[kInstructionsMax];
  std::int64_t constants[kConstantsMax];
  std::int64_t year_starts[kYearStartsMax];
  State states[kStatesMax];
  std::uint32_t code_count = 0;
  std::uint32_t state_count = 0;
  /// Copies of the states in a block's memory, a power of two; 0: only device memory has the states.
  std::uint32_t copies = 0;
  /// Without copies: how many groups, the first that it meets, a block holds in its memory; a power of two, or 0 for
  /// none.
  std::uint32_t held = 0;
  std::uint64_t groups = 0;
  std::uint32_t local_words = 0;
};

/// Errors that a row can cause. Each sets a word of ScanWork::faults.
enum class Fault : std::uint8_t { overflow, conversion, table_full, wide_decimal };
inline constexpr std::uint32_t kFaults = 4;

struct Output {
  std::int64_t* values = nullptr;
  std::uint8_t* valid = nullptr;
};

/// Position of a fragment among a scan's rows, which 32 bits can count.
struct alignas(8) FragmentPlace {
  std::uint32_t rows = 0;
  std::uint32_t first_tile = 0;
};

/// Address of a fragment's column.
struct ColumnPlace {
  const std::byte* values = nullptr;       ///< The value of row 0; for booleans, the bitmap.
  const std::uint8_t* validity = nullptr;  ///< A bitmap; null if no value is missing.
  std::int64_t first_bit = 0;              ///< Bit of row 0 in the bitmaps.
};

[[nodiscard]] inline ColumnPlace place_of(const ColumnView& view) noexcept {
  const std::uint32_t bits = value_bits(view.type);
  return {.values = static_cast<const std::byte*>(view.values) + view.offset * (bits / 8),
          .validity = view.validity,
          .first_bit = view.offset};
}

struct OrderKey;
inline constexpr std::uint32_t kOrderKeysMax = 4;

/// A row that others are compared with. Rows that come after it in the order, or are equal, are dropped.
struct OrderBound {
  bool there = false;
  bool missing[kOrderKeysMax] = {};  ///< By key: the row's value is missing.
  std::uint64_t words[kOrderKeysMax] = {};
};

/// Arguments of the kernel.
struct ScanWork {
  const Program* program = nullptr;
  const FragmentPlace* fragments = nullptr;
  const ColumnPlace* columns = nullptr;  ///< [fragment][column of the program]
  std::uint32_t column_count = 0;        ///< The columns of the program.
  std::uint32_t first_tile = 0;
  std::uint32_t tiles = 0;            ///< End of the range, not a count.
  std::uint64_t* states = nullptr;    ///< Program::groups words per state, twice as many for a wide sum.
  std::int64_t* tile_rows = nullptr;  ///< Passing rows of each tile; with outputs, the place of its first row.
  std::int64_t limit = 0;
  std::uint32_t* faults = nullptr;
  KeyTable tables[kTablesMax];
  const Output* outputs = nullptr;
  const std::int32_t* ranks[kRanksMax] = {};
  const OrderKey* order = nullptr;    ///< The keys of the bound.
  std::uint64_t* appended = nullptr;  ///< Rows appended so far, including those for which there was no room.
  OrderBound bound{};
};

inline constexpr std::uint32_t kTileRows = 1024;
inline constexpr std::uint32_t kScanThreads = 128;
/// 32-bit words of a block's memory for states. On CUDA this is shared memory: with the program, four blocks fit on a
/// multiprocessor. On the CPU it is a core's second-level cache.
inline constexpr std::uint32_t kBlockWords = 10'240;
inline constexpr std::uint32_t kCoreWords = 1U << 16;
/// Marks a free place. A single key has this value: see KeyTable.
inline constexpr unsigned char kEmptyByte = 0xA5;
inline constexpr std::uint64_t kEmptyKey = 0xA5A5'A5A5'A5A5'A5A5;

[[nodiscard]] HEADRACE_HD constexpr std::uint32_t state_words(Op op) noexcept { return op == Op::sum_wide ? 2 : 1; }
[[nodiscard]] HEADRACE_HD constexpr std::uint32_t local_state_words(Op op) noexcept {
  return op == Op::count_rows || op == Op::count ? 1 : 2 * state_words(op);
}

/// Number of groups that a block has memory for, counting each copy.
[[nodiscard]] HEADRACE_HD constexpr std::uint32_t local_groups(const Program& program) noexcept {
  return program.copies == 0 ? program.held : static_cast<std::uint32_t>(program.groups) * program.copies;
}

/// Maps a register to an unsigned integer of the same order, and back. Canonical floats order with NaN above all.
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
