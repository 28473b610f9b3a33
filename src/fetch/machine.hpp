#pragma once

#include <cmath>
#include <cstdint>

#include "fetch/calendar.hpp"
#include "fetch/operand.hpp"

/// The accumulator machine: one thread's rows of a tile, instruction after instruction.
namespace headrace::fetch {

template <class Group, std::uint32_t Rows>
class Machine : Operand<Group, Rows> {
 public:
  HEADRACE_HD Machine(const Group& group, const Program& program, const ScanWork& work, const States<Group>& states,
                      Slots<Rows>& slots, const TilePlace& place, std::uint32_t tile) noexcept
      : Base(group, work, slots, place), program_(program), states_(states), tile_number_(tile) {
    each([&](std::uint32_t i) { index_.set(i, 0); });
    acc_valid_.set_first(Rows);
  }

  HEADRACE_HD void run() noexcept {
    for (std::uint32_t at = 0; at < program_.code_count; ++at) {
      const Instruction code = program_.code[at];
      if (code.op == Op::load) {
        fetch(code, acc_, acc_valid_);
        continue;
      }
      Values operand;  // of this instruction alone: no registers are kept for it in between
      if (code.source != OperandSource::none) fetch(code, operand.rows, operand.valid);
      // Those that there is most of are asked for first.
      if (code.op == Op::key) {
        key(code);
      } else if (code.op == Op::count_rows) {
        states_.count(group_, tile_, index_, code.index, {tile_.pass, tile_.pass});
      } else {
        step(code, operand);
      }
      // Threads of a CUDA block meet in later instructions; a CPU's block is alone.
      if (Group::kTeam == 1 && code.op == Op::filter && tile_.pass.none(tile_.count) && code.flags == 0) return;
    }
  }

 private:
  using Base = Operand<Group, Rows>;
  using Base::each;
  using Base::fault;
  using Base::fetch;
  using Base::group_;
  using Base::slots_;
  using Base::tile_;
  using Base::work_;

  struct Values {
    std::int64_t rows[Rows];
    Flags<Rows> valid;
  };

  /// Whether what row `i` computes counts.
  [[nodiscard]] HEADRACE_HD bool counts(std::uint32_t i) const noexcept { return acc_valid_[i] & tile_.pass[i]; }

  /// acc = compute(acc, operand), missing where one of them is.
  template <class Compute>
  HEADRACE_HD void combine(const Values& operand, const Compute& compute) noexcept {
    each([&](std::uint32_t i) {
      acc_valid_.set(i, acc_valid_[i] & operand.valid[i]);
      acc_[i] = compute(acc_[i], operand.rows[i]);
    });
  }
  /// The same for integers, with overflow.
  template <class Compute>
  HEADRACE_HD void combine_checked(const Values& operand, const Compute& compute) noexcept {
    bool any = false;
    each([&](std::uint32_t i) {
      bool over = false;
      acc_valid_.set(i, acc_valid_[i] & operand.valid[i]);
      acc_[i] = compute(acc_[i], operand.rows[i], over);
      any |= over & counts(i);
    });
    fault(any, Fault::overflow);
  }
  template <class Compute>
  HEADRACE_HD void map(const Compute& compute) noexcept {
    each([&](std::uint32_t i) { acc_[i] = compute(acc_[i]); });
  }

  HEADRACE_HD void arithmetic(const Instruction& code, const Values& operand) noexcept {
    using Word = std::int64_t;
    if (code.kind == Kind::real) {
      switch (code.op) {
        case Op::add: return combine(operand, [](Word a, Word b) { return as_bits(as_double(a) + as_double(b)); });
        case Op::subtract: return combine(operand, [](Word a, Word b) { return as_bits(as_double(a) - as_double(b)); });
        case Op::multiply: return combine(operand, [](Word a, Word b) { return as_bits(as_double(a) * as_double(b)); });
        case Op::divide: return combine(operand, [](Word a, Word b) { return as_bits(as_double(a) / as_double(b)); });
        default: return combine(operand, [](Word a, Word b) { return as_bits(fmod(as_double(a), as_double(b))); });
      }
    }
    switch (code.op) {
      case Op::add: return combine_checked(operand, [](Word a, Word b, bool& over) { return fetch::add(a, b, over); });
      case Op::subtract:
        return combine_checked(operand, [](Word a, Word b, bool& over) { return fetch::subtract(a, b, over); });
      case Op::multiply:
        return combine_checked(operand, [](Word a, Word b, bool& over) { return fetch::multiply(a, b, over); });
      default:
        combine(operand, [](Word a, Word b) { return b == 0 || b == -1 ? 0 : a % b; });
        each([&](std::uint32_t i) { acc_valid_.set(i, acc_valid_[i] && operand.rows[i] != 0); });
    }
  }

