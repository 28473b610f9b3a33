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

/// Sources, fetches and their chunks as Python has them.
namespace headrace::python {

/// A mapped file. What C++ keeps of it is its own: no reference to a Python object, which may have to outlive Python.
struct MappedHandle {
  std::shared_ptr<const fetch::MappedFile> file;
};

/// The row groups of a Parquet file, and of which columns a source wants to know where they lie.
struct ParquetHandle {
  std::shared_ptr<const fetch::MappedFile> file;
  std::vector<fetch::ParquetRowGroup> groups;
  std::vector<fetch::ParquetColumn> columns;  ///< In the order of the source's columns, whose types they get there.
};
/// Reads a file's footer. Throws DataError that names the file.
[[nodiscard]] std::shared_ptr<ParquetHandle> read_parquet(const MappedHandle& mapped);

/// A fragment, a column, and what a file would say of it.
using ConstantChunk = std::tuple<std::uint32_t, std::uint32_t, fetch::ParquetStatistics>;

/// A source of record batches that lie in memory: (batch, file, number in it, mapping that its buffers lie in or None).
/// A batch is anything with __arrow_c_array__, taken without a copy.
[[nodiscard]] std::shared_ptr<fetch::Source> make_arrow_source(nanobind::handle schema, const nanobind::list& batches);

/// A source whose chunks `read(fragment, columns)` gives, as anything whose __arrow_c_array__ is a record batch of
/// these columns in that order. `fragments` are (file, row group, rows). `places` has ([(mapping, offset, bytes)],
/// bytes that reading takes) for each chunk, column by column within a fragment, or a ParquetHandle for all of a file,
/// and `mapped` the file of each fragment, or none of a table in memory. `constants` are chunks that are one value
/// throughout.
[[nodiscard]] std::shared_ptr<fetch::Source> make_reader_source(nanobind::handle schema,
                                                                const nanobind::list& fragments,
                                                                const nanobind::list& places, nanobind::object read,
                                                                const std::vector<MappedHandle>& mapped,
                                                                const std::vector<ConstantChunk>& constants);

/// The names and formats of the columns that an Arrow stream in a capsule promises. Throws DataError where it fails.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> stream_formats(nanobind::handle capsule);

/// A fetch, which ends before what it reads is gone. Destroyed without Python's lock, which its threads may need.
class FetchHandle {
 public:
  FetchHandle(const fetch::Levels& levels, std::shared_ptr<fetch::Source> source, fetch::FetchRequest request);
  FetchHandle(const FetchHandle&) = delete;
  FetchHandle& operator=(const FetchHandle&) = delete;
  ~FetchHandle();

  [[nodiscard]] fetch::Fetch& fetch() const noexcept { return *fetch_; }
  [[nodiscard]] Device device() const noexcept { return device_; }
  /// Runs a kernel over all that has come, as a query of one pass does: a first look at each column. Waits for both.
  /// Throws UsageError for columns that are not on a device.
  [[nodiscard]] fetch::ScanReport look() const;
  /// Waits; Ctrl-C cancels the fetch, and is raised once that has ended.
  void wait() const;

 private:
  Device device_;
  std::unique_ptr<fetch::Fetch> fetch_;
};

/// One chunk of a fetch, which it keeps alive.
struct FetchedChunk {
  std::shared_ptr<FetchHandle> fetch;
  fetch::ColumnView view;
  std::uint32_t fragment = 0;  ///< The number of the fragment in the source.
};

/// The values or the validity of a chunk, as an array where it lies.
struct ChunkArray {
  std::shared_ptr<FetchHandle> fetch;
  const void* data = nullptr;
  fetch::Type type = fetch::Type::uint8;  ///< The type of an item.
  std::size_t items = 0;
  bool pairs = false;  ///< Two items a value: a decimal's low and high half.
};

/// Adds tables that are scanned, and what they report.
void bind_fetch_table(nanobind::module_& module);

/// Adds what other libraries take a chunk's arrays by: __dlpack__, __cuda_array_interface__.
void bind_chunk_array(nanobind::module_& module);

}  // namespace headrace::python
