#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <fmt/format.h>

#include <set>

#include "bindings.hpp"
#include "convert.hpp"
#include "fetch/parquet_footer.hpp"
#include "fetch_handle.hpp"
#include "gil.hpp"
#include "headrace/base/error.hpp"
#include "headrace/fetch/levels.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::python {

namespace {

using fetch::Level;
using fetch::LevelProgress;
using fetch::LevelStatistics;

using ParquetColumns = std::vector<std::tuple<std::string, std::size_t, bool, bool>>;

void want(ParquetHandle& parquet, const ParquetColumns& columns) {
  parquet.columns.clear();
  for (const auto& [path, row_bytes, is_text, comparable] : columns) {
    parquet.columns.push_back(
        {.path = path, .type = {}, .row_bytes = row_bytes, .is_text = is_text, .comparable = comparable});
  }
}

std::vector<std::string> delta_strings_of(const ParquetHandle& parquet) {
  std::set<std::string> names;
  for (const auto& group : parquet.groups) {
    for (const auto& chunk : group.chunks) {
      if (chunk.delta_strings && chunk.depth == 1) names.insert(chunk.path);
    }
  }
  return {names.begin(), names.end()};
}

std::vector<std::int64_t> rows_of(const ParquetHandle& parquet) {
  std::vector<std::int64_t> rows;
  for (const auto& group : parquet.groups) rows.push_back(group.rows);
  return rows;
}

void bind_sources(nb::module_& module) {
  nb::class_<fetch::ParquetStatistics>(module, "ParquetStatistics",
                                       "The statistics of a Parquet file for a column of a row group.")
      .def(
          "__init__",
          [](fetch::ParquetStatistics* self, int physical_type, const std::optional<nb::bytes>& value,
             std::int64_t nulls) {
            new (self) fetch::ParquetStatistics{.physical_type = physical_type, .nulls = nulls};
            if (value) self->least = self->greatest = std::string(value->c_str(), value->size());
          },
          "physical_type"_a, "value"_a.none(), "nulls"_a,
          "For a column that is one value throughout, plain-encoded, or None if every value is missing. "
          "`physical_type` is the format's number.");
  nb::class_<ParquetHandle>(module, "ParquetFooter", "The row groups of a Parquet file, from its footer.")
      .def_prop_ro("rows", &rows_of, "Rows of each row group.")
      .def_prop_ro("delta_strings", &delta_strings_of,
                   "Columns whose strings may be delta-encoded, according to a row group.")
      .def("want", &want, "columns"_a,
           "Sets the columns that a source reads, in its order: (name, most bytes of a decoded value, whether it is "
           "text, whether statistics are of exactly the values that are read).");
  nb::class_<MappedHandle>(module, "MappedFile", "A file's bytes, mapped for reading.")
      .def(
          "__init__",
          [](MappedHandle* self, const nb::bytes& path, const std::string& name) {
            new (self)
                MappedHandle{std::make_shared<const fetch::MappedFile>(std::string(path.c_str(), path.size()), name)};
          },
          "path"_a, "name"_a, "The path for the system, and its name in errors. Raises UsageError if it is not a file.")
      .def(
          "require_unchanged", [](const MappedHandle& mapped) { mapped.file->require_unchanged(); },
          "Raises DataError that names the file if it has changed since it was opened.")
      .def_prop_ro(
          "descriptor", [](const MappedHandle& mapped) { return mapped.file->descriptor(); },
          "Descriptor of the open file; valid while this, or a source made with it, lives.")
      .def("parquet_footer", &read_parquet, "Raises DataError that names the file.")
      .def_prop_ro("path", [](const MappedHandle& mapped) { return mapped.file->path(); })
      .def_prop_ro("bytes", [](const MappedHandle& mapped) { return mapped.file->bytes(); })
      .def_prop_ro(
          "address", [](const MappedHandle& mapped) { return reinterpret_cast<std::uintptr_t>(mapped.file->data()); },
          "Address of the first byte; valid while this, or a source made with it, lives.");
  module.def("stream_formats", &stream_formats, "capsule"_a,
             nb::sig("def stream_formats(capsule: typing.Any) -> list[tuple[str, str]]"),
             "The name and the Arrow format of each column that an Arrow stream declares.");
  nb::class_<fetch::Source>(module, "FetchSource", "A table that is read chunk by chunk: a column of a fragment.")
      .def_static("of_batches", &make_arrow_source, "schema"_a, "batches"_a,
                  nb::sig("def of_batches(schema: typing.Any, batches: collections.abc.Sequence[tuple[typing.Any, str, "
                          "int, MappedFile | "
                          "None]]) -> FetchSource"),
                  "Record batches in memory, taken without a copy: (batch, file, number in it, mapping or None).")
      .def_static(
          "of_reader", &make_reader_source, "schema"_a, "fragments"_a, "places"_a, "read"_a,
          "mapped"_a = std::vector<MappedHandle>(), "constants"_a = std::vector<ConstantChunk>(),
          nb::sig("def of_reader(schema: typing.Any, fragments: list[tuple[str, int, int]], places: "
                  "list[tuple[list[tuple[MappedFile, int, int]], int] | ParquetFooter], read: "
                  "typing.Callable[[int, list[int]], "
                  "typing.Any], mapped: collections.abc.Sequence[MappedFile] = (), constants: "
                  "collections.abc.Sequence[tuple[int, int, ParquetStatistics]] = ()) -> FetchSource"),
          "Chunks that `read(fragment, columns)` returns as a record batch of these columns; any thread may call it. A "
          "fragment is (file, row group, rows); a place ([(mapping, offset, bytes)], bytes that reading takes) for "
          "each chunk, column by column within a fragment, or a footer for all chunks of its file. `mapped` is the "
          "file of each fragment, for a table of files; a file that changes causes an error. `constants` are "
          "(fragment, column, its statistics) for columns with one value throughout a fragment.")
      .def_prop_ro("rows", &fetch::Source::rows)
      .def_prop_ro("id", &fetch::Source::id)
      .def("close", &fetch::Source::close, nb::call_guard<GilRelease>(),
           "Releases the dictionaries: nothing can be fetched any more.");
}

using Codes = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

nb::tuple take_entries(const fetch::Dictionary& dictionary, const Codes& codes, std::size_t bytes_most) {
  fetch::DictionaryEntries taken;
  {
    const GilRelease released;  // a thread that reads strings may hold the dictionary while it waits for the GIL
    taken = dictionary.take({codes.data(), codes.size()}, bytes_most);
  }
  return nb::make_tuple(nb::bytes(taken.offsets.data(), taken.offsets.size() * sizeof(std::int32_t)),
                        nb::bytes(taken.bytes.data(), taken.bytes.size()));
}

void bind_dictionary(nb::module_& module) {
  nb::class_<fetch::Dictionary>(module, "StringDictionary", "The strings that the indices of a column refer to.")
      .def_prop_ro("size", &fetch::Dictionary::size, nb::call_guard<GilRelease>(), "Number of strings so far.")
      .def_prop_ro("nbytes", &fetch::Dictionary::bytes, nb::call_guard<GilRelease>(),
                   "Bytes that it takes of the CPU level's budget.")
      .def("take", &take_entries, "indices"_a, "bytes_most"_a,
           nb::sig("def take(self, indices: NDArray[numpy.int32], bytes_most: int) -> tuple[bytes, bytes]"),
           "The strings of these indices, from the first on, as many as fit in that many bytes, but at least one: "
           "(offsets of 32 bits, bytes) as in Arrow. An invalid index stands for an empty string.");
}

void bind_levels(nb::module_& module) {
  nb::class_<LevelStatistics>(module, "LevelStatistics", "The contents and the history of a level.")
      .def_ro("budget_bytes", &LevelStatistics::budget_bytes)
      .def_ro("used_bytes", &LevelStatistics::used_bytes, "Charged to the budget; slabs count as a whole.")
      .def_ro("most_bytes", &LevelStatistics::most_bytes, "The most so far.")
      .def_ro("chunks", &LevelStatistics::chunks)
      .def_ro("pinned", &LevelStatistics::pinned, "Chunks in use or being made.")
      .def_ro("hits", &LevelStatistics::hits)
      .def_ro("misses", &LevelStatistics::misses)
      .def_ro("evictions", &LevelStatistics::evictions);
  nb::class_<fetch::Levels>(module, "Levels",
                            "The caches, one for each level, through which chunks of any tables reach one device.")
      .def(
          "__init__",
          [](fetch::Levels* self, const DeviceOrName& device, std::size_t disk_bytes, std::size_t cpu_bytes,
             std::size_t device_bytes, const std::string& host, std::size_t slab_bytes) {
            new (self) fetch::Levels(to_device(device), {.disk_bytes = disk_bytes,
                                                         .cpu_bytes = cpu_bytes,
                                                         .device_bytes = device_bytes,
                                                         .host = fetch::parse_host_kind(host),
                                                         .slab_bytes = slab_bytes});
          },
          "device"_a = "best", nb::kw_only(), "disk_bytes"_a = 0, "cpu_bytes"_a = 0, "device_bytes"_a = 0,
          "host"_a = "pinned", "slab_bytes"_a = 64 * kMiB,
          "A budget of 0 is the default: half of the machine's free memory for the page cache, a quarter for the CPU "
          "level, four fifths of the device's free memory. `host` is pinned or pageable. Takes no memory yet.")
      .def_prop_ro("device", &fetch::Levels::device)
      .def(
          "statistics",
          [](const fetch::Levels& levels, const std::string& level) {
            return levels.statistics(fetch::parse_level(level));
          },
          "level"_a, "For disk, cpu or device.")
      .def(
          "clear",
          [](fetch::Levels& levels, const std::string& level) {
            const Level parsed = fetch::parse_level(level);
            const GilRelease released;
            levels.clear(parsed);
          },
          "level"_a, "Removes unused chunks from a level. Its memory is kept for the next chunks.")
      .def("trim", &fetch::Levels::trim, nb::call_guard<GilRelease>(), "Returns unused memory to the driver.")
      .def(
          "forget",
          [](fetch::Levels& levels, const fetch::Source& source) {
            const GilRelease released;
            levels.forget(source.id());
          },
          "source"_a, "Removes a table from every level, and trims.");
}

void bind_progress(nb::module_& module) {
  nb::class_<LevelProgress>(module, "LevelProgress", "The chunks that came through one level.")
      .def_ro("bytes", &LevelProgress::bytes, "Disk: bytes of the files. CPU, device: bytes of values and validity.")
      .def_ro("chunks", &LevelProgress::chunks, "Chunks made there.")
      .def_ro("hits", &LevelProgress::hits, "Chunks found there.")
      .def_prop_ro(
          "busy", [](const LevelProgress& level) { return to_seconds(level.busy); },
          "Seconds of all threads together; for the device, while copies were in flight.");
  nb::class_<fetch::FetchProgress>(module, "FetchProgress", "The progress of a fetch.")
      .def_prop_ro("disk", [](const fetch::FetchProgress& progress) { return progress.levels[0]; })
      .def_prop_ro("cpu", [](const fetch::FetchProgress& progress) { return progress.levels[1]; })
      .def_prop_ro("device", [](const fetch::FetchProgress& progress) { return progress.levels[2]; })
      .def_ro("chunks_done", &fetch::FetchProgress::chunks_done)
      .def_ro("chunks", &fetch::FetchProgress::chunks)
      .def_prop_ro("elapsed", [](const fetch::FetchProgress& progress) { return to_seconds(progress.elapsed); });
}

ChunkArray values_of(const FetchedChunk& chunk) {
  const fetch::ColumnView& view = chunk.view;
  const fetch::Type type = view.type.id == fetch::Type::dictionary ? view.type.index : view.type.id;
  const auto items = static_cast<std::size_t>(view.offset + view.length);
  switch (type) {
    case fetch::Type::boolean: return ChunkArray{chunk.fetch, view.values, fetch::Type::uint8, (items + 7) / 8};
    case fetch::Type::date32: return ChunkArray{chunk.fetch, view.values, fetch::Type::int32, items};
    case fetch::Type::timestamp: return ChunkArray{chunk.fetch, view.values, fetch::Type::int64, items};
    case fetch::Type::decimal128: return ChunkArray{chunk.fetch, view.values, fetch::Type::int64, 2 * items, true};
    default: return ChunkArray{chunk.fetch, view.values, type, items};
  }
}

std::optional<ChunkArray> validity_of(const FetchedChunk& chunk) {
  const fetch::ColumnView& view = chunk.view;
  if (view.validity == nullptr) return {};
  return ChunkArray{chunk.fetch, view.validity, fetch::Type::uint8,
                    static_cast<std::size_t>(view.offset + view.length + 7) / 8};
}

/// Copies bytes from the chunk's memory to the host.
nb::bytes copy_back(const FetchedChunk& chunk, const void* from, std::size_t bytes) {
  nb::object made = nb::steal(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(bytes)));
  if (!made.is_valid()) throw nb::python_error();
  char* const to = PyBytes_AsString(made.ptr());
  if (bytes > 0) {
    const GilRelease released;
    const Stream stream(chunk.fetch->device());
    stream.copy(to, from, bytes).or_throw("copying a chunk to the host");
    stream.wait().or_throw("copying a chunk to the host");
  }
  return nb::borrow<nb::bytes>(made);
}

