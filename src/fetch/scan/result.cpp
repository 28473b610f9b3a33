#include "fetch/scan/result.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>

#include "fetch/program/rows.hpp"
#include "headrace/base/error.hpp"

namespace headrace::fetch {

namespace {

/// 10^38, the least number of 39 digits.
constexpr __int128 kDecimalEnd = __int128{10'000'000'000'000'000'000ULL} * 10'000'000'000'000'000'000ULL;

/// 10^scale, exact up to 10^27.
long double units_of(int scale) noexcept {
  long double units = 1;
  for (int i = 0; i < std::abs(scale); ++i) units *= 10;
  return scale < 0 ? 1 / units : units;
}

__int128 joined(std::int64_t high, std::uint64_t low) noexcept {
  return static_cast<__int128>(static_cast<unsigned __int128>(high) << 64 | low);
}

/// Reads the numbers of one group from the states of a device.
class GroupReader {
 public:
  GroupReader(const Program& program, std::span<const std::uint64_t> states, std::uint64_t group)
      : program_(program), states_(states), group_(group) {}

  [[nodiscard]] std::uint64_t word(std::uint32_t state, std::uint32_t second = 0) const {
    return states_[(program_.states[state].block + second) * program_.groups + group_];
  }
  [[nodiscard]] __int128 sum(std::uint32_t state, Kind kind) const {
    const auto low = static_cast<std::int64_t>(word(state));
    if (program_.states[state].op == Op::sum) return low;
    const std::uint64_t high = word(state, 1);
    const __int128 halves = kind == Kind::natural ? static_cast<__int128>(high) : static_cast<std::int64_t>(high);
    return halves * (__int128{1} << 32) + word(state);
  }

 private:
  const Program& program_;
  std::span<const std::uint64_t> states_;
  std::uint64_t group_;
};

/// The sum of wide decimals: an unsigned low word of 64 bits, and the multiple of 2^64 above it.
struct WideSum {
  __int128 upper;
  std::uint64_t lower;

