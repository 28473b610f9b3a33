#include "fetch/query/compiler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <string_view>

#include "fetch/query/lower.hpp"
#include "headrace/base/error.hpp"

namespace headrace::fetch {

namespace {

/// Most groups that are addressed directly in the device's memory. With more, most groups would be empty.
constexpr std::uint64_t kDirectMax = std::uint64_t{1} << 21;
constexpr std::uint64_t kNumbersMax = std::uint64_t{1} << 62;
/// Group numbers below this bound are computed in 32 bits.
constexpr std::uint64_t kNarrowMax = std::uint64_t{1} << 31;

class QueryCompiler {
 public:
  QueryCompiler(const TableView& table, const Query& query, const CompileOptions& options)
      : table_(table), query_(query), options_(options), lowering_(table, out_, options.year_tables) {
    out_.places = options.places;
  }

  Compiled compile() {
    if (query_.filter) compile_filter();
    if (query_.keys.empty() && query_.aggregates.empty()) {
      compile_values();
    } else {
      compile_groups();
    }
    return std::move(out_);
  }

 private:
  void compile_filter() {
    const Typed filter = lowering_.lower(*query_.filter);
    if (filter.type.id != Type::boolean) {
      throw UsageError(fmt::format("a filter must be a boolean, not {}", to_string(filter.type)));
    }
    const bool gathers = !query_.keys.empty() || !query_.aggregates.empty() || options_.bounded;
    lowering_.add({.op = Op::filter, .flags = static_cast<std::uint8_t>(gathers ? 0 : 1)});
    out_.filter_end = out_.program.code_count;
  }

  void compile_values() {
    if (query_.values.empty()) throw UsageError("a query needs values, keys or aggregates");
    for (const Order& by : query_.order) {
      if (by.value >= query_.values.size()) {
        throw UsageError(
            fmt::format("there is no value {} to order by: the query has {} values", by.value, query_.values.size()));
      }
      out_.order_ranks.push_back(ranks_of(table_, query_.values[by.value]));
    }
    if (options_.bounded) {
      compile_bound();
    } else {
      lowering_.add({.op = Op::place});
    }
    for (const Expression& value : query_.values) {
      const bool wide = is_wide_column(table_, value);
      out_.outputs.push_back({.output = out_.output_count, .wide = wide});
      if (wide) {
        out_.values.push_back(infer(table_, value));
        lowering_.lower_part(value, DecimalPart::low);
        emit();
        lowering_.lower_part(value, DecimalPart::high);
      } else {
        out_.values.push_back(lowering_.lower(value));
      }
      emit();
    }
    if (!options_.bounded) return;
    lowering_.add({.op = Op::number});
    emit();
  }

  /// Drops rows behind the bound, key by key. A wide decimal has two keys, in the order of make_wide_order_keys().
  void compile_bound() {
    std::uint16_t key = 0;
    for (std::size_t k = 0; k < query_.order.size(); ++k) {
      const Expression& value = query_.values[query_.order[k].value];
      const bool last = k + 1 == query_.order.size();
      if (is_wide_column(table_, value)) {
        lowering_.lower_part(value, DecimalPart::high);
        add_bound(key++, false);
        lowering_.lower_part(value, DecimalPart::low);
      } else {
        static_cast<void>(lowering_.lower(value));
      }
      add_bound(key++, last);
    }
    lowering_.add({.op = Op::append});
  }

  void add_bound(std::uint16_t key, bool last) {
    if (key == kOrderKeysMax) {
      throw UsageError(fmt::format("a bounded scan compares rows by at most {} keys", kOrderKeysMax));
    }
    lowering_.add({.op = Op::bound, .index = key, .count = static_cast<std::uint16_t>(last ? 1 : 0)});
  }