nb::object to_host(const FetchedChunk& chunk) {
  const fetch::ColumnView& view = chunk.view;
  const auto& fragment = chunk.fetch->fetch().source()->fragments()[chunk.fragment];
  const std::int64_t positions = view.offset + view.length;
  const nb::object values = copy_back(chunk, view.values, static_cast<std::size_t>(values_bytes(view.type, positions)));
  const nb::object validity =
      view.validity == nullptr
          ? nb::none()
          : nb::object(copy_back(chunk, view.validity, static_cast<std::size_t>(positions + 7) / 8));
  // On a CPU level of pageable memory, a chunk may be the file's own bytes.
  if (fragment.mapped != nullptr && fragment.mapped->bytes_from(view.values) > 0) fragment.mapped->require_unchanged();
  return nb::make_tuple(values, validity);
}

void bind_chunks(nb::module_& module) {
  nb::class_<FetchedChunk>(module, "FetchedChunk", "A column of a fragment that has been fetched, in Arrow's layout.")
      .def_prop_ro("length", [](const FetchedChunk& chunk) { return chunk.view.length; })
      .def_prop_ro(
          "offset", [](const FetchedChunk& chunk) { return chunk.view.offset; },
          "Position of the first value in `values` and, as a bit, in `validity`; below 8 on a device.")
      .def_prop_ro(
          "null_count", [](const FetchedChunk& chunk) { return chunk.view.null_count; }, "-1 if unknown.")
      .def_prop_ro("values", &values_of,
                   "As stored: bits of booleans as bytes, decimals as pairs of int64, strings as indices.")
      .def_prop_ro("validity", &validity_of,
                   "A bit for each value, the least significant first; None: no value is missing.")
      .def("to_host", &to_host, nb::sig("def to_host(self) -> tuple[bytes, bytes | None]"),
           "Copies of values and validity.");
}

