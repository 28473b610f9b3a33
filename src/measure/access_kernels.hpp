#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/device/detail/access.hpp"
#include "headrace/device/group.hpp"
#include "headrace/device/placement.hpp"
#include "measure/access_draws.hpp"

/// The access patterns of `headrace oversubscribe` as kernels.
///
/// The device part of data streams some fifty times faster than the part behind the link, so a kernel over both reaches
/// its roof if the link is never idle. The link needs some 100 KB in flight (50 GB/s for 2 us). The grid is as large as
/// the device holds at once, so no block waits for another to end; and without block synchronisation no warp waits for
/// another. A warp that reads a host page stalls alone, while the others run ahead through device pages until they read
/// host pages as well. Soon nearly all warps wait for the link, with thousands of KB in flight.
namespace headrace::measure {

/// What a thread moves at once in a sweep: the widest load.
struct alignas(16) Unit {
  std::uint32_t a, b, c, d;
};

/// Contents of the data before it is touched: any two words differ, except by chance.
template <class Item>
[[nodiscard]] HEADRACE_HD constexpr Item filled(std::uint64_t index) noexcept;
template <>
HEADRACE_HD constexpr std::uint32_t filled<std::uint32_t>(std::uint64_t index) noexcept {
  return static_cast<std::uint32_t>(mixed(index / 2) >> (index % 2 * 32));
}
template <>
HEADRACE_HD constexpr Unit filled<Unit>(std::uint64_t index) noexcept {
  const std::uint64_t low = mixed(2 * index);
  const std::uint64_t high = mixed(2 * index + 1);
  return {static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(low >> 32), static_cast<std::uint32_t>(high),
          static_cast<std::uint32_t>(high >> 32)};
}

/// The word that a write stores: a function of the word's index and the run, cheap enough not to slow the memory down.
template <class Item>
[[nodiscard]] HEADRACE_HD constexpr Item written(std::uint64_t index, std::uint32_t run) noexcept;
template <>
HEADRACE_HD constexpr std::uint32_t written<std::uint32_t>(std::uint64_t index, std::uint32_t run) noexcept {
  return static_cast<std::uint32_t>(index) * 0x9E3779B1U + static_cast<std::uint32_t>(index >> 32) * 0x85EBCA77U +
         run * 0xC2B2AE3DU;
}
template <>
HEADRACE_HD constexpr Unit written<Unit>(std::uint64_t index, std::uint32_t run) noexcept {
  const auto first = written<std::uint32_t>(4 * index, run);
  return {first, first + 0x9E3779B1U, first + 2 * 0x9E3779B1U, first + 3 * 0x9E3779B1U};
}

/// The word that a read-modify-write stores: the low byte becomes a function of the other bytes and the run. The
/// operation is idempotent, so rows that several warps modify at once get the same result, and the result shows what
/// was read.
[[nodiscard]] HEADRACE_HD constexpr std::uint32_t modified(std::uint32_t word, std::uint32_t run) noexcept {
  return (word & ~0xFFU) | (((word >> 8) ^ run) & 0xFFU);
}
[[nodiscard]] HEADRACE_HD constexpr Unit modified(const Unit& unit, std::uint32_t run) noexcept {
  return {modified(unit.a, run), modified(unit.b, run), modified(unit.c, run), modified(unit.d, run)};
}

/// The sum of the words, with which reads are verified.
[[nodiscard]] HEADRACE_HD constexpr std::uint64_t word_sum(std::uint32_t word) noexcept { return word; }
[[nodiscard]] HEADRACE_HD constexpr std::uint64_t word_sum(const Unit& unit) noexcept {
  return std::uint64_t{unit.a} + unit.b + unit.c + unit.d;
}

/// The operations. touch() works on several items at once, so that as many loads are in flight; sum() is the sum of the
/// words read.
template <class Item>
struct Reading {
  const Item* items;
  std::uint32_t run;
  std::uint64_t sum_so_far = 0;

