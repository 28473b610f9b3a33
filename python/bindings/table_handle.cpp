#include "table_handle.hpp"

#include <fmt/format.h>

#include <deque>
#include <utility>

#include "arrays.hpp"
#include "headrace/base/error.hpp"

namespace nb = nanobind;

namespace headrace::python {

namespace {

constexpr const char* kDoing = "copying a column to the device";

/// A piece with its memory borrowed: made with the GIL, used without.
struct HostPiece {
  HostPiece(const ColumnPiece& piece) : values(std::get<0>(piece), kBuffer) {
    std::int64_t nulls = 0;
    std::tie(std::ignore, std::ignore, length, offset, nulls) = piece;
    null_count = nulls;
    if (!std::get<1>(piece).is_none() && nulls != 0) validity.emplace(std::get<1>(piece), kBuffer);
  }
  static constexpr const char* kBuffer = "a buffer of a column";
  BytesView values;
  std::optional<BytesView> validity;
  std::int64_t length = 0;
  std::int64_t offset = 0;
  std::int64_t null_count = 0;
};

/// Bytes [from, to) of a buffer, on the device.
const void* upload(StreamRef stream, const BytesView& view, std::int64_t from, std::int64_t to, const std::string& name,
                   std::vector<Buffer>& buffers) {
  if (static_cast<std::int64_t>(view.bytes().size()) < to) {
    throw UsageError(fmt::format("column '{}' claims {} bytes of a buffer that has {}", name, to, view.bytes().size()));
  }
  const auto bytes = static_cast<std::size_t>(to - from);
  buffers.emplace_back(stream.device(), MemoryKind::device, bytes);
  if (bytes > 0) stream.copy(buffers.back().data(), view.bytes().data() + from, bytes).or_throw(kDoing);
  return buffers.back().data();
}

fetch::ColumnView upload_piece(StreamRef stream, const std::string& name, const fetch::DataType& type,
                               const HostPiece& piece, std::vector<Buffer>& buffers) {
  if (piece.length < 0 || piece.offset < 0) {
    throw UsageError(fmt::format("column '{}' has a piece of {} rows from {} on", name, piece.length, piece.offset));
  }
  // What is before the piece stays behind, but for the bits that share its first byte.
  const std::int64_t first = piece.offset / 8 * 8;
  const std::int64_t end = piece.offset + piece.length;
  fetch::ColumnView view{
      .type = type, .length = piece.length, .offset = piece.offset - first, .null_count = piece.null_count};
  view.values =
      upload(stream, piece.values, fetch::values_bytes(type, first), fetch::values_bytes(type, end), name, buffers);
  if (piece.validity) {
    view.validity =
        static_cast<const std::uint8_t*>(upload(stream, *piece.validity, first / 8, (end + 7) / 8, name, buffers));
  }
  return view;
}

}  // namespace

std::uint32_t TableHandle::add_column(const std::string& name, const fetch::DataType& type,
                                      const std::vector<ColumnPiece>& pieces) {
  std::deque<HostPiece> host;
  for (const ColumnPiece& piece : pieces) host.emplace_back(piece);
  const nb::gil_scoped_release released;
  const std::lock_guard lock(mutex_);
  if (!table_.columns.empty() && pieces.size() != table_.fragments.size()) {
    throw UsageError(
        fmt::format("column '{}' has {} pieces, and those before it {}", name, pieces.size(), table_.fragments.size()));
  }
  std::vector<fetch::ColumnView> views;
  std::vector<Buffer> buffers;
  bool nullable = false;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    views.push_back(upload_piece(stream_, name, type, host[i], buffers));
    nullable |= views.back().validity != nullptr;
    if (!table_.columns.empty() && views.back().length != table_.fragments[i][0].length) {
      throw UsageError(fmt::format("piece {} of column '{}' has {} rows, and that of the columns before it {}", i, name,
                                   views.back().length, table_.fragments[i][0].length));
    }
  }
  stream_.wait().or_throw(kDoing);
  // A table of this column alone, for a first look at it.
  fetch::TableView alone{.columns = {{.name = name, .type = type, .nullable = nullable, .range = {}}}, .fragments = {}};
  for (const fetch::ColumnView& view : views) alone.fragments.push_back({view});
  fetch::look(stream_, alone);
  table_.fragments.resize(pieces.size());
  for (std::size_t i = 0; i < views.size(); ++i) table_.fragments[i].push_back(views[i]);
  table_.columns.push_back(std::move(alone.columns[0]));
  for (Buffer& buffer : buffers) buffers_.push_back(std::move(buffer));
  return static_cast<std::uint32_t>(table_.columns.size() - 1);
}

fetch::ScanResult TableHandle::scan(const fetch::Query& query) {
  const std::lock_guard lock(mutex_);
  return fetch::scan(stream_, table_, query);
}

std::size_t TableHandle::device_bytes() const noexcept {
  std::size_t bytes = 0;
  for (const Buffer& buffer : buffers_) bytes += buffer.bytes();
  return bytes;
}

}  // namespace headrace::python
