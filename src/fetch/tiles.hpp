#pragma once

#include <cstddef>
#include <cstdint>

#include "fetch/machine.hpp"

/// The kernel of a scan: where tiles lie, and which block works on which.
namespace headrace::fetch {

struct SharedProgram {
  alignas(8) std::byte bytes[sizeof(Program)];
};

/// Where a tile lies.
struct TilePlace {
  const ColumnPlace* columns = nullptr;
  std::int64_t first = 0;  ///< Row of the fragment.
  std::int64_t rows = 0;   ///< Of the fragment.
};

/// Asks for `rows` values of so many bits, by the threads of a team.
template <class Group>
HEADRACE_HD void prefetch_bits(const Group& group, const void* values, std::int64_t first, std::int64_t rows,
                               std::uint32_t bits) noexcept {
  constexpr std::int64_t kLine = 128;
  const std::int64_t end = (first + rows) * bits / 8;
  for (std::int64_t at = first * bits / 8 + group.rank() % Group::kTeam * kLine; at < end; at += kLine * Group::kTeam) {
    BlockMemory<Group>::prefetch(static_cast<const std::byte*>(values) + at);
  }
}

/// Asks for the columns of a tile, a column a team: they are on their way while the tile before is worked on.
template <class Group>
HEADRACE_HD void prefetch_tile(const Group& group, const TilePlace& place, std::uint32_t columns) noexcept {
  const std::int64_t left = place.rows - place.first;
  const std::int64_t rows = left < kTileRows ? left : kTileRows;
  for (std::uint32_t c = group.rank() / Group::kTeam; c < columns; c += group.size() / Group::kTeam) {
    const ColumnPlace& column = place.columns[c];
    const std::int64_t bit = column.value_bits == 1 ? column.first_bit : 0;
    prefetch_bits(group, column.values, bit + place.first, rows, column.value_bits);
    if (column.validity != nullptr) prefetch_bits(group, column.validity, column.first_bit + place.first, rows, 1);
  }
}

/// The kernel: tiles are dealt to the blocks in turn.
template <std::uint32_t Rows, class Group>
HEADRACE_HD void scan_tiles(const Group& group, const ScanWork& work) noexcept {
  std::byte* shared = group.template shared<SharedProgram>().bytes;
  const auto& program = *reinterpret_cast<const Program*>(shared);
  const auto* from = reinterpret_cast<const std::uint64_t*>(work.program);
  auto* to = reinterpret_cast<std::uint64_t*>(shared);
  for (std::uint32_t word = group.rank(); word < sizeof(Program) / sizeof(std::uint64_t); word += group.size()) {
    to[word] = from[word];
  }
  group.sync();
  const States<Group> states(group, program, work);
  group.sync();
  Slots<Rows> slots;
  std::int64_t fragment = 0;
  const auto find = [&](std::int64_t tile) {
    while (work.fragments[fragment + 1].first_tile <= tile) ++fragment;
    const FragmentPlace& place = work.fragments[fragment];
    return TilePlace{.columns = work.columns + fragment * program.column_count,
                     .first = (tile - place.first_tile) * (std::int64_t{Rows} * group.size()),
                     .rows = place.rows};
  };
  TilePlace next{};
  if (group.block() < work.tiles) next = find(group.block());
  for (std::int64_t tile = group.block(); tile < work.tiles; tile += group.block_count()) {
    const TilePlace here = next;
    if (tile + group.block_count() < work.tiles) {
      next = find(tile + group.block_count());
      if constexpr (Group::kTeam > 1) prefetch_tile(group, next, program.column_count);
    }
    Machine<Group, Rows>(group, program, work, states, slots, here.columns, tile, here.first, here.rows).run();
  }
  states.flush(group);
}

}  // namespace headrace::fetch
