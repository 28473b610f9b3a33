#pragma once

#include <cstddef>
#include <cstdint>

#include "fetch/machine.hpp"

/// The kernel of a scan: which block works on which tile, and where that lies.
namespace headrace::fetch {

struct SharedProgram {
  alignas(8) std::byte bytes[sizeof(Program)];
};

/// The kernel: tiles are dealt to the blocks in turn.
template <std::uint32_t Rows, class Group>
HEADRACE_HD void scan_tiles(const Group& group, const ScanWork& work) noexcept {
  using Memory = BlockMemory<Group>;
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
  std::uint32_t fragment = 0;
  const auto find = [&](std::uint32_t tile) {
    while (Memory::read(&work.fragments[fragment + 1].first_tile) <= tile) ++fragment;
    const FragmentPlace& place = work.fragments[fragment];
    return TilePlace{.fragment = fragment,
                     .first = (tile - Memory::read(&place.first_tile)) * kTileRows,
                     .rows = Memory::read(&place.rows)};
  };
  TilePlace next{};
  if (group.block() < work.tiles) next = find(group.block());
  for (std::uint32_t tile = group.block(); tile < work.tiles; tile += group.block_count()) {
    const TilePlace here = next;
    // What says where the next one is comes while this one is worked on.
    if (tile + group.block_count() < work.tiles) next = find(tile + group.block_count());
    Machine<Group, Rows>(group, program, work, states, slots, here, tile).run();
  }
  states.flush(group);
}

}  // namespace headrace::fetch
