#include <fuzzer/FuzzedDataProvider.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "fetch/host_chunk.hpp"
#include "headrace/base/error.hpp"
#include "headrace/fetch/arrow.hpp"
#include "headrace/fetch/source.hpp"

namespace {

using namespace headrace::fetch;

constexpr std::size_t kChildren = 6;  ///< Capacity; unused entries are null.
constexpr std::array kFormats{"b", "c", "s", "i", "l", "C", "I", "f", "g", "tdD", "tsu:", "d:10,2", "d:38,0,128"};
constexpr std::array kEntryFormats{"u", "U", "z", "Z", "i"};

/// Lies that a consumer can detect. It cannot detect a length that exceeds the buffers.
std::int64_t lie(FuzzedDataProvider& data) {
  constexpr std::array<std::int64_t, 7> lies{-1,
                                             -2,
                                             std::numeric_limits<std::int64_t>::min(),
                                             std::numeric_limits<std::int64_t>::max(),
                                             std::int64_t{1} << 60,
                                             kTableRowsMax + 1,
                                             std::int64_t{1} << 63 >> 1};
  return data.PickValueInArray(lies);
}

/// A buffer of exactly the claimed size, at any alignment.
const void* bytes_of(FuzzedDataProvider& data, std::int64_t count, std::vector<std::unique_ptr<std::byte[]>>& owned) {
  const std::size_t skip = data.ConsumeIntegralInRange<std::size_t>(0, 9) == 9 ? 1 : 0;
  const auto size = static_cast<std::size_t>(count);
  auto& memory = owned.emplace_back(new std::byte[size + skip]);
  const auto given = data.ConsumeBytes<std::uint8_t>(size);
  std::memset(memory.get(), 0, size + skip);
  if (!given.empty()) std::memcpy(memory.get() + skip, given.data(), given.size());
  return memory.get() + skip;
}

struct Node {
  ArrowArray array{};
  std::array<const void*, 3> buffers{};
  std::unique_ptr<ArrowArray*[]> children;
  bool strings = false;  ///< The length gives its size in bytes.
};

/// Memory that a batch's private_data owns.
struct Memory {
  std::vector<std::unique_ptr<std::byte[]>> bytes;
  std::vector<std::unique_ptr<Node>> nodes;
  Node& add() { return *nodes.emplace_back(std::make_unique<Node>()); }
};

int batches_alive = 0;

void release_batch(ArrowArray* array) {
  delete static_cast<Memory*>(array->private_data);
  array->release = nullptr;
  --batches_alive;
}

/// A dictionary of strings with arbitrary offsets.
ArrowArray* dictionary_of(FuzzedDataProvider& data, bool large, Memory& memory) {
  Node& node = memory.add();
  ArrowArray& array = node.array;
  array.length = data.ConsumeIntegralInRange<std::int64_t>(0, 6);
  array.offset = data.ConsumeIntegralInRange<std::int64_t>(0, 2);
  const std::int64_t items = array.offset + array.length + 1;
  const std::size_t width = large ? 8 : 4;
  node.buffers[1] = bytes_of(data, items * static_cast<std::int64_t>(width), memory.bytes);
  std::int64_t all = 0;  // as many bytes as the last offset claims
  std::memcpy(&all, static_cast<const std::byte*>(node.buffers[1]) + static_cast<std::size_t>(items - 1) * width,
              width);
  if (!large) all = static_cast<std::int32_t>(all);
  constexpr std::int64_t most = 64;
  if (all > most) {
    all = data.ConsumeIntegralInRange<std::int64_t>(0, most);
    auto* last = const_cast<std::byte*>(static_cast<const std::byte*>(node.buffers[1])) +
                 static_cast<std::size_t>(items - 1) * width;
    std::memcpy(last, &all, width);
  }
  node.buffers[2] = data.ConsumeBool() ? bytes_of(data, all < 0 ? 0 : all, memory.bytes) : nullptr;
  if (data.ConsumeBool()) {
    node.buffers[0] = bytes_of(data, (items + 7) / 8, memory.bytes);
    array.null_count = data.ConsumeIntegralInRange<std::int64_t>(-1, array.length);
  }
  array.n_buffers = 3;
  array.buffers = node.buffers.data();
  node.strings = true;
  return &array;
}

struct ColumnOf {
  std::string format;
  bool dictionary = false;
  bool large = false;
};

ArrowArray* column_of(FuzzedDataProvider& data, const ColumnOf& column, std::int64_t positions, Memory& memory) {
  Node& node = memory.add();
  ArrowArray& array = node.array;
  const auto type = parse_format(column.format);
  array.offset = data.ConsumeIntegralInRange<std::int64_t>(0, 12);
  array.length = positions + data.ConsumeIntegralInRange<std::int64_t>(0, 2);
  const std::int64_t all = array.offset + array.length;
  node.buffers[1] = bytes_of(data, values_bytes(type.value_or(DataType{.id = Type::decimal128}), all), memory.bytes);
  if (data.ConsumeBool()) {
    node.buffers[0] = bytes_of(data, (all + 7) / 8, memory.bytes);
    array.null_count = data.ConsumeIntegralInRange<std::int64_t>(-1, array.length);
  }
  array.n_buffers = 2;
  array.buffers = node.buffers.data();
  if (column.dictionary) array.dictionary = dictionary_of(data, column.large, memory);
  return &array;
}

void tell_a_lie(FuzzedDataProvider& data, ArrowArray& array, Node& node) {
  switch (data.ConsumeIntegralInRange(0, 9)) {
    case 0: array.length = lie(data); break;
    case 1: array.offset = lie(data); break;
    case 2: array.null_count = lie(data); break;
    case 3: array.n_buffers = data.ConsumeBool() ? lie(data) : data.ConsumeIntegralInRange<std::int64_t>(0, 4); break;
    case 4: array.buffers = nullptr; break;
    case 5: array.n_children = data.ConsumeBool() ? lie(data) : data.ConsumeIntegralInRange<std::int64_t>(0, 6); break;
    case 6: array.children = nullptr; break;
    case 7: array.dictionary = nullptr; break;
    case 8:
      if (!node.strings && array.length > 0) array.length = data.ConsumeIntegralInRange<std::int64_t>(0, array.length);
      break;
    default: node.buffers[data.ConsumeIntegralInRange<std::size_t>(0, 2)] = nullptr;
  }
}

ArrowSource::Batch batch_of(FuzzedDataProvider& data, const std::vector<ColumnOf>& columns) {
  auto memory = std::make_unique<Memory>();
  const auto rows = data.ConsumeIntegralInRange<std::int64_t>(0, 20);
  const auto offset = data.ConsumeIntegralInRange<std::int64_t>(0, 9);
  Node& node = memory->add();
  node.children = std::make_unique<ArrowArray*[]>(kChildren);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    node.children[i] = column_of(data, columns[i], offset + rows, *memory);
  }
  struct Honest {
    ArrowArray* array;
    std::int64_t length;
  };
  std::vector<Honest> honest;
  for (std::size_t i = 0; i < columns.size(); ++i) honest.push_back({node.children[i], node.children[i]->length});
  ArrowArray array{};
  array.length = rows;
  array.offset = offset;
  array.n_buffers = 1;
  array.buffers = node.buffers.data();
  array.n_children = static_cast<std::int64_t>(columns.size());
  array.children = node.children.get();
  for (int lies = data.ConsumeIntegralInRange(0, 3); lies > 0; --lies) {
    Node& one = *memory->nodes[data.ConsumeIntegralInRange<std::size_t>(0, memory->nodes.size() - 1)];
    const bool whole = &one == &node;
    if (whole && data.ConsumeBool()) {
      node.children[data.ConsumeIntegralInRange<std::size_t>(0, kChildren - 1)] = nullptr;
    } else {
      tell_a_lie(data, whole ? array : one.array, one);
    }
  }
  if (array.length != rows || array.offset != offset) {
    // The consumer believes lengths that agree, so nothing may agree with a lie that no buffer is long enough for.
    for (std::size_t i = 0; i < columns.size(); ++i) honest[i].array->length = honest[i].length;
  }
  array.private_data = memory.release();
  array.release = &release_batch;
  ++batches_alive;
  return {.array = OwnedArray(array), .file = data.ConsumeBool() ? "file" : "", .number = 1};
}

