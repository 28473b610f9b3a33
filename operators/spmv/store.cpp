#include "operators/spmv/store.hpp"

#include <algorithm>

#include "headrace/base/error.hpp"
#include "headrace/device/copy_batch.hpp"
#include "operators/parallel.hpp"
#include "operators/spmv/layout.hpp"

namespace headrace::operators {

namespace {

/// Columns as 32-bit numbers relative to `first`, a page at a time.
template <class Column>
[[nodiscard]] Status add_columns(CopyBatch& batch, std::byte* to, std::span<const Column> columns,
                                 std::uint64_t first) {
  std::vector<std::uint32_t> page(std::min(columns.size(), kPageBytes / sizeof(std::uint32_t)));
  for (std::size_t done = 0; done < columns.size(); done += page.size()) {
    const std::size_t count = std::min(page.size(), columns.size() - done);
    std::transform(columns.data() + done, columns.data() + done + count, page.begin(), [first](Column column) {
      return static_cast<std::uint32_t>(static_cast<std::uint64_t>(column) - first);
    });
    const Status added =
        batch.add(to + done * sizeof(std::uint32_t), page.data(), count * sizeof(std::uint32_t), CopySource::reusable);
    if (!added) return added;
  }
  return {};
}

/// The elements of x that a part needs, and how much of them is on other devices.
struct ColumnUse {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  std::uint64_t remote_reads = 0;
  std::uint64_t remote_sectors = 0;  ///< Counted once for each block that reads it.
};

constexpr std::uint64_t kSectorBytes = 32;  ///< The smallest read of a GPU.

/// Counts what the blocks of a part read of x, with every kSpmvChunkEntries consecutive entries as a block.
class ColumnCounter {
 public:
  ColumnCounter(const std::vector<Place>& pages, Device device, std::size_t value_bytes, std::uint64_t column_count)
      : per_page_(kPageBytes / value_bytes), per_sector_(kSectorBytes / value_bytes) {
    for (const Place& page : pages) remote_.push_back(page != Place::on(device) ? 1 : 0);
    const bool any = std::find(remote_.begin(), remote_.end(), 1) != remote_.end();
    if (any) read_by_.resize(column_count / per_sector_ + 1);
  }

  template <class Column>
  [[nodiscard]] ColumnUse operator()(std::span<const Column> columns) {
    if (columns.empty()) return {};
    ColumnUse use;
    auto least = static_cast<std::uint64_t>(columns.front());
    std::uint64_t most = least;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const auto column = static_cast<std::uint64_t>(columns[i]);
      least = std::min(least, column);
      most = std::max(most, column);
      if (remote_[column / per_page_] != 0) count(column, static_cast<std::uint32_t>(i / kSpmvChunkEntries + 1), use);
    }
    use.first = least;
    use.count = most - least + 1;
    return use;
  }

 private:
  void count(std::uint64_t column, std::uint32_t block, ColumnUse& use) {
    ++use.remote_reads;
    std::uint32_t& last = read_by_[column / per_sector_];
    use.remote_sectors += last != block ? 1 : 0;
    last = block;
  }

  std::uint64_t per_page_;
  std::uint64_t per_sector_;
  std::vector<std::uint8_t> remote_;    ///< By page.
  std::vector<std::uint32_t> read_by_;  ///< By sector: the last block that read it, from 1.
};

/// The number of elements of x to copy to the device first.
[[nodiscard]] std::uint64_t copied_count(const ColumnUse& use, VectorReads reads, std::size_t value_bytes) {
  const bool worth_it = 2 * use.count * value_bytes <= use.remote_sectors * kSectorBytes;
  return reads == VectorReads::copied || (reads == VectorReads::automatic && worth_it) ? use.count : 0;
}

/// The rows of one device, and their offset in the span.
struct DevicePart {
  DevicePart(Device its_device, std::span<const std::int64_t> starts, std::uint64_t first, std::uint64_t last)
      : device(its_device),
        first_row(first),
        row_count(last - first),
        first_entry(static_cast<std::size_t>(starts[first])),
        entry_count(static_cast<std::size_t>(starts[last]) - first_entry),
        work(cut_work(starts, first, last)) {}