  HEADRACE_HD void compare(const Instruction& code, const Values& operand) noexcept {
    const Kind kind = code.kind;
    using Word = std::int64_t;
    switch (code.op) {
      case Op::equal: return combine(operand, [&](Word a, Word b) { return Word{same(a, b, kind)}; });
      case Op::not_equal: return combine(operand, [&](Word a, Word b) { return Word{!same(a, b, kind)}; });
      case Op::less: return combine(operand, [&](Word a, Word b) { return Word{less_than(a, b, kind)}; });
      case Op::less_equal: return combine(operand, [&](Word a, Word b) { return Word{!less_than(b, a, kind)}; });
      case Op::greater: return combine(operand, [&](Word a, Word b) { return Word{less_than(b, a, kind)}; });
      default: return combine(operand, [&](Word a, Word b) { return Word{!less_than(a, b, kind)}; });
    }
  }

  /// Three-valued: a side that decides does so whether or not the other is missing.
  HEADRACE_HD void logic(bool both, const Values& operand) noexcept {
    each([&](std::uint32_t i) {
      const bool decides = !both;
      const bool left = acc_valid_[i] & ((acc_[i] != 0) == decides);
      const bool right = operand.valid[i] & ((operand.rows[i] != 0) == decides);
      acc_valid_.set(i, left | right | (acc_valid_[i] & operand.valid[i]));
      acc_[i] = (left | right) == decides ? 1 : 0;
    });
  }

  HEADRACE_HD void is_in(const Instruction& code) noexcept {
    each([&](std::uint32_t i) {
      bool found = false;
      for (std::uint32_t c = 0; c < code.count; ++c) {
        found |= same(acc_[i], program_.constants[code.index + c], code.kind);
      }
      acc_[i] = found ? 1 : 0;
      acc_valid_.set(i, acc_valid_[i] & (found | (code.flags == 0)));
    });
  }

  HEADRACE_HD void check(const Instruction& code) noexcept {
    bool outside = false;
    each([&](std::uint32_t i) {
      const bool natural = code.kind == Kind::natural;
      outside |= counts(i) & (natural ? acc_[i] < 0 : (acc_[i] < code.value) | (acc_[i] > code.second));
    });
    fault(outside, Fault::conversion);
  }

  HEADRACE_HD void to_integer(const Instruction& code) noexcept {
    // The upper bound of 64 bits is no float: what is less than 2^63 fits.
    const auto least = static_cast<double>(code.value);
    constexpr double above = 9223372036854775808.0;
    const auto greatest = static_cast<double>(code.second);
    const bool open = code.second == INT64_MAX;
    bool outside = false;
    each([&](std::uint32_t i) {
      const double value = rint(as_double(acc_[i]));
      const bool fits = (value >= least) & (open ? value < above : value <= greatest);
      outside |= counts(i) & !fits;
      acc_[i] = static_cast<std::int64_t>(fits ? value : 0.0);
    });
    fault(outside, Fault::conversion);
  }

  HEADRACE_HD void convert(const Instruction& code) noexcept {
    using Word = std::int64_t;
    switch (code.op) {
      case Op::to_float:
        if (code.kind == Kind::natural) {
          return map([](Word a) { return as_bits(static_cast<double>(static_cast<std::uint64_t>(a))); });
        }
        return map([](Word a) { return as_bits(static_cast<double>(a)); });
      case Op::to_float32:
        return map([](Word a) { return as_bits(static_cast<double>(static_cast<float>(as_double(a)))); });
      case Op::to_integer: return to_integer(code);
      case Op::check: return check(code);
      case Op::divide_round: return map([&](Word a) { return round_divide(a, code.value); });
      case Op::divide_floor: return map([&](Word a) { return floor_divide(a, code.value); });
      case Op::year_of_days: return map([](Word a) { return year_of(a); });
      case Op::rank: return rank(code);
      case Op::year_near: return year_near(code);
      default: return year(static_cast<TimeUnit>(code.index));
    }
  }

