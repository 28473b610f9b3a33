#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "fetch/parquet_footer.hpp"

namespace headrace::fetch {

namespace {

/// Finds the chunks of top-level columns by name, because a nested field's path may read the same. The row groups of a
/// file list their columns in the same order, so the search starts at the position in the previous row group.
class ChunkFinder {
 public:
  explicit ChunkFinder(std::size_t columns) : positions_(columns, 0) {}

  void begin(const ParquetRowGroup& group) {
    group_ = &group;
    by_path_.clear();
  }
  /// Null where the row group does not have the column.
  [[nodiscard]] const ParquetChunk* find(std::size_t column, std::string_view path) {
    const auto& chunks = group_->chunks;
    std::size_t& position = positions_[column];
    if (position < chunks.size() && chunks[position].depth == 1 && chunks[position].path == path) {
      return &chunks[position];
    }
    if (by_path_.empty()) {
      for (std::size_t i = 0; i < chunks.size(); ++i) {
        if (chunks[i].depth == 1) by_path_[chunks[i].path] = i;
      }
    }
    const auto found = by_path_.find(path);
    if (found == by_path_.end()) return nullptr;
    position = found->second;
    return &chunks[position];
  }

 private:
  const ParquetRowGroup* group_ = nullptr;
  std::vector<std::size_t> positions_;
  std::unordered_map<std::string_view, std::size_t> by_path_;
};

}  // namespace

std::vector<ReaderSource::ChunkPlace> places_of(const std::shared_ptr<const MappedFile>& file,
                                                std::span<const ParquetRowGroup> groups,
                                                std::span<const ParquetColumn> columns) {
  std::vector<ReaderSource::ChunkPlace> places(groups.size() * columns.size());
  ChunkFinder chunks(columns.size());
  auto place = places.begin();
  for (const ParquetRowGroup& group : groups) {
    chunks.begin(group);
    for (std::size_t c = 0; c < columns.size(); ++c, ++place) {
      const ParquetColumn& column = columns[c];
      place->read_bytes = static_cast<std::size_t>(group.rows) * column.row_bytes;
      const ParquetChunk* const chunk = chunks.find(c, column.path);
      if (chunk == nullptr) continue;
      place->ranges = {{.file = file, .offset = chunk->offset, .bytes = chunk->bytes}};
      place->read_bytes += chunk->bytes;  // the encoded bytes from the file
      if (column.is_text) place->read_bytes += chunk->decoded_bytes;
      if (column.comparable) place->bounds = bounds_of(chunk->statistics, column.type, group.rows);
    }
  }
  return places;
}

}  // namespace headrace::fetch