/// Reads a chunk both ways and checks that it gets what was promised.
void use(ArrowSource& source, Chunk chunk) {
  if (!source.ranges(chunk).empty()) __builtin_trap();  // nothing is mapped
  const Column& column = source.columns()[chunk.column];
  const std::int64_t rows = source.fragments()[chunk.fragment].rows;
  std::vector<std::int32_t> indices;
  std::vector<std::uint8_t> validity;
  const OwnedArray array = source.read(chunk);
  const ColumnView borrowed = borrow(source, chunk, *array, indices, validity);
  std::vector<std::byte> block(shape_bound(column.type, rows, column.nullable).bytes());
  const ColumnView put = put_in(source, chunk, *array, block.data());
  if (put.length != rows || borrowed.length != rows || put.offset > 7) __builtin_trap();
  const ChunkShape shape = shape_of(put);
  if (shape.bytes() > block.size()) __builtin_trap();
  const auto same = [](const std::byte* a, const std::byte* b, std::size_t bytes) {
    return bytes == 0 || std::memcmp(a, b, bytes) == 0;
  };
  if (!same(values_from(put), values_from(borrowed), shape.values_bytes)) __builtin_trap();
  if (!same(validity_from(put), validity_from(borrowed), shape.validity_bytes)) __builtin_trap();
}