  HEADRACE_HD void rank(const Instruction& code) noexcept {
    const std::int32_t* const ranks = work_.ranks[code.index];
    // What lies where there is no value may be any index.
    map([&](std::int64_t a) {
      return static_cast<std::uint64_t>(a) < static_cast<std::uint64_t>(code.value) ? std::int64_t{ranks[a]} : 0;
    });
  }

  /// A divisor that the compiler knows costs a multiplication.
  template <TimeUnit Unit>
  HEADRACE_HD void year_in() noexcept {
    map([](std::int64_t a) { return year_of_stamp<Unit>(a); });
  }
  HEADRACE_HD void year(TimeUnit unit) noexcept {
    switch (unit) {
      case TimeUnit::second: return year_in<TimeUnit::second>();
      case TimeUnit::millisecond: return year_in<TimeUnit::millisecond>();
      case TimeUnit::microsecond: return year_in<TimeUnit::microsecond>();
      case TimeUnit::nanosecond: return year_in<TimeUnit::nanosecond>();
    }
  }

  HEADRACE_HD void year_near(const Instruction& code) noexcept {
    const std::int64_t* const starts = program_.year_starts + code.index;
    const auto since = [&](std::uint32_t i) {
      return static_cast<std::uint64_t>(acc_[i]) - static_cast<std::uint64_t>(code.value);
    };
    std::uint32_t above = 0;
    std::uint32_t most = 0;
    each([&](std::uint32_t i) {
      const std::uint32_t near = near_year(since(i), code.shift, code.factor);
      above |= static_cast<std::uint32_t>(since(i) >> 32);
      most = greater(most, near);
    });
    if (above >> code.shift != 0 || most >= code.count) {
      return code.flags == kDayUnit ? map([](std::int64_t a) { return year_of(a); })
                                    : year(static_cast<TimeUnit>(code.flags));
    }
    each([&](std::uint32_t i) {
      const std::uint32_t near = near_year(since(i), code.shift, code.factor);
      acc_[i] = code.second + near + (acc_[i] >= starts[near] ? 1 : 0);
    });
  }

  HEADRACE_HD void key(const Instruction& code) noexcept {
    const auto domain = static_cast<std::uint64_t>(code.second);
    const auto digit_of = [&](std::uint32_t i) {
      return static_cast<std::uint64_t>(acc_[i]) - static_cast<std::uint64_t>(code.value);
    };
    // A value outside the range that the table claims must not write elsewhere.
    const auto check = [&] {
      bool outside = false;
      each([&](std::uint32_t i) { outside |= counts(i) & (digit_of(i) >= domain); });
      fault(outside, Fault::conversion);
    };
    if (code.flags == 0) {
      check();
      each([&](std::uint32_t i) {
        const std::uint64_t digit = digit_of(i);
        index_.set(i, index_[i] * domain + (acc_valid_[i] & (digit < domain) ? digit : domain - 1));
      });
      return;
    }
    const auto narrow = static_cast<std::uint32_t>(domain);
    std::uint32_t above = 0;
    std::uint32_t most = 0;
    each([&](std::uint32_t i) {
      const std::uint64_t digit = digit_of(i);
      const auto low = static_cast<std::uint32_t>(digit);
      above |= static_cast<std::uint32_t>(digit >> 32);
      most = greater(most, low);
      index_.set_low(i, index_.low(i) * narrow + (acc_valid_[i] ? lesser(low, narrow - 1) : narrow - 1));
    });
    // Whether a row that counts is among those of a digit that is too large is seldom asked.
    if (above != 0 || most >= narrow) check();
  }

  HEADRACE_HD void wide_key(const Instruction& code) noexcept {
    const KeyTable& table = work_.tables[code.index];
    const std::uint64_t domain = table.mask + 3;
    const RowCopy<std::int64_t, Rows> values(acc_);
    find_places([&](std::uint32_t i, std::uint64_t number) -> std::uint64_t {
      std::uint64_t place = domain - 1;
      if (acc_valid_[i]) place = place_of(group_, table, static_cast<std::uint64_t>(canonical(values[i], code.kind)));
      return place == kNoPlace ? kNoPlace : number * domain + place;
    });
  }
  HEADRACE_HD void intern(const Instruction& code) noexcept {
    find_places(
        [&](std::uint32_t /*i*/, std::uint64_t number) { return place_of(group_, work_.tables[code.index], number); });
  }
  /// index = find(row, index), where the row passes; kNoPlace loses it.
  template <class Find>
  HEADRACE_HD void find_places(const Find& find) noexcept {
    std::uint64_t found[Rows];
    each([&](std::uint32_t i) { found[i] = index_[i]; });
    bool full = false;
    tile_.each_in_turn({tile_.pass, tile_.pass}, [&](std::uint32_t i) {
      found[i] = find(i, found[i]);
      if (found[i] != kNoPlace) return;
      tile_.pass.set(i, false);
      full = true;
    });
    each([&](std::uint32_t i) { index_.set(i, found[i]); });
    fault(full, Fault::table_full);
  }