  void emit() {
    if (out_.output_count == kOutputsMax) {
      throw UsageError(
          fmt::format("a scan returns at most {} values per row (a wide decimal counts twice), and the query has {}",
                      kOutputsMax, query_.values.size()));
    }
    lowering_.add({.op = Op::emit, .index = static_cast<std::uint16_t>(out_.output_count++)});
  }

  void compile_groups() {
    if (!query_.values.empty()) throw UsageError("a query computes either values or groups, not both");
    if (!query_.order.empty()) throw UsageError("a scan can order rows, but not groups");
    if (query_.keys.size() > kKeysMax) {
      throw UsageError(fmt::format("a group-by takes at most {} keys, not {}", kKeysMax, query_.keys.size()));
    }
    std::uint64_t groups = 1;
    for (std::size_t k = 0; k < query_.keys.size(); ++k) groups = compile_key(static_cast<std::uint32_t>(k), groups);
    const auto rows = static_cast<std::uint64_t>(std::max<std::int64_t>(table_.rows(), 0));
    if (groups > kDirectMax || (groups > options_.local_words && groups / 16 > rows)) groups = intern();
    out_.program.groups = groups;
    static_cast<void>(add_state(Op::count_rows));
    lowering_.add({.op = Op::count_rows, .index = 0});
    for (const AggregateCall& call : query_.aggregates) compile_aggregate(call);
    out_.program.copies = local_copies(out_.program, options_);
    out_.program.held = held_groups(out_.program, options_);
    lay_out();
  }

  std::uint32_t add_table() {
    if (out_.tables == kTablesMax) throw UsageError("the keys of the group-by together have too many possible values");
    return out_.tables++;
  }

  /// Replaces the group numbers so far with places in a key table. Returns the new number of groups.
  std::uint64_t intern() {
    const std::uint32_t table = add_table();
    lowering_.add({.op = Op::intern, .index = static_cast<std::uint16_t>(table)});
    out_.steps.push_back({.op = Op::intern, .table = table});
    return out_.places + 1;
  }

  std::uint64_t compile_key(std::uint32_t number, std::uint64_t groups) {
    const Typed key = infer(table_, query_.keys[number]);
    out_.keys.push_back(key);
    KeyStep step{.key = number, .nullable = key.nullable};
    const std::uint64_t span =
        key.range ? static_cast<std::uint64_t>(key.range->greatest) - static_cast<std::uint64_t>(key.range->least)
                  : kNumbersMax;
    const bool direct = kind_of(key.type) != Kind::real && span < kNumbersMax / 4;
    step.op = direct ? Op::key : Op::wide_key;
    step.domain = direct ? span + (key.nullable ? 2 : 1) : out_.places + 2;
    if (step.domain > kNumbersMax / groups) groups = intern();
    if (step.domain > kNumbersMax / groups) {
      // Still too many: hashes this key as well, because its table has fewer places.
      step.op = Op::wide_key;
      step.domain = out_.places + 2;
    }
    static_cast<void>(lowering_.lower(query_.keys[number]));
    if (step.op == Op::key) {
      step.least = key.range->least;
      const bool narrow = groups * step.domain <= kNarrowMax;
      lowering_.add({.op = Op::key,
                     .flags = static_cast<std::uint8_t>(narrow ? 1 : 0),
                     .value = step.least,
                     .second = static_cast<std::int64_t>(step.domain)});
    } else {
      step.table = add_table();
      lowering_.add({.op = Op::wide_key, .kind = kind_of(key.type), .index = static_cast<std::uint16_t>(step.table)});
    }
    out_.steps.push_back(step);
    return groups * step.domain;
  }

  std::uint32_t add_state(Op op) {
    Program& program = out_.program;
    if (program.state_count == kStatesMax) throw UsageError("the query has too many aggregates");
    State& state = program.states[program.state_count];
    state.op = op;
    state.block = program.state_count == 0 ? 0
                                           : program.states[program.state_count - 1].block +
                                                 state_words(program.states[program.state_count - 1].op);
    return program.state_count++;
  }

