#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "headrace/ingest/detail/conversion.hpp"
#include "ingest/line.hpp"

namespace headrace::ingest {

/// Where in a frame a single byte at `offset` of its part of the stream goes, unconverted. If bytes are swapped, this
/// is its place in the swapped item. If items become floats, the byte waits beside its neighbour in the float's place
/// until the whole item can be converted.
[[nodiscard]] inline std::size_t place_of_byte(Conversion conversion, std::size_t offset) noexcept {
  const std::size_t item = item_bytes(conversion);
  const std::size_t within = offset % item;
  if (to_float(conversion)) return offset / item * sizeof(float) + within;
  return offset / item * item + (conversion == Conversion::none ? within : item - 1 - within);
}

/// Calls `emit(Part)` for the copies that convert `bytes` bytes at `from`, which belong at `offset` of the frame: whole
/// items in parts of at most `most` bytes, and single bytes for items that begin before or end after them.
template <class Emit>
void for_each_converted_part(Conversion conversion, std::byte* frame, std::size_t offset, const std::byte* from,
                             std::size_t bytes, std::uint32_t most, Emit emit) {
  const std::size_t item = item_bytes(conversion);
  const auto emit_byte = [&] { emit(Part(frame + place_of_byte(conversion, offset), from, 1)); };
  for (; bytes > 0 && offset % item != 0; ++offset, ++from, --bytes) emit_byte();
  while (bytes >= item) {
    const std::size_t now = std::min<std::size_t>(bytes / item * item, most / item * item);
    emit(Part(frame + converted_bytes(conversion, offset), from, static_cast<std::uint32_t>(now)));
    offset += now;
    from += now;
    bytes -= now;
  }
  for (; bytes > 0; ++offset, ++from, --bytes) emit_byte();
}

}  // namespace headrace::ingest