  HEADRACE_HD void tally() noexcept {
    std::uint32_t mine = 0;
    tile_.each_passing([&](std::uint32_t) { ++mine; });
    const std::uint32_t all = group_.sum(mine);
    if (group_.rank() == 0) work_.tile_rows[tile_number_] = all;
  }

  /// In the table's order. All threads meet here, whether or not a row of theirs passes.
  HEADRACE_HD void place() noexcept {
    auto next = static_cast<std::uint64_t>(work_.tile_rows[tile_number_]);
    const auto place_row = [&](std::uint32_t i) {
      const std::uint64_t at = next;
      next += tile_.pass[i] ? 1 : 0;
      index_.set(i, at);
      if (at >= static_cast<std::uint64_t>(work_.limit)) tile_.pass.set(i, false);
    };
    if constexpr (!Base::kFew) {
      each(place_row);
    } else {
      std::uint64_t base = next;
      for (std::uint32_t run = 0; run < Base::kRuns; ++run) {
        std::uint32_t mine = 0;
        each([&](std::uint32_t i) { mine += i / Base::kRun == run && tile_.pass[i] ? 1 : 0; });
        std::uint32_t all = 0;
        next = base + group_.sum_before(mine, all);
        base += all;
        each([&](std::uint32_t i) {
          if (i / Base::kRun == run) place_row(i);
        });
      }
    }
  }

  HEADRACE_HD void emit(const Output& output) noexcept {
    tile_.each_passing([&](std::uint32_t i) {
      output.values[index_[i]] = acc_[i];
      output.valid[index_[i]] = acc_valid_[i] ? 1 : 0;
    });
  }

  HEADRACE_HD void step(const Instruction& code, const Values& operand) noexcept {
    switch (code.op) {
      case Op::load:
      case Op::key:
      case Op::count_rows: break;  // by run()
      case Op::save:
        each([&](std::uint32_t i) { slots_.values[code.index][i] = acc_[i]; });
        slots_.valid[code.index] = acc_valid_;
        break;
      case Op::add:
      case Op::subtract:
      case Op::multiply:
      case Op::divide:
      case Op::modulo: arithmetic(code, operand); break;
      case Op::equal:
      case Op::not_equal:
      case Op::less:
      case Op::less_equal:
      case Op::greater:
      case Op::greater_equal: compare(code, operand); break;
      case Op::both: logic(true, operand); break;
      case Op::either: logic(false, operand); break;
      case Op::negate: map([](std::int64_t a) { return std::int64_t{a == 0}; }); break;
      case Op::is_null:
        each([&](std::uint32_t i) { acc_[i] = acc_valid_[i] ? 0 : 1; });
        acc_valid_.set_first(Rows);
        break;
      case Op::is_in: is_in(code); break;
      case Op::to_float:
      case Op::to_float32:
      case Op::to_integer:
      case Op::check:
      case Op::divide_round:
      case Op::divide_floor:
      case Op::year_of_days:
      case Op::year_of_stamp:
      case Op::year_near:
      case Op::rank: convert(code); break;
      case Op::filter:
        each([&](std::uint32_t i) { tile_.pass.set(i, tile_.pass[i] & acc_valid_[i] & (acc_[i] != 0)); });
        break;
      case Op::wide_key: wide_key(code); break;
      case Op::intern: intern(code); break;
      case Op::count: states_.count(group_, tile_, index_, code.index, {tile_.pass, acc_valid_}); break;
      case Op::sum:
      case Op::sum_wide:
      case Op::sum_float:
      case Op::least:
      case Op::greatest: states_.gather(group_, tile_, index_, code, acc_, {tile_.pass, acc_valid_}); break;
      case Op::tally: tally(); break;
      case Op::place: place(); break;
      case Op::emit: emit(work_.outputs[code.index]); break;
    }
  }

  const Program& program_;
  const States<Group>& states_;
  std::uint32_t tile_number_;
  std::int64_t acc_[Rows];
  GroupNumbers<Rows> index_;
  Flags<Rows> acc_valid_;
};

}  // namespace headrace::fetch