using FetchedSpan = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::string, double, double>;

std::pair<std::vector<FetchedSpan>, std::size_t> timeline_of(const FetchHandle& fetch) {
  const fetch::FetchTimeline timeline = fetch.fetch().timeline();
  std::vector<FetchedSpan> spans;
  for (const fetch::StepSpan& span : timeline.spans) {
    spans.emplace_back(span.chunk.fragment, span.chunk.column, span.thread, std::string(to_string(span.step)),
                       to_seconds(span.begin), to_seconds(span.end));
  }
  return {std::move(spans), timeline.dropped};
}

std::shared_ptr<FetchHandle> start(const fetch::Levels& levels, std::shared_ptr<fetch::Source> source,
                                   std::vector<std::uint32_t> columns, std::vector<std::uint32_t> fragments,
                                   const std::string& to, const fetch::FetchOptions& options) {
  return std::make_shared<FetchHandle>(levels, std::move(source),
                                       fetch::FetchRequest{.columns = std::move(columns),
                                                           .fragments = std::move(fragments),
                                                           .to = fetch::parse_level(to),
                                                           .options = options});
}

void bind_scan_report(nb::module_& module) {
  using fetch::ScanReport;
  nb::class_<ScanReport>(module, "ScanReport", "The figures of a scan.")
      .def_ro("groups", &ScanReport::groups)
      .def_ro("read_bytes", &ScanReport::read_bytes, "Bytes of the columns that it read.")
      .def_ro("seconds", &ScanReport::seconds, "Seconds of the kernels, each from its launch until its end.")
      .def_prop_ro(
          "began", [](const ScanReport& report) { return to_seconds(report.began); },
          "When the first kernel was started, by time.monotonic().")
      .def_prop_ro(
          "ended", [](const ScanReport& report) { return to_seconds(report.ended); },
          "When the last kernel had ended.");
}

