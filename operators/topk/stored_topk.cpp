#include "operators/topk/stored_topk.hpp"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "headrace/base/error.hpp"
#include "headrace/device/buffer.hpp"
#include "headrace/device/detail/uploads.hpp"
#include "operators/sample.hpp"

namespace headrace::operators {

namespace {

constexpr std::uint64_t kRowsMost = (std::uint64_t{1} << 32) - kTopkTileRows;

std::uint64_t whole_tiles(std::uint64_t rows) { return (rows + kTopkTileRows - 1) / kTopkTileRows * kTopkTileRows; }

void require_sound(const TopkMatrix& matrix, const TopkOptions& options) {
  require_in_range("topk: rows of the matrix", matrix.row_count, 1, kRowsMost);
  require_in_range("topk: columns of the matrix", matrix.column_count, 1, kTopkColumnsMost);
  require_in_range("topk: k", options.k, 1, kTopkMost);
  require_in_range("topk: threads", options.threads, 1, 1024);
  if (matrix.data == nullptr) throw UsageError("topk: a matrix is needed");
  if (options.k > matrix.row_count) {
    throw UsageError(fmt::format("topk: k is {}, but the matrix has only {} rows", options.k, matrix.row_count));
  }
}

/// Allocates the stored matrix, all 0.
StoredElements room_for(const TopkMatrix& matrix, const TopkOptions& options) {
  require_sound(matrix, options);
  const std::uint64_t elements = whole_tiles(matrix.row_count) * whole_units(matrix.column_count);
  return room_for_rows("topk", matrix.row_count, matrix.column_count, options.element, elements);
}

}  // namespace

StoredTopk::StoredTopk(const TopkMatrix& matrix, const TopkOptions& options) : tiles_(room_for(matrix, options)) {
  state_.row_count = matrix.row_count;
  state_.columns = matrix.column_count;
  state_.units = whole_units(matrix.column_count) / kUnit;
  state_.k = options.k;
  state_.element = options.element;
  state_.metric = options.metric;
  store(matrix);
}

void StoredTopk::store(const TopkMatrix& matrix) {
  const HostTable table{matrix.data, matrix.element, matrix.row_count, matrix.column_count};
  const auto bad = store_table(table, tiles_, [&](std::uint64_t row, std::uint32_t column) {
    const std::uint64_t first = row / kTopkTileRows * kTopkTileRows * state_.units + row % kTopkTileRows;
    return (first + std::uint64_t{column / kUnit} * kTopkTileRows) * kUnit + column % kUnit;
  });
  if (!bad) return;
  throw UsageError(fmt::format("topk: element ({}, {}) of the matrix is {}, which is not finite as {}", bad->row,
                               bad->column, bad->value, to_string(tiles_.type())));
}

serve::LoadedState StoredTopk::load(std::shared_ptr<const StoredTopk> self, Device device) const {
  struct Owners {
    std::shared_ptr<const StoredTopk> matrix;
    Placed tiles;
    Buffer cursor;
  };
  auto owners = std::make_shared<Owners>();
  owners->matrix = std::move(self);
  owners->tiles = place_on(device, tiles_.bytes(), "copying the matrix of topk to a device");
  const std::vector<std::uint32_t> start{0};
  Uploads uploads(device, "copying the matrix of topk to a device");
  uploads.add(start);
  owners->cursor = std::move(uploads.finish().front());
  TopkState state = state_;
  state.tiles = owners->tiles.data;
  state.cursor = owners->cursor.as<std::uint32_t>();
  return serve::make_state(state, owners);
}

std::string StoredTopk::query_type() const { return fmt::format("('<f4', ({},))", state_.columns); }

std::string StoredTopk::answer_type() const {
  return fmt::format("([('rows', '<u4', ({0},)), ('scores', '<f4', ({0},))], ())", state_.k);
}

Metric parse_metric(std::string_view text) {
  if (text == "dot") return Metric::dot;
  if (text == "l2") return Metric::l2;
  throw UsageError(fmt::format("a metric must be dot or l2, not '{}'", text));
}

}  // namespace headrace::operators