void import(FuzzedDataProvider& data) {
  std::vector<ColumnOf> columns(data.ConsumeIntegralInRange<std::size_t>(0, 3));
  std::array<ArrowSchema, kChildren> schemas{};
  std::array<ArrowSchema, kChildren> entries{};
  std::array<ArrowSchema*, kChildren> children{};
  std::array<std::string, kChildren> names;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    ColumnOf& column = columns[i];
    column.format = data.ConsumeBool() ? data.PickValueInArray(kFormats) : data.ConsumeRandomLengthString(12);
    names[i] = data.ConsumeRandomLengthString(3);
    schemas[i].format = column.format.c_str();
    schemas[i].name = data.ConsumeBool() ? names[i].c_str() : nullptr;
    schemas[i].flags = data.ConsumeIntegralInRange<std::int64_t>(0, 7);
    column.dictionary = data.ConsumeBool();
    if (column.dictionary) {
      entries[i].format = data.PickValueInArray(kEntryFormats);
      column.large = *entries[i].format == 'U' || *entries[i].format == 'Z';
      schemas[i].dictionary = &entries[i];
    }
    children[i] = &schemas[i];
  }
  ArrowSchema schema{};
  schema.format = "+s";
  schema.n_children = static_cast<std::int64_t>(columns.size());
  schema.children = children.data();
  std::vector<ArrowSource::Batch> batches(data.ConsumeIntegralInRange<std::size_t>(0, 3));
  for (auto& batch : batches) batch = batch_of(data, columns);
  switch (data.ConsumeIntegralInRange(0, 12)) {
    case 0: schema.format = data.ConsumeBool() ? nullptr : "i"; break;
    case 1: schema.n_children = data.ConsumeBool() ? lie(data) : data.ConsumeIntegralInRange<std::int64_t>(0, 6); break;
    case 2: schema.children = nullptr; break;
    case 3: children[data.ConsumeIntegralInRange<std::size_t>(0, kChildren - 1)] = nullptr; break;
    case 4: schemas[data.ConsumeIntegralInRange<std::size_t>(0, kChildren - 1)].format = nullptr; break;
    case 5: entries[data.ConsumeIntegralInRange<std::size_t>(0, kChildren - 1)].format = nullptr; break;
    default: break;
  }
  ArrowSource source(schema, std::move(batches));
  for (std::uint32_t fragment = 0; fragment < source.fragments().size(); ++fragment) {
    for (std::uint32_t column = 0; column < source.columns().size(); ++column) {
      try {
        use(source, {.fragment = fragment, .column = column});
      } catch (const headrace::DataError&) {
        continue;
      }
    }
  }
}

}  // namespace

/// The importer either reads a table given through the C data interface as it is, or refuses it with a DataError or
/// UsageError; in both cases the table is released. Buffers are as long as their lengths say, because a consumer cannot
/// detect shorter ones.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  FuzzedDataProvider data(bytes, size);
  try {
    import(data);
  } catch (const headrace::DataError&) {  // reported
  } catch (const headrace::UsageError&) {
  }
  if (batches_alive != 0) __builtin_trap();
  return 0;
}
