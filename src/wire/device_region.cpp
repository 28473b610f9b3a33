#include "wire/device_region.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "wire/infer_reply.hpp"
#include "wire/request_error.hpp"

namespace headrace::wire {

namespace {

constexpr std::size_t kPieceBytes = 1 << 20;  // most bytes of rows that are copied together, unless one row has more

std::unique_ptr<ForeignMemory> open_memory(std::string_view name, Device device, std::span<const std::byte> handle) {
  auto opened = open_foreign_memory(device, handle);
  if (opened) return *std::move(opened);
  const Error error = opened.error();
  switch (error.code) {
    case Errc::invalid_argument:
    case Errc::not_found:
      refuse(fmt::format("region \"{}\": the handle is not that of memory on {} which another process shares", name,
                         device.name()));
    case Errc::full:
      throw RequestError(kUnavailable,
                         fmt::format("region \"{}\": a resident kernel is running on {}, and mapping memory would wait "
                                     "for it; serve with another schedule than persistent and dispatched",
                                     name, device.name()));
    case Errc::not_supported:
      throw RequestError(kNotImplemented, fmt::format("region \"{}\": {} cannot share memory with other processes",
                                                      name, device.name()));
    default:
      throw RequestError(http_status(error),
                         fmt::format("region \"{}\": {}: {}", name, device.name(), to_string(error.code)));
  }
}

/// Calls move(row, count, piece) for the rows in order, `count` at a time; `piece` has room for them side by side.
template <class Move>
void each_piece(std::size_t rows, std::size_t row_bytes, Move move) {
  const std::size_t together = std::min(rows, std::max<std::size_t>(1, kPieceBytes / row_bytes));
  std::vector<std::byte> piece;
  try {
    piece.resize(together * row_bytes);
  } catch (const std::bad_alloc&) {
    throw RequestError(kUnavailable, "the server has no memory left for this request; try again later");
  }
  for (std::size_t row = 0; row < rows; row += together) move(row, std::min(together, rows - row), piece.data());
}

}  // namespace

DeviceRegion::DeviceRegion(std::string name, Device device, std::span<const std::byte> handle, std::uint64_t bytes)
    : SharedRegion(RegionKind::cuda, std::move(name), bytes),
      device_(device),
      memory_(open_memory(SharedRegion::name(), device, handle)) {
  if (bytes <= memory_->bytes()) return;
  refuse(fmt::format("region \"{}\" needs {} bytes, but the memory of its handle has {}", SharedRegion::name(), bytes,
                     memory_->bytes()));
}

void DeviceRegion::require(Status copied) const {
  if (copied) return;
  const Error error = copied.error();
  throw RequestError(http_status(error),
                     fmt::format("region \"{}\": {}: {}", name(), device_.name(), to_string(error.code)));
}

void DeviceRegion::read(std::uint64_t at, const Rows<std::byte>& rows) const {
  if (rows.stride == rows.bytes) return require(memory_->read(at, rows.first, rows.count * rows.bytes));
  each_piece(rows.count, rows.bytes, [&](std::size_t row, std::size_t count, std::byte* piece) {
    require(memory_->read(at + row * rows.bytes, piece, count * rows.bytes));
    for (std::size_t i = 0; i < count; ++i) {
      std::memcpy(rows.first + (row + i) * rows.stride, piece + i * rows.bytes, rows.bytes);
    }
  });
}

void DeviceRegion::write(std::uint64_t at, const Rows<const std::byte>& rows) const {
  if (rows.stride == rows.bytes) return require(memory_->write(at, rows.first, rows.count * rows.bytes));
  each_piece(rows.count, rows.bytes, [&](std::size_t row, std::size_t count, std::byte* piece) {
    for (std::size_t i = 0; i < count; ++i) {
      std::memcpy(piece + i * rows.bytes, rows.first + (row + i) * rows.stride, rows.bytes);
    }
    require(memory_->write(at + row * rows.bytes, piece, count * rows.bytes));
  });
}

}  // namespace headrace::wire
