#include "grid/field_io.hpp"

#include <algorithm>
#include <cstring>

namespace headrace::grid {

namespace {

constexpr std::int64_t kStagingBytes = 8 << 20;

/// Copies the rows of a part through a page-locked buffer of many rows, so that copies are few and large.
class Rows {
 public:
  Rows(Part& part, int field, const Decomposition& decomposition) noexcept
      : layout_(part.layout()),
        stream_(part.stream()),
        extent_(decomposition.extent()),
        held_(layout_.own.grow(layout_.pads).intersect(decomposition.with_images())) {
    const auto value_bytes = static_cast<std::int64_t>(layout_.value_bytes);
    data_ = part.table().origin<std::byte>(field) - layout_.origin * value_bytes;
    row_bytes_ = layout_.pitch * value_bytes;
    count_ = layout_.field_bytes / row_bytes_;
    at_once_ = std::clamp<std::int64_t>(kStagingBytes / row_bytes_, 1, count_);
  }

  [[nodiscard]] Status upload(const std::byte* from, bool one_for_all) noexcept {
    return through_staging([&](std::int64_t first, std::int64_t rows, std::byte* staging) -> Status {
      std::memset(staging, 0, static_cast<std::size_t>(rows * row_bytes_));
      for (std::int64_t row = 0; row < rows; ++row) {
        for_each_run(first + row, held_, [&](const Cells& cells) {
          std::byte* const to = staging + row * row_bytes_ + cells.in_row;
          if (one_for_all) {
            repeat(to, from, cells.bytes);
          } else {
            std::memcpy(to, from + cells.in_array, cells.bytes);
          }
        });
      }
      return copy(data_ + first * row_bytes_, staging, rows);
    });
  }

  [[nodiscard]] Status download(std::byte* to) noexcept {
    return through_staging([&](std::int64_t first, std::int64_t rows, std::byte* staging) -> Status {
      const Status copied = copy(staging, data_ + first * row_bytes_, rows);
      if (!copied) return copied;
      for (std::int64_t row = 0; row < rows; ++row) {
        for_each_run(first + row, layout_.own, [&](const Cells& cells) {
          std::memcpy(to + cells.in_array, staging + row * row_bytes_ + cells.in_row, cells.bytes);
        });
      }
      return {};
    });
  }

 private:
  void repeat(std::byte* to, const std::byte* value, std::size_t bytes) const noexcept {
    const std::size_t each = layout_.value_bytes;
    for (std::size_t at = 0; at < bytes; at += each) std::memcpy(to + at, value, each);
  }

  /// Cells of a row that are contiguous in the array, with byte offsets from the start of the row and of the array.
  struct Cells {
    std::int64_t in_row = 0;
    std::int64_t in_array = 0;
    std::size_t bytes = 0;
  };

  /// Visits the cells of a row that lie in `box`; beyond a periodic wall they are the array's cells at the other wall.
  template <class Visit>
  void for_each_run(std::int64_t row, const Box& box, const Visit& visit) const noexcept {
    const std::int64_t rows_per_plane = layout_.plane / layout_.pitch;
    const std::int64_t y = row % rows_per_plane - layout_.pads.low[1] + layout_.own.low[1];
    const std::int64_t z = row / rows_per_plane - layout_.pads.low[2] + layout_.own.low[2];
    if (y < box.low[1] || y >= box.high[1] || z < box.low[2] || z >= box.high[2]) return;
    const auto value_bytes = static_cast<std::int64_t>(layout_.value_bytes);
    const std::int64_t before = layout_.origin % layout_.pitch;  // values of a row before the first owned cell
    const std::int64_t row_of_array = (z + extent_.nz) % extent_.nz * extent_.ny + (y + extent_.ny) % extent_.ny;
    for (std::int64_t x = box.low[0]; x < box.high[0];) {
      const std::int64_t in_domain = (x + extent_.nx) % extent_.nx;
      const std::int64_t cells = std::min(extent_.nx - in_domain, box.high[0] - x);
      visit(Cells{.in_row = (before + x - layout_.own.low[0]) * value_bytes,
                  .in_array = (row_of_array * extent_.nx + in_domain) * value_bytes,
                  .bytes = static_cast<std::size_t>(cells * value_bytes)});
      x += cells;
    }
  }

  [[nodiscard]] Status copy(std::byte* to, const std::byte* from, std::int64_t rows) const noexcept {
    const Status copied = stream_.copy(to, from, static_cast<std::size_t>(rows * row_bytes_));
    return copied ? stream_.wait() : copied;
  }

  template <class Move>
  [[nodiscard]] Status through_staging(const Move& move) const noexcept {
    auto staging =
        Buffer::allocate(stream_.device(), MemoryKind::pinned, static_cast<std::size_t>(at_once_ * row_bytes_));
    if (!staging) return staging.error();
    for (std::int64_t first = 0; first < count_; first += at_once_) {
      const Status moved = move(first, std::min(at_once_, count_ - first), staging->data());
      if (!moved) return moved;
    }
    return {};
  }

  const PartLayout& layout_;
  StreamRef stream_;
  Extent extent_;
  Box held_;                   ///< The cells that the part has, including ghosts.
  std::byte* data_ = nullptr;  ///< The first row, including ghosts and zeros.
  std::int64_t row_bytes_ = 0;
  std::int64_t count_ = 0;
  std::int64_t at_once_ = 0;
};

}  // namespace

Status upload_field(Part& part, int field, const Decomposition& decomposition, const std::byte* from,
                    bool one_for_all) noexcept {
  return Rows(part, field, decomposition).upload(from, one_for_all);
}

Status download_field(Part& part, int field, const Decomposition& decomposition, std::byte* to) noexcept {
  return Rows(part, field, decomposition).download(to);
}

}  // namespace headrace::grid
