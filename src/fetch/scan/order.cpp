#include "fetch/scan/order.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "headrace/base/error.hpp"
#include "headrace/device/detail/pair_sorter.hpp"
#include "headrace/device/detail/uploads.hpp"

namespace headrace::fetch {

namespace {

constexpr const char* kOrdering = "ordering the rows of a scan";
constexpr std::uint32_t kNarrowBits = 32;

}  // namespace

OrderKey make_order_key(const Typed& type, const Order& by, const std::int32_t* ranks, std::int64_t rank_count) {
  OrderKey key{.value = by.value,
               .kind = kind_of(type.type),
               .descending = by.descending,
               .nullable = type.nullable,
               .ranks = ranks,
               .rank_count = rank_count};
  const std::uint32_t bits = value_bits(type.type);
  if (ranks != nullptr) {
    key.narrow = true;
    key.bits = static_cast<std::uint8_t>(std::bit_width(static_cast<std::uint64_t>(rank_count)));
  } else if (key.kind == Kind::integer && bits <= kNarrowBits) {
    key.narrow = true;
    key.bits = static_cast<std::uint8_t>(bits);
    const Type integer = type.type.id == Type::dictionary ? type.type.index : type.type.id;
    const bool natural = integer == Type::boolean || (integer >= Type::uint8 && integer <= Type::uint32);
    key.least = natural ? 0 : -(std::int64_t{1} << (bits - 1));
  }
  return key;
}

std::array<OrderKey, 2> make_wide_order_keys(std::uint32_t low, bool descending, bool nullable) {
  const OrderKey high{.value = low + 1, .kind = Kind::integer, .descending = descending, .nullable = nullable};
  // Only the high half needs to tell missing values apart.
  return {high, OrderKey{.value = low, .kind = Kind::natural, .descending = descending, .nullable = false}};
}

Emitted::Emitted(StreamRef stream, std::size_t output_count, std::int64_t row_count) : rows(row_count) {
  const auto count = static_cast<std::size_t>(row_count);
  memory = Buffer(stream.device(), MemoryKind::pool, output_count * count * (sizeof(std::int64_t) + 1));
  for (std::size_t i = 0; i < output_count; ++i) {
    std::byte* const valid = memory.data() + output_count * count * sizeof(std::int64_t) + i * count;
    outputs.push_back(
        {.values = memory.as<std::int64_t>() + i * count, .valid = reinterpret_cast<std::uint8_t*>(valid)});
  }
  const std::size_t bytes = output_count * sizeof(Output);
  on_device = Buffer(stream.device(), MemoryKind::pool, bytes);
  stream.copy(on_device.data(), outputs.data(), bytes).or_throw(kOrdering);
  stream.wait().or_throw(kOrdering);
}

void order_rows(StreamRef stream, const Emitted& rows, std::int64_t count, std::span<const OrderKey> keys,
                const Emitted& to, std::int64_t limit) {
  const std::int64_t wanted = std::min(count, limit);
  if (wanted == 0) return;
  PairSorter sorter(stream, static_cast<std::size_t>(count));
  const WaitAtEnd settled(stream);
  bool first = true;
  const auto pass = [&](const OrderKey& key, bool missing_only, std::uint32_t bits) {
    const OrderWords words{.key = key,
                           .output = rows.outputs[key.value],
                           .missing_only = missing_only,
                           .count = count,
                           .first = std::exchange(first, false),
                           .rows = sorter.values(),
                           .words = sorter.keys()};
    enqueue_order_words(stream, words).or_throw(kOrdering);
    sorter.sort(bits).or_throw(kOrdering);
  };
  // Sorts are stable, so it sorts by the least significant key first.
  for (auto key = keys.rbegin(); key != keys.rend(); ++key) {
    pass(*key, false, key->narrow ? key->bits + 1U : key->bits);
    if (key->nullable && !key->narrow && key->kind != Kind::real) pass(*key, true, 1);
  }
  enqueue_order_move(stream, {.from = rows.on_device.as<const Output>(),
                              .to = to.on_device.as<const Output>(),
                              .outputs = static_cast<std::uint32_t>(rows.outputs.size()),
                              .rows = sorter.values(),
                              .count = wanted})
      .or_throw(kOrdering);
  stream.wait().or_throw(kOrdering);
}

Emitted ordered_rows(StreamRef stream, const Emitted& rows, std::span<const OrderKey> keys, std::int64_t limit) {
  Emitted ordered(stream, rows.outputs.size(), std::min(rows.rows, limit));
  order_rows(stream, rows, rows.rows, keys, ordered, limit);
  return ordered;
}

}  // namespace headrace::fetch
