#pragma once

#include <array>
#include <span>
#include <vector>

#include "fetch/program/program.hpp"
#include "fetch/query/typing.hpp"
#include "headrace/base/result.hpp"
#include "headrace/device/buffer.hpp"
#include "headrace/device/stream.hpp"
#include "headrace/fetch/scan.hpp"

/// Sorts rows on a device.
namespace headrace::fetch {

/// The values that a scan emitted: for each row of each output a register, and a byte that is 1 if there is a value.
struct Emitted {
  Buffer memory;
  std::vector<Output> outputs;
  Buffer on_device;  ///< The list of outputs, for kernels.
  std::int64_t rows = 0;

  Emitted() = default;
  /// Allocates uninitialised memory. Waits for the stream.
  Emitted(StreamRef stream, std::size_t outputs, std::int64_t rows);
};

/// How a value of each row maps to an unsigned word with the same order.
struct OrderKey {
  std::uint32_t value = 0;  ///< The number of its output.
  Kind kind = Kind::integer;
  bool descending = false;
  bool nullable = true;
  /// The type has at most 32 bits; the word of a missing value follows those of all others.
  bool narrow = false;
  std::uint8_t bits = 64;  ///< Bits of the words of values.
  std::int64_t least = 0;  ///< For a narrow type, the value whose word is 0.
  /// For strings with a dictionary: the rank of each entry, which becomes the word.
  const std::int32_t* ranks = nullptr;
  std::int64_t rank_count = 0;
};

/// `ranks` may be null. It must be in memory of the device that uses the key.
[[nodiscard]] OrderKey make_order_key(const Typed& type, const Order& by, const std::int32_t* ranks,
                                      std::int64_t rank_count);

/// The keys of a wide decimal whose low half is output `low` and whose high half is the next output.
[[nodiscard]] std::array<OrderKey, 2> make_wide_order_keys(std::uint32_t low, bool descending, bool nullable);

/// Arguments of the kernel that writes the words of rows for a sort.
struct OrderWords {
  OrderKey key;
  Output output;
  bool missing_only = false;  ///< Writes 1 for a missing value, otherwise 0.
  std::int64_t count = 0;
  bool first = false;             ///< First pass: rows are in the table's order, and the kernel writes `rows`.
  std::uint32_t* rows = nullptr;  ///< The row of each word.
  std::uint64_t* words = nullptr;
};

/// Arguments of the kernel that moves rows to their sorted places.
struct OrderMove {
  const Output* from = nullptr;
  const Output* to = nullptr;
  std::uint32_t outputs = 0;
  const std::uint32_t* rows = nullptr;
  std::int64_t count = 0;
};

[[nodiscard]] Status enqueue_order_words(StreamRef stream, const OrderWords& work) noexcept;
[[nodiscard]] Status enqueue_order_move(StreamRef stream, const OrderMove& work) noexcept;

/// Sorts the first `count` rows by `keys`, stably, and writes the first `limit` of them to the start of `to`. Waits.
/// Throws DeviceError when the device fails or lacks memory.
void order_rows(StreamRef stream, const Emitted& rows, std::int64_t count, std::span<const OrderKey> keys,
                const Emitted& to, std::int64_t limit);
/// Returns the first `limit` rows, stably sorted by `keys`. Throws DeviceError when the device fails or lacks memory.
[[nodiscard]] Emitted ordered_rows(StreamRef stream, const Emitted& rows, std::span<const OrderKey> keys,
                                   std::int64_t limit);

}  // namespace headrace::fetch
