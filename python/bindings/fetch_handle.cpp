#include "fetch_handle.hpp"
#include "gil.hpp"

#include <fmt/format.h>

#include <chrono>
#include <functional>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "fetch/parquet_footer.hpp"
#include "headrace/base/error.hpp"
#include "headrace/fetch/arrow.hpp"
#include "headrace/fetch/expression.hpp"

namespace nb = nanobind;

namespace headrace::python {

namespace {

template <class Struct>
Struct* in_capsule(nb::handle capsule, const char* name) {
  auto* held = static_cast<Struct*>(PyCapsule_GetPointer(capsule.ptr(), name));
  if (held == nullptr) throw nb::python_error();
  if (held->release == nullptr) throw DataError(fmt::format("the {} has already been taken", name));
  return held;
}

fetch::OwnedSchema take_schema(nb::handle schema) {
  const nb::object capsule = schema.attr("__arrow_c_schema__")();
  return fetch::OwnedSchema(*in_capsule<ArrowSchema>(capsule, "arrow_schema"));
}

/// The code of one of Headrace's own exceptions. Called with the GIL.
Errc code_of(const nb::python_error& error) {
  const std::string name = nb::str(error.value().attr("code").attr("value")).c_str();
  for (int i = 0; i <= static_cast<int>(Errc::hung); ++i) {
    if (to_string(static_cast<Errc>(i)) == name) return static_cast<Errc>(i);
  }
  return Errc::system;
}

/// Throws a Python exception as a C++ exception. Headrace's own keep their type and code. Called with the GIL.
[[noreturn]] void rethrow(const nb::python_error& error) {
  const nb::module_ errors = nb::module_::import_("headrace.errors");
  const std::string text = nb::str(error.value()).c_str();
  if (error.matches(errors.attr("DataError"))) throw DataError(text);
  if (error.matches(errors.attr("UsageError"))) throw UsageError(text, code_of(error));
  if (error.matches(errors.attr("Error"))) throw Exception(code_of(error), text);
  throw Exception(Errc::system, fmt::format("{}: {}", nb::str(error.type().attr("__name__")).c_str(), text));
}

std::vector<fetch::FileRange> to_ranges(const nb::list& ranges) {
  std::vector<fetch::FileRange> made;
  for (const nb::handle range : ranges) {
    const auto [mapped, offset, bytes] = nb::cast<std::tuple<nb::object, std::size_t, std::size_t>>(range);
    made.push_back({.file = nb::cast<MappedHandle&>(mapped).file, .offset = offset, .bytes = bytes});
  }
  return made;
}

/// The columns of a schema, read by the record-batch source.
std::vector<fetch::Column> columns_of(nb::handle schema) {
  const auto taken = take_schema(schema);
  return fetch::ArrowSource(*taken, {}).columns();
}

/// A Python function that any thread may call and release.
using SharedFunction = std::shared_ptr<nb::object>;

SharedFunction share(nb::object function) {
  return {new nb::object(std::move(function)), [](nb::object* held) {
            // The interpreter has ended or is ending, and takes the object with it.
            if (!nb::is_alive() || python_ends_elsewhere()) return;
            try {
              const GilAcquire acquired;
              delete held;
            } catch (const Exception&) {  // NOLINT(bugprone-empty-catch): the interpreter has begun to end since
            }
          }};
}

/// Takes the columns out of a record batch, as the C data interface allows. The batch must contain nothing else.
std::vector<fetch::OwnedArray> take_columns(const ArrowSchema& schema, fetch::OwnedArray batch,
                                            const std::vector<fetch::DataType>& types) {
  const auto count = static_cast<std::int64_t>(types.size());
  if (schema.format == nullptr || schema.format != std::string_view("+s") || schema.n_children != count ||
      batch->n_children != count || batch->offset != 0 || batch->null_count > 0) {
    throw DataError("a reader must return a record batch of exactly the columns that it is asked for");
  }
  std::vector<fetch::OwnedArray> columns;
  for (std::size_t i = 0; i < types.size(); ++i) {
    const auto given = fetch::type_of(*schema.children[i]);
    if (given != types[i]) {
      throw DataError(fmt::format("it has type {}, but {} is expected", given ? to_string(*given) : "unknown",
                                  to_string(types[i])));
    }
    columns.emplace_back(*batch->children[i]);
  }
  return columns;
}

std::vector<fetch::OwnedArray> call(const nb::object& read, std::uint32_t fragment,
                                    std::span<const std::uint32_t> columns, const std::vector<fetch::DataType>& types) {
  const GilAcquire acquired;
  try {
    nb::list numbers;
    std::vector<fetch::DataType> expected;
    for (const std::uint32_t column : columns) {
      numbers.append(column);
      expected.push_back(types[column]);
    }
    const nb::object batch = read(fragment, numbers);
    const nb::object both = batch.attr("__arrow_c_array__")();
    const auto* const schema = in_capsule<ArrowSchema>(both[0], "arrow_schema");
    return take_columns(*schema, fetch::OwnedArray(*in_capsule<ArrowArray>(both[1], "arrow_array")), expected);
  } catch (const nb::python_error& error) {
    rethrow(error);
  }
}

void add_places(const ParquetHandle& parquet, const std::vector<fetch::Column>& columns,
                std::vector<fetch::ReaderSource::ChunkPlace>& to) {
  if (parquet.columns.size() != columns.size()) throw UsageError("a Parquet file needs a place for every column");
  std::vector<fetch::ParquetColumn> typed = parquet.columns;
  for (std::size_t c = 0; c < typed.size(); ++c) typed[c].type = columns[c].type;
  auto places = fetch::places_of(parquet.file, parquet.groups, typed);
  std::move(places.begin(), places.end(), std::back_inserter(to));
}

}  // namespace

std::shared_ptr<ParquetHandle> read_parquet(const MappedHandle& mapped) {
  const fetch::MappedFile& file = *mapped.file;
  try {
    return std::make_shared<ParquetHandle>(
        ParquetHandle{mapped.file, fetch::read_parquet_footer({file.data(), file.bytes()}), {}});
  } catch (const DataError& error) {
    throw DataError(fmt::format("{}: {}", file.path(), error.what()));
  }
}

std::shared_ptr<fetch::Source> make_arrow_source(nb::handle schema, const nb::list& batches) {
  const auto taken = take_schema(schema);
  std::vector<fetch::ArrowSource::Batch> made;
  for (const nb::handle item : batches) {
    auto [batch, file, number, mapped] = nb::cast<std::tuple<nb::object, std::string, std::int64_t, nb::object>>(item);
    const nb::object both = batch.attr("__arrow_c_array__")();
    made.push_back({.array = fetch::OwnedArray(*in_capsule<ArrowArray>(both[1], "arrow_array")),
                    .file = std::move(file),
                    .number = number,
                    .mapped = mapped.is_none() ? nullptr : nb::cast<MappedHandle&>(mapped).file});
  }
  return std::make_shared<fetch::ArrowSource>(*taken, std::move(made));
}

std::shared_ptr<fetch::Source> make_reader_source(nb::handle schema, const nb::list& fragments, const nb::list& places,
                                                  nb::object read, const std::vector<MappedHandle>& mapped,
                                                  const std::vector<ConstantChunk>& constants) {
  auto columns = columns_of(schema);
  std::vector<fetch::Fragment> made;
  for (const nb::handle item : fragments) {
    auto [file, row_group, rows] = nb::cast<std::tuple<std::string, std::int64_t, std::int64_t>>(item);
    const std::size_t number = made.size();
    made.push_back({.file = std::move(file),
                    .row_group = row_group,
                    .rows = rows,
                    .mapped = number < mapped.size() ? mapped[number].file : nullptr});
  }
  std::vector<fetch::ReaderSource::ChunkPlace> where;
  for (const nb::handle item : places) {
    if (nb::isinstance<ParquetHandle>(item)) {
      add_places(nb::cast<const ParquetHandle&>(item), columns, where);
      continue;
    }
    const auto [ranges, read_bytes] = nb::cast<std::tuple<nb::list, std::size_t>>(item);
    where.push_back({.ranges = to_ranges(ranges), .read_bytes = read_bytes});
  }
  for (const auto& [fragment, column, statistics] : constants) {
    where.at(fragment * columns.size() + column).bounds =
        fetch::bounds_of(statistics, columns.at(column).type, made.at(fragment).rows);
  }
  std::vector<fetch::DataType> types;
  for (const auto& column : columns) types.push_back(column.type);
  return std::make_shared<fetch::ReaderSource>(std::move(columns), std::move(made), std::move(where),
                                               [function = share(std::move(read)), types = std::move(types)](
                                                   std::uint32_t fragment, std::span<const std::uint32_t> wanted) {
                                                 return call(*function, fragment, wanted, types);
                                               });
}

std::vector<std::pair<std::string, std::string>> stream_formats(nb::handle capsule) {
  auto* const stream = in_capsule<ArrowArrayStream>(capsule, "arrow_array_stream");
  fetch::OwnedSchema schema;
  if (stream->get_schema(stream, schema.out()) != 0) throw DataError("an Arrow stream has no schema");
  const auto text = [](const char* given) { return std::string(given == nullptr ? "" : given); };
  std::vector<std::pair<std::string, std::string>> formats;
  for (std::int64_t i = 0; schema->children != nullptr && i < schema->n_children; ++i) {
    if (schema->children[i] == nullptr) continue;
    formats.emplace_back(text(schema->children[i]->name), text(schema->children[i]->format));
  }
  return formats;
}

FetchHandle::FetchHandle(const fetch::Levels& levels, std::shared_ptr<fetch::Source> source,
                         fetch::FetchRequest request)
    : device_(levels.device()), fetch_(std::make_unique<fetch::Fetch>(levels, std::move(source), std::move(request))) {}

FetchHandle::~FetchHandle() {
  if (PyGILState_Check() == 0) {
    fetch_.reset();
  } else {
    const GilRelease released;
    fetch_.reset();
  }
}

void FetchHandle::wait() const {
  constexpr auto look = std::chrono::milliseconds(50);
  const auto ended = [&] {
    const GilRelease released;
    return fetch_->wait_for(look);
  };
  while (!ended()) {
    if (PyErr_CheckSignals() == 0) continue;
    nb::python_error raised;
    fetch_->cancel();
    while (!ended()) {
    }
    throw raised;
  }
  const GilRelease released;
  fetch_->wait();
}

fetch::ScanReport FetchHandle::look() const {
  wait();
  const GilRelease released;
  const fetch::FetchRequest& request = fetch_->request();
  if (request.to != fetch::Level::device)
    throw UsageError("look() needs columns on a device, but these are in host memory");
  fetch::TableView table;
  for (const std::uint32_t number : request.columns) {
    const fetch::Column& column = fetch_->source()->column_of(number);
    table.columns.push_back({.name = column.name, .type = {}, .nullable = column.nullable, .range = {}});
  }
  for (std::size_t f = 0; f < request.fragments.size(); ++f) {
    auto& fragment = table.fragments.emplace_back();
    for (std::size_t c = 0; c < request.columns.size(); ++c) {
      fragment.push_back(fetch_->view(c, f));
      table.columns[c].type = fragment[c].type;
    }
  }
  const Stream stream(device_);
  return fetch::look(stream, table);
}

}  // namespace headrace::python
