#pragma once

#include <cstdint>

#include "fetch/scan/compute.hpp"
#include "fetch/scan/order_word.hpp"

/// The accumulator machine: one thread's rows of a tile, instruction after instruction.
namespace headrace::fetch {

template <class Group, std::uint32_t Rows>
class Machine : Compute<Group, Rows> {
 public:
  HEADRACE_HD Machine(const Group& group, const Program& program, const ScanWork& work, const States<Group>& states,
                      Slots<Rows>& slots, const TilePlace& place, std::uint32_t tile) noexcept
      : Base(group, program, work, slots, place), states_(states), tile_number_(tile) {
    each([&](std::uint32_t i) { index_.set(i, 0); });
  }

  HEADRACE_HD void run() noexcept {
    for (std::uint32_t at = 0; at < program_.code_count; ++at) {
      const Instruction code = program_.code[at];
      if (code.op == Op::load) {
        fetch(code, acc_, acc_valid_);
        continue;
      }
      typename Base::Values operand;  // local to this instruction, so that it keeps no registers between instructions
      if (code.source != OperandSource::none) fetch(code, operand.rows, operand.valid);
      // Tests the most frequent instructions first.
      if (code.op == Op::key) {
        key(code);
      } else if (code.op == Op::count_rows) {
        states_.count(group_, tile_, index_, code.index, {tile_.pass, tile_.pass});
      } else {
        step(code, operand);
      }
      // Threads of a CUDA block synchronise in later instructions, so only a CPU block may stop early.
      const bool drops = code.op == Op::bound || (code.op == Op::filter && code.flags == 0);
      if (Group::kTeam == 1 && drops && tile_.pass.none(tile_.count)) return;
    }
  }

 private:
  using Base = Compute<Group, Rows>;
  using Base::acc_;
  using Base::acc_valid_;
  using Base::arithmetic;
  using Base::compare;
  using Base::convert;
  using Base::counts;
  using Base::each;
  using Base::fault;
  using Base::fetch;
  using Base::group_;
  using Base::is_in;
  using Base::logic;
  using Base::map;
  using Base::program_;
  using Base::slots_;
  using Base::tile_;
  using Base::work_;

  HEADRACE_HD void key(const Instruction& code) noexcept {
    const auto domain = static_cast<std::uint64_t>(code.second);
    const auto digit_of = [&](std::uint32_t i) {
      return static_cast<std::uint64_t>(acc_[i]) - static_cast<std::uint64_t>(code.value);
    };
    // A value outside the range that the table states must not cause a write out of bounds.
    const auto check = [&] {
      bool outside = false;
      each([&](std::uint32_t i) { outside |= counts(i) & (digit_of(i) >= domain); });
      fault(outside, Fault::conversion);
    };
    if (code.flags == 0) {
      check();
      each([&](std::uint32_t i) {
        const std::uint64_t digit = digit_of(i);
        index_.set(i, index_[i] * domain + ((acc_valid_[i] & (digit < domain)) ? digit : domain - 1));
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
    // Only if a digit is too large, checks whether its row counts; this is rare.
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
  /// index = find(row, index) for passing rows; kNoPlace drops the row.
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

  /// Gives places in the table's order. All threads synchronise here, even those without a passing row.
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

  /// Whether any row of a core's tile may come before the bound by its first key, or be equal if more keys follow. In
  /// most tiles no row does, and vectors find that out much faster than which row does. Missing values never come
  /// before the bound.
  [[nodiscard]] HEADRACE_HD bool may_come_before(const OrderKey& key, std::uint64_t limit, bool last) const noexcept {
    const auto step = affine_word(key);
    if (!step.there || (last && limit == 0)) return true;
    const std::uint64_t most = limit - (last ? 1 : 0);
    std::uint32_t before = 0;
    each([&](std::uint32_t i) {
      before += ((static_cast<std::uint64_t>(acc_[i]) ^ step.flip) - step.less) <= most ? 1U : 0U;
    });
    return before != 0;
  }

  /// Compares rows with the bound key by key. A row's number stays 0 until a key decides.
  HEADRACE_HD void bound(const Instruction& code) noexcept {
    const OrderBound& bound = work_.bound;
    if (!bound.there) return;
    const OrderKey key = work_.order[code.index];
    const std::uint64_t limit = bound.words[code.index];
    const bool limit_missing = bound.missing[code.index];
    if (Group::kTeam == 1 && code.index == 0 && !limit_missing && !may_come_before(key, limit, code.count != 0)) {
      tile_.pass.set_first(0);
      return;
    }
    each([&](std::uint32_t i) {
      const bool missing = !acc_valid_[i];
      const std::uint64_t word = word_of(key, acc_[i], !missing);
      const bool behind = missing == limit_missing ? word > limit : missing;
      const bool equal = (missing == limit_missing) & (word == limit);
      const bool open = index_.low(i) == 0;
      tile_.pass.set(i, tile_.pass[i] & !(open & (behind | (equal & (code.count != 0)))));
      index_.set_low(i, open & equal ? 0 : 1);
    });
  }

  /// Appends in no particular order. Threads do not synchronise here, because few have a passing row.
  HEADRACE_HD void append() noexcept {
    std::uint64_t mine = 0;
    tile_.each_passing([&](std::uint32_t) { ++mine; });
    if (mine == 0) return;
    std::uint64_t next = group_.fetch_add_relaxed_on_device(*work_.appended, mine);
    each([&](std::uint32_t i) {
      const std::uint64_t at = next;
      next += tile_.pass[i] ? 1 : 0;
      index_.set(i, at);
      if (at >= static_cast<std::uint64_t>(work_.limit)) tile_.pass.set(i, false);
    });
  }

  HEADRACE_HD void number() noexcept {
    using Thread = Tile<Group, Rows>;
    const std::int64_t first = std::int64_t{tile_number_} * kTileRows + group_.rank() * Thread::kRun;
    each([&](std::uint32_t i) { acc_[i] = first + i / Thread::kRun * Thread::kRunStep + i % Thread::kRun; });
    acc_valid_.set_first(Rows);
  }

  HEADRACE_HD void emit(const Output& output) noexcept {
    tile_.each_passing([&](std::uint32_t i) {
      output.values[index_[i]] = acc_[i];
      output.valid[index_[i]] = acc_valid_[i] ? 1 : 0;
    });
  }

  HEADRACE_HD void step(const Instruction& code, const typename Base::Values& operand) noexcept {
    switch (code.op) {
      case Op::load:
      case Op::key:
      case Op::count_rows: break;  // run() handles these
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
      case Op::bound: bound(code); break;
      case Op::append: append(); break;
      case Op::number: number(); break;
      case Op::emit: emit(work_.outputs[code.index]); break;
    }
  }

  const States<Group>& states_;
  std::uint32_t tile_number_;
  GroupNumbers<Rows> index_;
};

}  // namespace headrace::fetch
