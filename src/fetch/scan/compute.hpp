#pragma once

#include <cmath>
#include <cstdint>

#include "fetch/program/calendar.hpp"
#include "fetch/scan/operand.hpp"

namespace headrace::fetch {

/// The computing half of the machine: the accumulator of a thread's rows, and the instructions that combine it with an
/// operand.
template <class Group, std::uint32_t Rows>
class Compute : protected Operand<Group, Rows> {
 protected:
  using Base = Operand<Group, Rows>;
  using Base::each;
  using Base::fault;
  using Base::tile_;
  using Base::work_;

  HEADRACE_HD Compute(const Group& group, const Program& program, const ScanWork& work, Slots<Rows>& slots,
                      const TilePlace& place) noexcept
      : Base(group, work, slots, place), program_(program) {
    acc_valid_.set_first(Rows);
  }

  struct Values {
    std::int64_t rows[Rows];
    Flags<Rows> valid;
  };

  /// Whether the result of row `i` matters: it is present and the row passes.
  [[nodiscard]] HEADRACE_HD bool counts(std::uint32_t i) const noexcept { return acc_valid_[i] & tile_.pass[i]; }

  /// acc = compute(acc, operand); missing if either is.
  template <class Function>
  HEADRACE_HD void combine(const Values& operand, const Function& compute) noexcept {
    each([&](std::uint32_t i) {
      acc_valid_.set(i, acc_valid_[i] & operand.valid[i]);
      acc_[i] = compute(acc_[i], operand.rows[i]);
    });
  }
  /// The same for integers, with a check for overflow.
  template <class Function>
  HEADRACE_HD void combine_checked(const Values& operand, const Function& compute) noexcept {
    bool any = false;
    each([&](std::uint32_t i) {
      bool over = false;
      acc_valid_.set(i, acc_valid_[i] & operand.valid[i]);
      acc_[i] = compute(acc_[i], operand.rows[i], over);
      any |= over & counts(i);
    });
    fault(any, Fault::overflow);
  }
  template <class Function>
  HEADRACE_HD void map(const Function& compute) noexcept {
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

  /// Three-valued logic: a side that decides the result does so even if the other one is missing.
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
    // The greatest 64-bit integer is not a float, so the test for 64 bits is: below 2^63.
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
    // A missing value may hold any index.
    map([&](std::int64_t a) {
      return static_cast<std::uint64_t>(a) < static_cast<std::uint64_t>(code.value) ? std::int64_t{ranks[a]} : 0;
    });
  }

  /// The unit is a template parameter, because division by a constant compiles to a multiplication.
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

  const Program& program_;
  std::int64_t acc_[Rows];
  Flags<Rows> acc_valid_;
};

}  // namespace headrace::fetch