  template <std::uint32_t Count>
  HEADRACE_HD void touch(const std::uint64_t (&at)[Count]) noexcept {
    Item got[Count];
    for (std::uint32_t i = 0; i < Count; ++i) got[i] = items[at[i]];
    for (std::uint32_t i = 0; i < Count; ++i) sum_so_far += word_sum(got[i]);
  }
  [[nodiscard]] HEADRACE_HD std::uint64_t sum() const noexcept { return sum_so_far; }
};

template <class Item>
struct Writing {
  Item* items;
  std::uint32_t run;

  template <std::uint32_t Count>
  HEADRACE_HD void touch(const std::uint64_t (&at)[Count]) noexcept {
    for (std::uint32_t i = 0; i < Count; ++i) items[at[i]] = written<Item>(at[i], run);
  }
  [[nodiscard]] HEADRACE_HD static constexpr std::uint64_t sum() noexcept { return 0; }
};

template <class Item>
struct Modifying {
  Item* items;
  std::uint32_t run;

  template <std::uint32_t Count>
  HEADRACE_HD void touch(const std::uint64_t (&at)[Count]) noexcept {
    Item got[Count];
    for (std::uint32_t i = 0; i < Count; ++i) got[i] = items[at[i]];
    for (std::uint32_t i = 0; i < Count; ++i) items[at[i]] = modified(got[i], run);
  }
  [[nodiscard]] HEADRACE_HD static constexpr std::uint64_t sum() noexcept { return 0; }
};

/// The data of a kernel, in whole pages of kPageBytes.
struct AccessData {
  std::byte* data = nullptr;
  std::uint64_t page_count = 0;
  std::uint64_t* sums = nullptr;  ///< One per block; only a reading kernel writes it.
  std::uint32_t run = 0;          ///< Distinguishes the writes of different runs.
  bool synchronised = false;      ///< The threads of a block synchronise after every iteration of the loop.
};

/// Units per page of a span.
inline constexpr std::uint64_t kPageUnits = kPageBytes / sizeof(Unit);

/// Sweeps units begin..end-1: in each iteration of the loop, a thread takes `Turn` units, `step` apart, from `mine` on.
template <std::uint32_t Turn, class Group, class Operation>
HEADRACE_HD void sweep(const Group& group, Operation& operation, std::uint64_t begin, std::uint64_t end,
                       std::uint64_t mine, std::uint64_t step, bool synchronised) noexcept {
  // The bounds are those of the block, not of the thread, so that all its threads run the same number of iterations.
  for (std::uint64_t turn = begin; turn < end; turn += Turn * step) {
    if (turn + Turn * step <= end) {
      std::uint64_t at[Turn];
      for (std::uint32_t i = 0; i < Turn; ++i) at[i] = turn + mine + i * step;
      operation.touch(at);
    } else {
      for (std::uint64_t at = turn + mine; at < end; at += step) operation.touch({at});
    }
    if (synchronised) group.sync();
  }
}

/// Touches the draws, one batch per team: each thread computes one draw, then the whole team touches them in sequence,
/// `Turn` at once.
template <std::uint32_t Turn, class Group, class Operation, class Draws>
HEADRACE_HD void touch_drawn(const Group& group, Operation& operation, const Draws& draws, bool synchronised) noexcept {
  constexpr std::uint32_t kTeam = Group::kTeam;
  constexpr std::uint32_t kAtOnce = Turn < kTeam ? Turn : kTeam;
  constexpr std::uint64_t kNone = ~std::uint64_t{0};
  const std::uint64_t count = draws.draw_count();
  const std::uint64_t block_teams = group.size() / kTeam;
  const std::uint64_t first = (group.block() * block_teams + group.team()) * kTeam + group.team_rank();
  for (std::uint64_t batch = 0; batch < count; batch += group.block_count() * block_teams * kTeam) {
    const std::uint64_t mine = batch + first < count ? draws.first(batch + first) : kNone;
    for (std::uint32_t draw = 0; draw < kTeam; draw += kAtOnce) {
      std::uint64_t start[kAtOnce];
      bool whole = true;
      for (std::uint32_t i = 0; i < kAtOnce; ++i) {
        start[i] = group.team_from(mine, draw + i);
        whole = whole && start[i] != kNone;
      }
      for (std::uint32_t item = group.team_rank(); item < Draws::kItems; item += kTeam) {
        std::uint64_t at[kAtOnce];
        for (std::uint32_t i = 0; i < kAtOnce; ++i) at[i] = start[i] + item;
        if (whole) {
          operation.touch(at);
        } else {
          for (std::uint32_t i = 0; i < kAtOnce; ++i) {
            if (start[i] != kNone) operation.touch({at[i]});
          }
        }
      }
    }
    if (synchronised) group.sync();
  }
}

/// Pages of tenth number `part`. The last tenth is hot, because no placement favours it by its order.
[[nodiscard]] HEADRACE_HD constexpr PageRange tenth(std::uint64_t page_count, std::uint64_t part) noexcept {
  const std::uint64_t first = page_count * part / 10;
  return {first, page_count * (part + 1) / 10 - first};
}
inline constexpr std::uint64_t kHotTenth = 9;

/// A pattern defines which items a kernel touches. `Item` is what a thread moves at once.
struct GridStride {
  using Item = Unit;
  template <class Group, class Operation>
  HEADRACE_HD static void run(const Group& group, Operation& operation, const AccessData& to) noexcept {
    sweep<4>(group, operation, 0, to.page_count * kPageUnits, group.thread(), group.thread_count(), to.synchronised);
  }
};

struct BlockStride {
  using Item = Unit;
  static constexpr std::uint64_t kChunk = 256;  ///< Units: 4 KiB.
  template <class Group, class Operation>
  HEADRACE_HD static void run(const Group& group, Operation& operation, const AccessData& to) noexcept {
    // Parts begin at whole memory lines, because a line shared by two blocks would be transferred twice.
    const std::uint64_t chunks = to.page_count * (kPageUnits / kChunk);
    const std::uint64_t begin = chunks * group.block() / group.block_count() * kChunk;
    const std::uint64_t end = chunks * (group.block() + std::uint64_t{1}) / group.block_count() * kChunk;
    sweep<4>(group, operation, begin, end, group.rank(), group.size(), to.synchronised);
  }
};

struct HotTenth {
  using Item = Unit;
  template <class Group, class Operation>
  HEADRACE_HD static void run(const Group& group, Operation& operation, const AccessData& to) noexcept {
    const PageRange hot = tenth(to.page_count, kHotTenth);
    for (std::uint64_t part = 0; part < 10; ++part) {
      const PageRange both[] = {tenth(to.page_count, part), hot};
      for (const PageRange& pages : both) {
        sweep<4>(group, operation, pages.first * kPageUnits, (pages.first + pages.count) * kPageUnits, group.thread(),
                 group.thread_count(), to.synchronised);
      }
    }
  }
};

template <class Draws, class DrawnItem, std::uint32_t Turn>
struct Drawn {
  using Item = DrawnItem;
  template <class Group, class Operation>
  HEADRACE_HD static void run(const Group& group, Operation& operation, const AccessData& to,
                              const Draws& draws) noexcept {
    touch_drawn<Turn>(group, operation, draws, to.synchronised);
  }
};
using RandomWarp = Drawn<RandomRegions, std::uint32_t, 8>;
using Zipf = Drawn<ZipfRows, Unit, 4>;

/// The kernel of a pattern and an operation.
template <class Pattern, template <class> class Operation>
struct AccessKernel {
  static constexpr const char* kName = "measure::access";
  template <class Group, class... Draws>
  HEADRACE_HD static void run(const Group& group, const AccessData& to, const Draws&... draws) noexcept {
    Operation<typename Pattern::Item> operation{reinterpret_cast<typename Pattern::Item*>(to.data), to.run};
    Pattern::run(group, operation, to, draws...);
    if (to.sums == nullptr) return;
    const std::uint64_t sum = group.sum(operation.sum());
    if (group.rank() == 0) to.sums[group.block()] = sum;
  }
};

}  // namespace headrace::measure