void bind_options(nb::module_& module) {
  using fetch::FetchOptions;
  nb::class_<FetchOptions>(module, "FetchOptions", "How columns are fetched.")
      .def(
          "__init__",
          [](FetchOptions* self, const std::string& mode, std::uint32_t threads, std::size_t flush_bytes,
             std::size_t timeline_spans, bool verify_checksums) {
            new (self) FetchOptions{.mode = fetch::parse_fetch_mode(mode),
                                    .threads = threads,
                                    .flush_bytes = flush_bytes,
                                    .timeline_spans = timeline_spans,
                                    .verify_checksums = verify_checksums};
          },
          nb::kw_only(), "mode"_a = "async", "threads"_a = 0, "flush_bytes"_a = 128 * kMiB, "timeline_spans"_a = 0,
          "verify_checksums"_a = false,
          "`mode` is async, or sync to wait for the copy of each chunk, for comparison. `threads` make chunks; 0: one "
          "for each core, at most 16. Copies are submitted once `flush_bytes` are gathered. `timeline_spans` limits "
          "the recorded timeline. `verify_checksums` checks the pages of Parquet files that have checksums.")
      .def_prop_ro("mode", [](const FetchOptions& options) { return fetch::to_string(options.mode); })
      .def_ro("threads", &FetchOptions::threads)
      .def_ro("flush_bytes", &FetchOptions::flush_bytes)
      .def_ro("timeline_spans", &FetchOptions::timeline_spans)
      .def_ro("verify_checksums", &FetchOptions::verify_checksums);
}

}  // namespace

