#include "operators/spmv/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "headrace/base/error.hpp"

namespace headrace::operators {

namespace {

constexpr std::size_t kAlignment = 256;

[[nodiscard]] std::size_t aligned(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// Cuts a row that is longer than a chunk into pieces, each of which produces a partial sum.
void cut_long_row(PartWork& work, std::uint32_t row, std::uint64_t first_entry, std::uint64_t entries) {
  const std::uint64_t pieces = (entries + kSpmvChunkEntries - 1) / kSpmvChunkEntries;
  work.long_rows.push_back({work.partials, static_cast<std::uint32_t>(pieces), row});
  for (std::uint64_t piece = 0; piece < pieces; ++piece) {
    const std::uint64_t begin = piece * kSpmvChunkEntries;
    const auto count = static_cast<std::uint16_t>(std::min<std::uint64_t>(kSpmvChunkEntries, entries - begin));
    work.chunks.push_back({first_entry + begin, static_cast<std::uint32_t>(work.partials++), count, 0});
  }
}

}  // namespace

std::vector<std::uint64_t> cut_rows(std::span<const std::int64_t> row_starts, std::size_t parts) {
  const std::uint64_t rows = row_starts.size() - 1;
  const auto cost_before = [row_starts](std::uint64_t row) {
    return static_cast<std::uint64_t>(row_starts[row]) + row;
  };
  std::vector<std::uint64_t> cut{0};
  for (std::size_t part = 1; part < parts; ++part) {
    const auto wanted = static_cast<std::uint64_t>(static_cast<long double>(cost_before(rows)) * part / parts);
    std::uint64_t low = cut.back();
    std::uint64_t high = rows;
    while (low < high) {
      const std::uint64_t middle = low + (high - low) / 2;
      if (cost_before(middle) < wanted) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    cut.push_back(low);
  }
  cut.push_back(rows);
  return cut;
}

std::vector<std::uint64_t> scale_cut(const std::vector<std::uint64_t>& rows, std::uint64_t count) {
  std::vector<std::uint64_t> cut;
  for (std::size_t part = 0; part < rows.size(); ++part) {
    // Without rows there is no distribution to follow, so parts are equal.
    const long double share = rows.back() != 0 ? static_cast<long double>(rows[part]) / rows.back()
                                               : static_cast<long double>(part) / (rows.size() - 1);
    cut.push_back(static_cast<std::uint64_t>(share * count));
  }
  cut.back() = count;
  return cut;
}

std::vector<Place> vector_pages(const std::vector<std::uint64_t>& cut, std::size_t value_bytes,
                                const std::vector<Device>& devices) {
  const std::uint64_t per_page = kPageBytes / value_bytes;
  const std::uint64_t count = cut.back();
  std::vector<Place> pages;
  for (std::uint64_t begin = 0; begin < std::max<std::uint64_t>(1, count); begin += per_page) {
    const std::uint64_t end = std::min(count, begin + per_page);
    std::size_t best = 0;
    std::uint64_t most = 0;
    for (std::size_t part = 0; part < devices.size(); ++part) {
      const std::uint64_t from = std::max(begin, cut[part]);
      const std::uint64_t to = std::min(end, cut[part + 1]);
      if (to > from && to - from > most) {
        most = to - from;
        best = part;
      }
    }
    pages.push_back(Place::on(devices[best]));
  }
  return pages;
}

PartWork cut_work(std::span<const std::int64_t> row_starts, std::uint64_t first, std::uint64_t last) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  if (last - first >= kMost) {
    throw UsageError(fmt::format("{} rows on one device are more than the {} allowed", last - first, kMost - 1));
  }
  const auto entry = [row_starts, first](std::uint64_t row) {
    return static_cast<std::uint64_t>(row_starts[row] - row_starts[first]);
  };
  PartWork work;
  work.row_starts.reserve(last - first);
  bool open = false;  // whether the last chunk has room
  for (std::uint64_t row = first; row < last; ++row) {
    const std::uint64_t begin = entry(row);
    const std::uint64_t entries = entry(row + 1) - begin;
    const auto local = static_cast<std::uint32_t>(row - first);
    if (entries > kSpmvChunkEntries) {
      cut_long_row(work, local, begin, entries);
      work.row_starts.push_back(0);
      open = false;
      continue;
    }
    if (!open || work.chunks.back().entries + entries > kSpmvChunkEntries ||
        work.chunks.back().rows == kSpmvChunkEntries) {
      work.chunks.push_back({begin, local, 0, 0});
      open = true;
    }
    SpmvChunk& chunk = work.chunks.back();
    work.row_starts.push_back(chunk.entries);
    chunk.entries = static_cast<std::uint16_t>(chunk.entries + entries);
    ++chunk.rows;
  }
  if (work.chunks.size() >= std::size_t{1} << 31) {  // the most blocks of a launch
    throw UsageError(fmt::format("{} entries on one device are more than a launch can take", entry(last)));
  }
  return work;
}

PartLayout lay_out(const PartWork& work, std::uint64_t entries, std::uint64_t copied_count, std::size_t value_bytes) {
  PartLayout layout;
  const auto place = [&layout](std::size_t bytes) {
    const std::size_t at = layout.bytes;
    layout.bytes += aligned(bytes);
    return at;
  };
  layout.chunks = place(work.chunks.size() * sizeof(SpmvChunk));
  layout.long_rows = place(work.long_rows.size() * sizeof(SpmvLongRow));
  layout.row_starts = place(work.row_starts.size() * sizeof(std::uint16_t));
  layout.partials = place(work.partials * value_bytes);
  layout.columns = place(entries * sizeof(std::uint32_t));
  layout.values = place(entries * value_bytes);
  layout.x_copy = place(copied_count * value_bytes);
  layout.pages = (layout.bytes + kPageBytes - 1) / kPageBytes;
  return layout;
}

}  // namespace headrace::operators
