#pragma once

#include <cstddef>
#include <cstdint>

#include "fetch/scan/machine.hpp"

/// The kernel of a scan: assigns tiles to blocks and finds the rows of each tile.
namespace headrace::fetch {

struct SharedProgram {
  alignas(Program) std::byte bytes[sizeof(Program)];
};

/// The kernel. Blocks take tiles round robin.
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
  TilePlace place;
  for (std::uint32_t tile = work.first_tile + group.block(); tile < work.tiles; tile += group.block_count()) {
    while (Memory::read_kept(&work.fragments[place.fragment + 1]).first_tile <= tile) ++place.fragment;
    const FragmentPlace fragment = Memory::read_kept(&work.fragments[place.fragment]);
    place.first = (tile - fragment.first_tile) * kTileRows;
    place.rows = fragment.rows;
    Machine<Group, Rows>(group, program, work, states, slots, place, tile).run();
  }
  states.flush(group);
}

}  // namespace headrace::fetch
