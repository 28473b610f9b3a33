#include "grid/gather.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace headrace::grid {

namespace {

constexpr int kGatherTag = 0;
constexpr std::int64_t kMessageBytes = 32 << 20;

/// The rows of a box, in an array of the domain and packed in a message.
class BoxRows {
 public:
  BoxRows(const Extent& extent, const Box& box, std::size_t value_bytes, std::byte* array) noexcept
      : extent_(extent), box_(box), value_bytes_(static_cast<std::int64_t>(value_bytes)), array_(array) {}

  [[nodiscard]] std::int64_t count() const noexcept { return box_.size(1) * box_.size(2); }
  [[nodiscard]] std::int64_t row_bytes() const noexcept { return box_.size(0) * value_bytes_; }
  [[nodiscard]] std::byte* row(std::int64_t number) const noexcept {
    const std::int64_t y = box_.low[1] + number % box_.size(1);
    const std::int64_t z = box_.low[2] + number / box_.size(1);
    return array_ + ((z * extent_.ny + y) * extent_.nx + box_.low[0]) * value_bytes_;
  }

 private:
  const Extent& extent_;
  const Box& box_;
  std::int64_t value_bytes_;
  std::byte* array_;
};

/// Sends a box from a rank to rank 0, some rows at a time.
[[nodiscard]] Status move_box(Ranks& ranks, int from, const BoxRows& rows) noexcept {
  const std::int64_t at_once = std::clamp<std::int64_t>(kMessageBytes / rows.row_bytes(), 1, rows.count());
  const auto row_bytes = static_cast<std::size_t>(rows.row_bytes());
  std::vector<std::byte> message(static_cast<std::size_t>(at_once) * row_bytes);
  const bool sends = ranks.rank() == from;
  for (std::int64_t first = 0; first < rows.count(); first += at_once) {
    const std::int64_t end = std::min(first + at_once, rows.count());
    for (std::int64_t row = first; row < end && sends; ++row) {
      std::memcpy(message.data() + static_cast<std::size_t>(row - first) * row_bytes, rows.row(row), row_bytes);
    }
    const RankMessage one{.rank = sends ? 0 : from,
                          .tag = kGatherTag,
                          .data = message.data(),
                          .bytes = static_cast<std::size_t>(end - first) * row_bytes};
    const std::span<const RankMessage> it(&one, 1);
    const std::span<const RankMessage> none;
    const Status moved = sends ? ranks.exchange(it, none) : ranks.exchange(none, it);
    if (!moved) return moved;
    for (std::int64_t row = first; row < end && !sends; ++row) {
      std::memcpy(rows.row(row), message.data() + static_cast<std::size_t>(row - first) * row_bytes, row_bytes);
    }
  }
  return {};
}

}  // namespace

Status gather_on_first(const Share& share, const Decomposition& decomposition, std::size_t value_bytes,
                       std::byte* array) noexcept {
  Ranks* const ranks = share.ranks();
  if (ranks == nullptr) return {};
  for (std::size_t part = 0; part < decomposition.parts().size(); ++part) {
    const int from = share.rank_of(part);
    if (from == 0 || (ranks->rank() != 0 && ranks->rank() != from)) continue;
    const Status moved =
        move_box(*ranks, from, BoxRows(decomposition.extent(), decomposition.parts()[part], value_bytes, array));
    if (!moved) return moved;
  }
  return {};
}

}  // namespace headrace::grid