  Device device;
  std::uint64_t first_row;
  std::uint64_t row_count;
  std::size_t first_entry;
  std::size_t entry_count;
  PartWork work;
  ColumnUse columns;
  std::uint64_t copied = 0;
  PartLayout layout;
  std::size_t offset = 0;
};

template <class Value>
[[nodiscard]] CrewPart<Value> view(const DevicePart& part, std::byte* span) {
  std::byte* const base = span + part.offset;
  SpmvPart<Value> work;
  work.chunks = reinterpret_cast<const SpmvChunk*>(base + part.layout.chunks);
  work.long_rows = reinterpret_cast<const SpmvLongRow*>(base + part.layout.long_rows);
  work.row_starts = reinterpret_cast<const std::uint16_t*>(base + part.layout.row_starts);
  work.columns = reinterpret_cast<const std::uint32_t*>(base + part.layout.columns);
  work.values = reinterpret_cast<const Value*>(base + part.layout.values);
  work.partials = reinterpret_cast<Value*>(base + part.layout.partials);
  work.chunk_count = static_cast<std::uint32_t>(part.work.chunks.size());
  work.long_row_count = static_cast<std::uint32_t>(part.work.long_rows.size());
  Value* const x_copy = reinterpret_cast<Value*>(base + part.layout.x_copy);
  return {part.device, work, part.first_row, part.columns.first, part.copied, x_copy};
}

template <class Value, class Column>
void fill_part(const DevicePart& part, const HostCsr<Value, Column>& matrix, const Span& span) {
  constexpr const char* kDoing = "copying a matrix to its device";
  const Stream stream(part.device);
  CopyBatch batch(stream, {.staging_bytes = 2 * kPageBytes});
  std::byte* const base = span.data() + part.offset;
  const auto add = [&](std::size_t at, const auto& from) {
    batch.add(base + at, from.data(), from.size() * sizeof(from[0]), CopySource::pageable).or_throw(kDoing);
  };
  add(part.layout.chunks, part.work.chunks);
  add(part.layout.long_rows, part.work.long_rows);
  add(part.layout.row_starts, part.work.row_starts);
  add(part.layout.values, matrix.values.subspan(part.first_entry, part.entry_count));
  add_columns(batch, base + part.layout.columns, matrix.columns.subspan(part.first_entry, part.entry_count),
              part.columns.first)
      .or_throw(kDoing);
  batch.wait().or_throw(kDoing);
}

/// Each device's rows, ready to be laid out.
template <class Value, class Column>
[[nodiscard]] std::vector<DevicePart> cut_parts(const std::vector<Device>& devices,
                                                const HostCsr<Value, Column>& matrix,
                                                const std::vector<std::uint64_t>& row_cut,
                                                const std::vector<Place>& x_pages, VectorReads reads) {
  std::vector<DevicePart> parts;
  for (std::size_t d = 0; d < devices.size(); ++d) {
    parts.emplace_back(devices[d], matrix.row_starts, row_cut[d], row_cut[d + 1]);
  }
  in_parallel(static_cast<std::uint32_t>(devices.size()), [&](std::uint32_t d) {
    DevicePart& part = parts[d];
    const auto columns = matrix.columns.subspan(part.first_entry, part.entry_count);
    part.columns = ColumnCounter(x_pages, part.device, sizeof(Value), matrix.column_count)(columns);
    part.copied = copied_count(part.columns, reads, sizeof(Value));
    part.layout = lay_out(part.work, part.entry_count, part.copied, sizeof(Value));
  });
  return parts;
}

}  // namespace

Status upload(StreamRef stream, const Span& span, std::size_t offset, const void* from, std::size_t bytes) {
  const Status copied = stream.copy(span.data() + offset, from, bytes);
  return copied ? stream.wait() : copied;
}

Status download(StreamRef stream, void* to, const Span& span, std::size_t offset, std::size_t bytes) {
  const Status copied = stream.copy(to, span.data() + offset, bytes);
  return copied ? stream.wait() : copied;
}

Span shared_span(const std::vector<Device>& devices, std::size_t bytes, const std::vector<Place>& pages) {
  SpanOptions options;
  options.accessed_by = devices;
  return Span(devices.front(), bytes, Placement::map(pages), options);
}

template <class Value, class Column>
StoredMatrix<Value> store_matrix(const std::vector<Device>& devices, const HostCsr<Value, Column>& matrix,
                                 const std::vector<std::uint64_t>& row_cut,
                                 const std::vector<std::uint64_t>& column_cut, VectorReads reads) {
  const std::vector<Place> x_pages = vector_pages(column_cut, sizeof(Value), devices);
  std::vector<DevicePart> parts = cut_parts(devices, matrix, row_cut, x_pages, reads);
  std::vector<Place> pages;
  for (DevicePart& part : parts) {
    part.offset = pages.size() * kPageBytes;
    pages.insert(pages.end(), part.layout.pages, Place::on(part.device));
  }
  if (pages.empty()) pages.push_back(Place::on(devices.front()));
  const std::size_t bytes = pages.size() * kPageBytes;
  StoredMatrix<Value> stored;
  stored.storage = std::make_unique<Span>(shared_span(devices, bytes, pages));
  for (const DevicePart& part : parts) {
    stored.views.push_back(view<Value>(part, stored.storage->data()));
    stored.uses.push_back({part.device, part.first_row, part.row_count, part.entry_count, part.layout.x_copy,
                           part.columns.remote_reads, part.columns.remote_sectors * kSectorBytes, part.copied});
  }
  in_parallel(static_cast<std::uint32_t>(devices.size()),
              [&](std::uint32_t d) { fill_part(parts[d], matrix, *stored.storage); });
  return stored;
}

template StoredMatrix<float> store_matrix(const std::vector<Device>&, const HostCsr<float, std::int32_t>&,
                                          const std::vector<std::uint64_t>&, const std::vector<std::uint64_t>&,
                                          VectorReads);
template StoredMatrix<float> store_matrix(const std::vector<Device>&, const HostCsr<float, std::int64_t>&,
                                          const std::vector<std::uint64_t>&, const std::vector<std::uint64_t>&,
                                          VectorReads);
template StoredMatrix<double> store_matrix(const std::vector<Device>&, const HostCsr<double, std::int32_t>&,
                                           const std::vector<std::uint64_t>&, const std::vector<std::uint64_t>&,
                                           VectorReads);
template StoredMatrix<double> store_matrix(const std::vector<Device>&, const HostCsr<double, std::int64_t>&,
                                           const std::vector<std::uint64_t>&, const std::vector<std::uint64_t>&,
                                           VectorReads);

}  // namespace headrace::operators