  /// Counts the values in the accumulator, once per column however many aggregates use it.
  std::uint32_t count_state(const Expression& value) {
    const bool is_column = value.operation() == Operation::column;
    if (is_column && counted_.contains(value.column_number())) return counted_[value.column_number()];
    const std::uint32_t state = add_state(Op::count);
    lowering_.add({.op = Op::count, .index = static_cast<std::uint16_t>(state)});
    if (is_column) counted_[value.column_number()] = state;
    return state;
  }

  void compile_aggregate(const AggregateCall& call) {
    AggregatePlace place{.function = call.function};
    if (call.function == Aggregate::count_rows) {
      place.result = aggregate_type(call.function, {});
      out_.aggregates.push_back(place);
      return;
    }
    if (!call.value) throw UsageError("an aggregate other than count_rows needs a value");
    place.value = infer(table_, *call.value);
    place.result = aggregate_type(call.function, place.value.type);
    if (call.function == Aggregate::count && !place.value.nullable) {
      out_.aggregates.push_back(place);
      return;
    }
    const bool sums = call.function == Aggregate::sum || call.function == Aggregate::average;
    const bool wide = is_wide_column(table_, *call.value);
    if (call.function == Aggregate::count || (sums && wide && options_.wide_sums)) {
      lowering_.lower_presence(*call.value);
    } else {
      static_cast<void>(lowering_.lower(*call.value));
    }
    if (place.value.nullable) place.count = count_state(*call.value);
    if (sums && wide && options_.wide_sums) {
      place.state = add_sum(Kind::natural);
      lowering_.lower_part(*call.value, DecimalPart::high);
      place.high_state = add_sum(Kind::integer);
    } else if (call.function != Aggregate::count) {
      out_.narrow_sums |= sums && wide;
      place.order = lowering_.rank(*call.value);
      const Op op = op_of(call.function, place.value);
      place.state = add_state(op);
      lowering_.add({.op = op, .kind = kind_of(place.value.type), .index = static_cast<std::uint16_t>(place.state)});
    }
    out_.aggregates.push_back(place);
  }

  /// Adds a sum of the accumulator in two words.
  std::uint32_t add_sum(Kind kind) {
    const std::uint32_t state = add_state(Op::sum_wide);
    lowering_.add({.op = Op::sum_wide, .kind = kind, .index = static_cast<std::uint16_t>(state)});
    return state;
  }

  [[nodiscard]] Op op_of(Aggregate function, const Typed& value) const {
    if (function == Aggregate::min) return Op::least;
    if (function == Aggregate::max) return Op::greatest;
    if (is_float(value.type.id)) return Op::sum_float;
    if (!value.range || value.type.id == Type::uint64) return Op::sum_wide;
    // The sum of all rows stays within 62 bits.
    const std::int64_t bound = (std::int64_t{1} << 62) / std::max<std::int64_t>(table_.rows(), 1);
    return value.range->least >= -bound && value.range->greatest <= bound ? Op::sum : Op::sum_wide;
  }

  /// Lays out the states of a block, 64-bit words first.
  void lay_out() {
    Program& program = out_.program;
    if (program.copies == 0 && program.held == 0) return;
    const std::uint32_t each = local_groups(program);
    program.local_words = program.held;  // the numbers of the held groups come first
    for (const bool wide : {true, false}) {
      for (std::uint32_t s = 0; s < program.state_count; ++s) {
        const std::uint32_t words = local_state_words(program.states[s].op);
        if ((words > 1) != wide) continue;
        program.states[s].local_word = program.local_words;
        program.local_words += words * each;
      }
    }
  }

