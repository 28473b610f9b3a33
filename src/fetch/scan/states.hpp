#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "fetch/program/rows.hpp"
#include "fetch/scan/block_memory.hpp"
#include "fetch/scan/group_numbers.hpp"
#include "fetch/scan/tile.hpp"

/// Aggregates groups. If all groups fit in a block's memory, the block keeps several copies, so that threads rarely
/// conflict. Otherwise the block holds the first groups that it meets, and the others go to device memory. At its end,
/// a block adds what it gathered to device memory.
namespace headrace::fetch {

template <std::uint32_t Words>
struct LocalStates {
  alignas(8) std::byte bytes[Words * sizeof(std::uint32_t)];
};

template <class Group>
HEADRACE_HD void merge_extreme(const Group& group, std::uint64_t& word, std::uint64_t value, bool least) noexcept {
  std::uint64_t held = group.load_relaxed(word);
  while (least ? value < held : value > held) {
    const std::uint64_t before = group.compare_exchange_relaxed_on_device(word, held, value);
    if (before == held) return;
    held = before;
  }
}

template <class Group>
HEADRACE_HD void add_in_block(const Group& group, std::uint32_t& word, std::uint32_t value) noexcept {
  static_cast<void>(BlockMemory<Group>::add(group, word, value));
}
/// Adds in halves, because a block's memory has no 64-bit addition. The thread whose addition wraps the low half adds
/// the carry.
template <class Group>
HEADRACE_HD void add_in_block(const Group& group, std::uint64_t& word, std::uint64_t value) noexcept {
  auto* const halves = reinterpret_cast<std::uint32_t*>(&word);
  const auto low = static_cast<std::uint32_t>(value);
  const std::uint32_t before = BlockMemory<Group>::add(group, halves[0], low);
  const std::uint32_t high = static_cast<std::uint32_t>(value >> 32) + (before + low < low ? 1 : 0);
  if (high != 0) static_cast<void>(BlockMemory<Group>::add(group, halves[1], high));
}

/// Which threads share a word: only this thread, its block, or the whole device.
enum class Shared : std::uint8_t { no, block, device };

template <class T, class Group>
HEADRACE_HD void add_to(const Group& group, T& word, T value, Shared shared) noexcept {
  if (shared == Shared::no) {
    word += value;
    return;
  }
  if constexpr (std::is_integral_v<T> && Group::kTeam > 1) {
    if (shared == Shared::block) return add_in_block(group, word, value);
  }
  static_cast<void>(group.fetch_add_relaxed_on_device(word, value));
}

/// Aggregates one value into a group: `low` is the word of the state, `high` the second word of a wide sum.
template <Op Kept, class Group>
HEADRACE_HD void take(const Group& group, Kind kind, std::uint64_t* low, std::uint64_t* high, std::int64_t value,
                      Shared shared) noexcept {
  if constexpr (Kept == Op::sum) {
    add_to(group, *low, static_cast<std::uint64_t>(value), shared);
  } else if constexpr (Kept == Op::sum_wide) {
    const std::int64_t upper =
        kind == Kind::natural ? static_cast<std::int64_t>(static_cast<std::uint64_t>(value) >> 32) : value >> 32;
    add_to(group, *low, static_cast<std::uint64_t>(value) & 0xFFFF'FFFF, shared);
    add_to(group, *high, static_cast<std::uint64_t>(upper), shared);
  } else if constexpr (Kept == Op::sum_float) {
    add_to(group, *reinterpret_cast<double*>(low), as_double(value), shared);
  } else {
    constexpr bool kLeast = Kept == Op::least;
    const std::uint64_t word = ordered(canonical(value, kind), kind);
    if (shared != Shared::no) {
      merge_extreme(group, *low, word, kLeast);
    } else if (kLeast ? word < *low : word > *low) {
      *low = word;
    }
  }
}

template <class Group>
class States {
 public:
  /// Every thread of the block must call the constructor, and flush().
  HEADRACE_HD States(const Group& group, const Program& program, const ScanWork& work) noexcept
      : program_(program),
        work_(work),
        words_(reinterpret_cast<std::uint32_t*>(
            group.template shared<LocalStates<Group::kTeam == 1 ? kCoreWords : kBlockWords>>().bytes)),
        own_(program.copies >= group.size()) {
    for (std::uint32_t word = group.rank(); word < program.held; word += group.size()) words_[word] = kNoGroup;
    for (std::uint32_t s = 0; s < program.state_count; ++s) {
      const State& state = program.states[s];
      const std::uint32_t value = state.op == Op::least ? 0xFFFF'FFFF : 0;
      const std::uint32_t end = state.local_word + local_size(state);
      for (std::uint32_t word = state.local_word + group.rank(); word < end; word += group.size()) {
        words_[word] = value;
      }
    }
  }

  /// Counts the rows of a tile in their groups: all passing rows, or only those with a value.
  template <std::uint32_t Rows>
  HEADRACE_HD void count(const Group& group, const Tile<Group, Rows>& tile, const GroupNumbers<Rows>& index,
                         std::uint32_t number, const BothFlags<Rows>& wanted) const noexcept {
    const State& state = program_.states[number];
    std::uint32_t* const here = words_ + state.local_word;
    if (program_.copies == 0) {
      std::uint64_t* const words = work_.states + state.block * program_.groups;
      const auto add_far = [&](std::uint32_t i) { add_to(group, words[index[i]], std::uint64_t{1}, Shared::device); };
      if constexpr (Flags<Rows>::kSmall) {
        // Nearly all groups have a place already, so it issues the loads for all rows before it waits for one.
        std::uint32_t seen[Rows];
        tile.each([&](std::uint32_t i) { seen[i] = seen_in_block(group, index[i]); });
        tile.each([&](std::uint32_t i) {
          if (!wanted[i]) return;
          const std::uint32_t place = place_in_block(group, index[i], seen[i]);
          place == kNoGroup ? add_far(i) : add_to(group, here[place], 1U, Shared::block);
        });
      } else {
        tile.each_of(wanted, add_far);
      }
      return;
    }
    std::uint32_t* const copy = here + first_copy(group);
    const auto add = [&](Shared shared) {
      tile.each_of(wanted, [&](std::uint32_t i) { add_to(group, copy[local(index.low(i), i)], 1U, shared); });
    };
    is_own() ? add(Shared::no) : add(Shared::block);
  }

  /// Aggregates the values of a tile's rows into their groups.
  template <std::uint32_t Rows>
  HEADRACE_HD void gather(const Group& group, const Tile<Group, Rows>& tile, const GroupNumbers<Rows>& index,
                          const Instruction& code, const std::int64_t* values,
                          const BothFlags<Rows>& wanted) const noexcept {
    switch (code.op) {
      case Op::sum: return gather_as<Op::sum>(group, tile, index, code, values, wanted);
      case Op::sum_wide: return gather_as<Op::sum_wide>(group, tile, index, code, values, wanted);
      case Op::sum_float: return gather_as<Op::sum_float>(group, tile, index, code, values, wanted);
      case Op::least: return gather_as<Op::least>(group, tile, index, code, values, wanted);
      default: return gather_as<Op::greatest>(group, tile, index, code, values, wanted);
    }
  }

  /// Adds the block's states to the device's.
  HEADRACE_HD void flush(const Group& group) const noexcept {
    if (local_groups(program_) == 0) return;
    group.sync();
    const std::uint64_t count = program_.copies == 0 ? program_.held : program_.groups;
    for (std::uint64_t g = group.rank(); g < count; g += group.size()) {
      const std::uint64_t name = program_.copies == 0 ? words_[g] : g;
      if (program_.copies == 0 && name == kNoGroup) continue;
      for (std::uint32_t s = 0; s < program_.state_count; ++s) flush_group(group, program_.states[s], g, name);
    }
  }

 private:
  template <Op Kept, std::uint32_t Rows>
  HEADRACE_HD void gather_as(const Group& group, const Tile<Group, Rows>& tile, const GroupNumbers<Rows>& index,
                             const Instruction& code, const std::int64_t* values,
                             const BothFlags<Rows>& wanted) const noexcept {
    const State& state = program_.states[code.index];
    const Kind kind = code.kind;
    auto* const low = reinterpret_cast<std::uint64_t*>(words_ + state.local_word) + first_copy(group);
    std::uint64_t* const high = low + local_groups(program_);
    if (program_.copies > 0 && is_own()) {
      return tile.each_of(wanted, [&](std::uint32_t i) {
        const std::uint32_t at = local(index.low(i), i);
        take<Kept>(group, kind, low + at, high + at, values[i], Shared::no);
      });
    }
    const std::conditional_t<Flags<Rows>::kSmall, GroupNumbers<Rows>, const GroupNumbers<Rows>&> numbers = index;
    const RowCopy<std::int64_t, Rows> given(values);
    std::uint64_t* const far_low = work_.states + state.block * program_.groups;
    std::uint64_t* const far_high = far_low + program_.groups;
    tile.each_in_turn(wanted, [&](std::uint32_t i) {
      const std::uint64_t number = numbers[i];
      const std::uint32_t at = program_.copies > 0 ? local(static_cast<std::uint32_t>(number), i)
                                                   : place_in_block(group, number, seen_in_block(group, number));
      if (at != kNoGroup) return take<Kept>(group, kind, low + at, high + at, given[i], Shared::block);
      take<Kept>(group, kind, far_low + number, far_high + number, given[i], Shared::device);
    });
  }

  /// Whether each copy of the block's states belongs to a single thread. On the CPU, a block is one thread.
  [[nodiscard]] HEADRACE_HD bool is_own() const noexcept { return Group::kTeam == 1 || own_; }
  [[nodiscard]] HEADRACE_HD std::uint32_t local_size(const State& state) const noexcept {
    return local_state_words(state.op) * local_groups(program_);
  }
  /// The group that holds this group's place, or kNoGroup.
  [[nodiscard]] HEADRACE_HD std::uint32_t seen_in_block(const Group& group, std::uint64_t index) const noexcept {
    if (Group::kTeam == 1 || program_.held == 0) return kNoGroup;
    return BlockMemory<Group>::load(group, words_[index & (program_.held - 1)]);
  }
  /// The place where the block holds a group, which takes the place if it is free; kNoGroup if another group has it. A
  /// group never gives up its place. `holds` is the result of seen_in_block().
  [[nodiscard]] HEADRACE_HD std::uint32_t place_in_block(const Group& group, std::uint64_t index,
                                                         std::uint32_t holds) const noexcept {
    if (Group::kTeam == 1 || program_.held == 0) return kNoGroup;
    const auto name = static_cast<std::uint32_t>(index);
    const std::uint32_t place = name & (program_.held - 1);
    if (holds == kNoGroup) {
      holds = BlockMemory<Group>::exchange(group, words_[place], kNoGroup, name);
      if (holds == kNoGroup) return place;
    }
    return holds == name ? place : kNoGroup;
  }
  /// Index of this thread's copy of group 0. The threads of a team use different copies; a thread that is alone uses
  /// different copies for consecutive rows.
  [[nodiscard]] HEADRACE_HD std::uint32_t first_copy(const Group& group) const noexcept {
    return program_.copies == 0 ? 0 : group.rank() & (program_.copies - 1);
  }
  [[nodiscard]] HEADRACE_HD std::uint32_t local(std::uint32_t index, std::uint32_t i) const noexcept {
    return index * program_.copies + (Group::kTeam == 1 ? i & (program_.copies - 1) : 0);
  }

  /// Adds the block's group `g`, whose number is `name`, to the device's states.
  HEADRACE_HD void flush_group(const Group& group, const State& state, std::uint64_t g,
                               std::uint64_t name) const noexcept {
    std::uint64_t* to = work_.states + state.block * program_.groups + name;
    const std::uint32_t copies = program_.copies == 0 ? 1 : program_.copies;
    const std::uint64_t first = g * copies;
    // Each thread starts with a different copy, so that neighbours read different memory banks.
    const auto each_copy = [&](const auto& body) {
      for (std::uint32_t c = 0; c < copies; ++c) body(first + ((c + group.rank()) & (copies - 1)));
    };
    if (local_state_words(state.op) == 1) {
      std::uint64_t sum = 0;
      each_copy([&](std::uint64_t at) { sum += words_[state.local_word + at]; });
      if (sum != 0) add_to(group, *to, sum, Shared::device);
      return;
    }
    const auto* words = reinterpret_cast<const std::uint64_t*>(words_ + state.local_word);
    if (state.op == Op::sum_float) {
      double sum = 0;
      each_copy([&](std::uint64_t at) { sum += as_double(static_cast<std::int64_t>(words[at])); });
      if (sum != 0) add_to(group, *reinterpret_cast<double*>(to), sum, Shared::device);
    } else if (state.op == Op::least || state.op == Op::greatest) {
      each_copy([&](std::uint64_t at) { merge_extreme(group, *to, words[at], state.op == Op::least); });
    } else {
      for (std::uint32_t half = 0; half < state_words(state.op); ++half) {
        std::uint64_t sum = 0;
        each_copy([&](std::uint64_t at) { sum += words[half * local_groups(program_) + at]; });
        if (sum != 0) add_to(group, to[half * program_.groups], sum, Shared::device);
      }
    }
  }

  const Program& program_;
  const ScanWork& work_;
  static constexpr std::uint32_t kNoGroup = 0xFFFF'FFFF;

  std::uint32_t* words_;
  bool own_;
};

/// place_of() returns the place of a key, and adds the key if it is absent; kNoPlace if the table is too full.
inline constexpr std::uint64_t kNoPlace = ~std::uint64_t{0};
inline constexpr std::uint32_t kProbesMax = 512;

template <class Group>
[[nodiscard]] HEADRACE_HD std::uint64_t place_of(const Group& group, const KeyTable& table,
                                                 std::uint64_t key) noexcept {
  if (key == kEmptyKey) return table.mask + 1;
  std::uint64_t mixed = (key ^ (key >> 32)) * 0x9E37'79B9'7F4A'7C15;  // Fibonacci hashing: Knuth, TAOCP 3, 6.4
  mixed = (mixed ^ (mixed >> 29)) * 0x9E37'79B9'7F4A'7C15;
  std::uint64_t at = (mixed >> 20) & table.mask;
  for (std::uint32_t probe = 0; probe < kProbesMax && probe <= table.mask; ++probe) {
    std::uint64_t held = group.load_relaxed(table.keys[at]);
    if (held == kEmptyKey) {
      held = group.compare_exchange_relaxed_on_device(table.keys[at], kEmptyKey, key);
      if (held == kEmptyKey) return at;
    }
    if (held == key) return at;
    at = (at + 1) & table.mask;
  }
  return kNoPlace;
}

}  // namespace headrace::fetch
