#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "fetch/parquet_footer.hpp"
#include "headrace/fetch/fetch.hpp"
#include "headrace/fetch/scan.hpp"
#include "headrace/fetch/source.hpp"

/// The Python forms of sources, fetches and their chunks.
namespace headrace::python {

/// A mapped file. C++ holds no reference to a Python object in it, because the file may outlive Python.
struct MappedHandle {
  std::shared_ptr<const fetch::MappedFile> file;
};

/// The row groups of a Parquet file, and the columns whose locations a source needs.
struct ParquetHandle {
  std::shared_ptr<const fetch::MappedFile> file;
  std::vector<fetch::ParquetRowGroup> groups;
  std::vector<fetch::ParquetColumn> columns;  ///< In the order of the source's columns, which determine their types.
};
/// Reads a file's footer. Throws DataError, naming the file.
[[nodiscard]] std::shared_ptr<ParquetHandle> read_parquet(const MappedHandle& mapped);

/// A fragment, a column, and the statistics that a file would have for them.
using ConstantChunk = std::tuple<std::uint32_t, std::uint32_t, fetch::ParquetStatistics>;

/// A source of record batches in memory: (batch, file, number in it, mapping that holds its buffers or None). A batch
/// is anything with __arrow_c_array__, taken without a copy.
[[nodiscard]] std::shared_ptr<fetch::Source> make_arrow_source(nanobind::handle schema, const nanobind::list& batches);

/// A source that gets its chunks from `read(fragment, columns)`, which returns anything whose __arrow_c_array__ is a
/// record batch of these columns in that order. `fragments` are (file, row group, rows). `places` has ([(mapping,
/// offset, bytes)], bytes that reading takes) for each chunk, column by column within a fragment, or a ParquetHandle
/// for all of a file. `mapped` has the file of each fragment, or nothing for a table in memory. `constants` are chunks
/// with one value throughout.
[[nodiscard]] std::shared_ptr<fetch::Source> make_reader_source(nanobind::handle schema,
                                                                const nanobind::list& fragments,
                                                                const nanobind::list& places, nanobind::object read,
                                                                const std::vector<MappedHandle>& mapped,
                                                                const std::vector<ConstantChunk>& constants);

/// The column names and formats that an Arrow stream in a capsule declares. Throws DataError if the stream fails.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> stream_formats(nanobind::handle capsule);

/// A fetch, which ends before its sources are destroyed. It is destroyed without the GIL, which its threads may need.
class FetchHandle {
 public:
  FetchHandle(const fetch::Levels& levels, std::shared_ptr<fetch::Source> source, fetch::FetchRequest request);
  FetchHandle(const FetchHandle&) = delete;
  FetchHandle& operator=(const FetchHandle&) = delete;
  ~FetchHandle();

  [[nodiscard]] fetch::Fetch& fetch() const noexcept { return *fetch_; }
  [[nodiscard]] Device device() const noexcept { return device_; }
  /// Runs a kernel over everything that has arrived, as a one-pass query does: a first look at each column. Waits for
  /// both. Throws UsageError for columns that are not on a device.
  [[nodiscard]] fetch::ScanReport look() const;
  /// Waits for the fetch. Ctrl-C cancels it, and is raised once it has ended.
  void wait() const;

 private:
  Device device_;
  std::unique_ptr<fetch::Fetch> fetch_;
};

/// One chunk of a fetch, which it keeps alive.
struct FetchedChunk {
  std::shared_ptr<FetchHandle> fetch;
  fetch::ColumnView view;
  std::uint32_t fragment = 0;  ///< Index of the fragment in the source.
};

/// The values or the validity of a chunk, as an array in place.
struct ChunkArray {
  std::shared_ptr<FetchHandle> fetch;
  const void* data = nullptr;
  fetch::Type type = fetch::Type::uint8;  ///< The type of an item.
  std::size_t items = 0;
  bool pairs = false;  ///< Whether a value has two items: the low and the high half of a decimal.
};

/// Adds scanned tables and their reports.
void bind_fetch_table(nanobind::module_& module);

/// Adds the protocols by which other libraries access a chunk's arrays: __dlpack__, __cuda_array_interface__.
void bind_chunk_array(nanobind::module_& module);

}  // namespace headrace::python