  /// Whether it may have at most 38 digits; then it fits 128 bits.
  [[nodiscard]] bool fits() const noexcept { return upper <= kDecimalEnd >> 64 && upper >= -(kDecimalEnd >> 64) - 1; }
  [[nodiscard]] __int128 value() const noexcept { return joined(static_cast<std::int64_t>(upper), lower); }
  /// Throws UsageError if it has more than 38 digits.
  [[nodiscard]] __int128 checked() const {
    check_sum(fits() ? value() : kDecimalEnd);
    return value();
  }
  [[nodiscard]] double average(int scale, std::int64_t count) const {
    if (fits()) return average_of(value(), scale, count);
    const long double all = static_cast<long double>(upper) * 0x1p64L + static_cast<long double>(lower);
    return static_cast<double>(all / units_of(scale) / static_cast<long double>(count));
  }
};

/// Combines the sum of the high halves with the unsigned sum of the low halves.
WideSum wide_sum(const AggregatePlace& place, const GroupReader& group) {
  const __int128 high = group.sum(*place.high_state, Kind::integer);
  const __int128 low = group.sum(place.state, Kind::natural);
  return {.upper = high + (low >> 64), .lower = static_cast<std::uint64_t>(low)};
}

void append_aggregate(ColumnBuilder& to, const AggregatePlace& place, const GroupReader& group) {
  const auto count = static_cast<std::int64_t>(group.word(place.count));
  const Kind kind = kind_of(place.value.type);
  switch (place.function) {
    case Aggregate::count_rows:
    case Aggregate::count: return to.append(count, true);
    case Aggregate::min:
    case Aggregate::max: {
      std::int64_t value = count == 0 ? 0 : unordered(group.word(place.state), kind);
      if (place.order != nullptr && count > 0) value = place.order->codes.at(static_cast<std::size_t>(value));
      return to.append(value, count > 0);
    }
    case Aggregate::sum:
      if (kind == Kind::real) return to.append(static_cast<std::int64_t>(group.word(place.state)), count > 0);
      return to.append_wide(place.high_state ? wide_sum(place, group).checked() : group.sum(place.state, kind),
                            count > 0);
    case Aggregate::average: break;
  }
  double average = 0;
  if (count > 0 && kind == Kind::real) {
    average = as_double(static_cast<std::int64_t>(group.word(place.state))) / static_cast<double>(count);
  } else if (count > 0 && place.high_state) {
    average = wide_sum(place, group).average(place.value.type.scale, count);
  } else if (count > 0) {
    average = average_of(group.sum(place.state, kind), place.value.type.scale, count);
  }
  to.append(as_bits(average), count > 0);
}

/// Appends the keys of group `number`, by undoing the steps that computed the number.
void append_keys(std::vector<ColumnBuilder>& to, const Compiled& compiled, std::uint64_t number,
                 std::span<const std::vector<std::uint64_t>> tables) {
  const auto key_of = [&](const KeyStep& step, std::uint64_t place) {
    const std::vector<std::uint64_t>& table = tables[step.table];
    return place < table.size() ? table[place] : kEmptyKey;
  };
  for (auto step = compiled.steps.rbegin(); step != compiled.steps.rend(); ++step) {
    if (step->op == Op::intern) {
      number = key_of(*step, number);
      continue;
    }
    const std::uint64_t digit = number % step->domain;
    number /= step->domain;
    // A wide key reserves a digit for a missing value even if none can occur.
    const bool missing = digit == step->domain - 1 && (step->nullable || step->op == Op::wide_key);
    const std::uint64_t value =
        step->op == Op::wide_key ? key_of(*step, digit) : digit + static_cast<std::uint64_t>(step->least);
    to[step->key].append(missing ? 0 : static_cast<std::int64_t>(value), !missing);
  }
}

}  // namespace

ColumnBuilder::ColumnBuilder(const DataType& type, std::int64_t length) : bits_(value_bits(type)) {
  column_.type = type;
  column_.values.resize(static_cast<std::size_t>(values_bytes(type, length)));
  column_.validity.resize(static_cast<std::size_t>((length + 7) / 8));
}

void ColumnBuilder::append_wide(__int128 value, bool valid) {
  const auto at = static_cast<std::size_t>(column_.length++);
  if (!valid) {
    ++column_.null_count;
    return;  // the buffers are zero already
  }
  column_.validity[at / 8] |= static_cast<std::uint8_t>(1U << (at % 8));
  if (column_.type.id == Type::float32) {
    value = std::bit_cast<std::int32_t>(static_cast<float>(as_double(static_cast<std::int64_t>(value))));
  }
  std::byte* const values = column_.values.data();
  const auto low = static_cast<std::int64_t>(value);
  switch (bits_) {
    case 1: values[at / 8] |= std::byte{value != 0} << (at % 8); return;
    case 64: std::memcpy(values + at * sizeof(low), &low, sizeof(low)); return;
    case 128: std::memcpy(values + at * sizeof(value), &value, sizeof(value)); return;
    default: std::memcpy(values + at * (bits_ / 8), &low, bits_ / 8);
  }
}

ResultColumn ColumnBuilder::finish() {
  if (column_.null_count == 0) column_.validity.clear();
  return std::move(column_);
}

ResultColumn emitted_column(const DataType& type, std::span<const std::int64_t> values,
                            std::span<const std::int64_t> high, std::span<const std::uint8_t> valid) {
  ColumnBuilder builder(type, static_cast<std::int64_t>(values.size()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const __int128 value = high.empty() ? __int128{values[i]} : joined(high[i], static_cast<std::uint64_t>(values[i]));
    builder.append_wide(value, valid[i] != 0);
  }
  return builder.finish();
}

std::vector<ResultColumn> group_columns(const Compiled& compiled, std::span<const std::uint64_t> states,
                                        std::span<const std::vector<std::uint64_t>> tables) {
  const std::size_t keys = compiled.keys.size();
  const auto counts = states.first(compiled.program.groups);  // the first state counts rows
  // Without keys there is exactly one group, even if no row passes.
  const auto found = keys == 0 ? 1 : static_cast<std::int64_t>(counts.size()) - std::ranges::count(counts, 0U);
  std::vector<ColumnBuilder> builders;
  for (const Typed& key : compiled.keys) builders.emplace_back(key.type, found);
  for (const AggregatePlace& place : compiled.aggregates) builders.emplace_back(place.result, found);
  for (std::uint64_t number = 0; number < compiled.program.groups; ++number) {
    const GroupReader group(compiled.program, states, number);
    if (group.word(0) == 0 && keys != 0) continue;
    append_keys(builders, compiled, number, tables);
    for (std::size_t a = 0; a < compiled.aggregates.size(); ++a) {
      append_aggregate(builders[keys + a], compiled.aggregates[a], group);
    }
  }
  std::vector<ResultColumn> columns;
  for (ColumnBuilder& builder : builders) columns.push_back(builder.finish());
  return columns;
}

bool has_value(const ResultColumn& column, std::int64_t row) noexcept {
  const auto at = static_cast<std::size_t>(row);
  return column.validity.empty() || ((column.validity[at / 8] >> (at % 8)) & 1) != 0;
}

std::int64_t bits_at(const ResultColumn& column, std::int64_t row) noexcept {
  const auto at = static_cast<std::size_t>(row);
  if (column.type.id == Type::boolean) return std::to_integer<std::int64_t>(column.values[at / 8] >> (at % 8)) & 1;
  const std::size_t width = value_bits(column.type) / 8;
  const std::size_t bytes = std::min<std::size_t>(width, sizeof(std::int64_t));
  std::int64_t bits = 0;
  std::memcpy(&bits, column.values.data() + at * width, bytes);
  if (column.type.id == Type::float32) {
    return as_bits(static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits))));
  }
  const Type integer = column.type.id == Type::dictionary ? column.type.index : column.type.id;
  const bool natural = integer >= Type::uint8 && integer <= Type::uint32;
  const auto shift = static_cast<int>(64 - 8 * bytes);
  return natural || shift == 0 ? bits : static_cast<std::int64_t>(static_cast<std::uint64_t>(bits) << shift) >> shift;
}

__int128 wide_at(const ResultColumn& column, std::int64_t row) noexcept {
  __int128 value = 0;
  std::memcpy(&value, column.values.data() + static_cast<std::size_t>(row) * sizeof(value), sizeof(value));
  return value;
}

__int128 value_at(const ResultColumn& column, std::int64_t row) noexcept {
  if (!has_value(column, row)) return 0;
  return column.type.id == Type::decimal128 ? wide_at(column, row) : __int128{bits_at(column, row)};
}

void check_sum(__int128 sum) {
  if (sum < kDecimalEnd && sum > -kDecimalEnd) return;
  throw UsageError("a sum needs more than 38 digits, the most that a decimal128 holds; cast to double first");
}

double average_of(__int128 sum, int scale, std::int64_t count) {
  return static_cast<double>(static_cast<long double>(sum) / units_of(scale) / static_cast<long double>(count));
}

}  // namespace headrace::fetch