  const TableView& table_;
  const Query& query_;
  const CompileOptions& options_;
  Compiled out_{};
  Lowering lowering_;
  std::map<std::uint32_t, std::uint32_t> counted_;  ///< By column: the state that counts its values.
};

constexpr std::array<std::string_view, 45> kNames{
    "load",     "save",         "add",          "subtract",     "multiply",      "divide",        "modulo",
    "equal",    "not_equal",    "less",         "less_equal",   "greater",       "greater_equal", "and",
    "or",       "not",          "is_null",      "is_in",        "to_float",      "to_float32",    "to_integer",
    "check",    "divide_round", "divide_floor", "year_of_days", "year_of_stamp", "year_near",     "rank",
    "filter",   "key",          "wide_key",     "intern",       "count_rows",    "count",         "sum",
    "sum_wide", "sum_float",    "least",        "greatest",     "tally",         "place",         "bound",
    "append",   "number",       "emit"};
static_assert(kNames.size() == static_cast<std::size_t>(Op::emit) + 1);

}  // namespace

DataType aggregate_type(Aggregate function, const DataType& value) {
  const DataType int64{.id = Type::int64};
  const DataType float64{.id = Type::float64};
  if (function == Aggregate::count_rows || function == Aggregate::count) return int64;
  if (function == Aggregate::min || function == Aggregate::max) return value;
  if (!is_number(value.id) && value.id != Type::boolean) {
    throw UsageError(
        fmt::format("{} takes numbers, not {}", function == Aggregate::sum ? "a sum" : "an average", to_string(value)));
  }
  if (function == Aggregate::average || is_float(value.id)) return float64;
  return {
      .id = Type::decimal128, .precision = 38, .scale = value.id == Type::decimal128 ? value.scale : std::int8_t{0}};
}

std::uint32_t held_groups(const Program& program, const CompileOptions& options) noexcept {
  if (!options.holds_groups || program.copies > 0 || program.groups >= kNarrowMax) return 0;
  std::uint32_t words = 1;  // the group's number
  for (std::uint32_t s = 0; s < program.state_count; ++s) words += local_state_words(program.states[s].op);
  // Rounds down to an even number, so that the states start at a 64-bit boundary.
  const std::uint32_t fitting = std::bit_floor(options.local_words / words);
  return fitting < 2 ? 0 : fitting;
}

std::uint32_t local_copies(const Program& program, const CompileOptions& options) noexcept {
  std::uint64_t words = 0;
  for (std::uint32_t s = 0; s < program.state_count; ++s) words += local_state_words(program.states[s].op);
  const std::uint32_t most = words == program.state_count ? options.count_copies_max : options.copies_max;
  if (words == 0) return most;
  if (program.groups > options.local_words / words) return 0;
  const std::uint64_t fitting = options.local_words / (words * program.groups);
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(std::bit_floor(fitting), most));
}

Compiled compile(const TableView& table, const Query& query, const CompileOptions& options) {
  return QueryCompiler(table, query, options).compile();
}

std::string to_string(const Program& program, const std::vector<std::string>& columns) {
  std::string text;
  for (std::uint32_t i = 0; i < program.code_count; ++i) {
    const Instruction& code = program.code[i];
    text += fmt::format("  {}", kNames[static_cast<std::size_t>(code.op)]);
    switch (code.source) {
      case OperandSource::none: break;
      case OperandSource::column:
        text += " " + columns[code.index];
        if (code.op == Op::load && code.flags == static_cast<std::uint8_t>(DecimalPart::low)) text += ", low half";
        if (code.op == Op::load && code.flags == static_cast<std::uint8_t>(DecimalPart::high)) text += ", high half";
        break;
      case OperandSource::constant:
        text += code.kind == Kind::real ? fmt::format(" {}", std::bit_cast<double>(code.value))
                                        : fmt::format(" {}", code.value);
        break;
      case OperandSource::missing: text += " null"; break;
      case OperandSource::slot: text += fmt::format(" slot {}", code.index); break;
    }
    if (code.op == Op::save) text += fmt::format(" slot {}", code.index);
    if (code.op == Op::key) text += fmt::format(" from {}, {} values", code.value, code.second);
    text += '\n';
  }
  return text;
}

}  // namespace headrace::fetch