void bind_fetch(nb::module_& module) {
  bind_dictionary(module);
  bind_sources(module);
  bind_levels(module);
  bind_progress(module);
  bind_chunk_array(module);
  bind_chunks(module);
  bind_options(module);
  bind_scan_report(module);
  bind_fetch_table(module);
  nb::class_<FetchHandle>(module, "Fetch", "A fetch of columns, in its own threads. Pins the chunks that it brought.")
      .def(nb::new_(&start), "levels"_a, "source"_a, "columns"_a, "fragments"_a = std::vector<std::uint32_t>(),
           nb::kw_only(), "to"_a = "device", "options"_a = fetch::FetchOptions{},
           "Starts it. Columns and fragments by number; without fragments: all of them. `to` is cpu or device.")
      .def("wait", &FetchHandle::wait, "Waits until every chunk is there. Raises the first failure. Ctrl-C cancels it.")
      .def("cancel", [](const FetchHandle& fetch) { fetch.fetch().cancel(); })
      .def(
          "wait_for",
          [](const FetchHandle& fetch, double seconds) {
            const Duration most = to_duration("seconds", seconds);
            const GilRelease released;
            return fetch.fetch().wait_for(most);
          },
          "seconds"_a, "Waits for at most this long. Returns whether wait() would return at once.")
      .def_prop_ro("progress", [](const FetchHandle& fetch) { return fetch.fetch().progress(); })
      .def("timeline", &timeline_of, nb::call_guard<GilRelease>(),
           "Waits for its end. What each thread did when, (fragment, column, thread, step, begin, end) with the "
           "source's numbers and seconds of time.monotonic(), and how many more spans there were than are kept.")
      .def("look", &FetchHandle::look,
           "Runs a kernel over everything that has arrived, as a one-pass query does: the least and the greatest of "
           "each column. Waits for both.")
      .def_prop_ro("device", &FetchHandle::device)
      .def(
          "dictionary",
          [](const FetchHandle& fetch, std::size_t column) {
            return std::shared_ptr<const fetch::Dictionary>(fetch.fetch().dictionary(column));
          },
          "column"_a, nb::sig("def dictionary(self, column: int) -> StringDictionary | None"),
          "By position in the request; None for a column that has none.")
      .def_prop_ro("threads", [](const FetchHandle& fetch) { return fetch.fetch().request().options.threads; })
      .def(
          "chunk",
          [](std::shared_ptr<FetchHandle> fetch, std::size_t column, std::size_t fragment) {
            fetch->wait();
            const fetch::ColumnView view = fetch->fetch().view(column, fragment);
            const std::uint32_t number = fetch->fetch().request().fragments[fragment];
            return FetchedChunk{std::move(fetch), view, number};
          },
          "column"_a, "fragment"_a, "By position in the request. Waits for the fetch.");
}

}  // namespace headrace::python
