#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/device/group.hpp"

namespace headrace::grid {

/// A source and a destination for a box of values. Pitches and planes are in values.
struct BoxCopy {
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  std::int64_t from_plane = 0;
  std::int64_t to_plane = 0;
  std::int32_t from_pitch = 0;
  std::int32_t to_pitch = 0;
  std::int32_t size[3] = {};
};

/// Does the group's share of a copy. Neighbouring threads take neighbouring values of a row; the other threads of a
/// block take the next rows.
/// @tparam Word  as wide as a value
template <class Word, class Group>
HEADRACE_HD void copy_box(const Group& group, const BoxCopy& copy) noexcept {
  constexpr std::uint32_t kLanesMax = 64;
  const auto nx = static_cast<std::uint32_t>(copy.size[0]);
  const auto ny = static_cast<std::uint32_t>(copy.size[1]);
  const std::uint32_t rows = ny * static_cast<std::uint32_t>(copy.size[2]);
  std::uint32_t lanes = 1;
  while (lanes < nx && lanes < kLanesMax && lanes < group.size()) lanes *= 2;
  const std::uint32_t rows_at_once = group.size() / lanes;
  const std::uint32_t stride = rows_at_once * group.block_count();
  for (std::uint32_t row = group.block() * rows_at_once + group.rank() / lanes; row < rows; row += stride) {
    const std::int64_t y = row % ny;
    const std::int64_t z = row / ny;
    const Word* from = reinterpret_cast<const Word*>(copy.from) + y * copy.from_pitch + z * copy.from_plane;
    Word* to = reinterpret_cast<Word*>(copy.to) + y * copy.to_pitch + z * copy.to_plane;
    for (std::uint32_t x = group.rank() % lanes; x < nx; x += lanes) to[x] = from[x];
  }
}

}  // namespace headrace::grid
