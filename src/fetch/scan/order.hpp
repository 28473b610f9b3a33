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

/// Rows on a device, put in order there.
namespace headrace::fetch {

/// Values that a scan has emitted: a register and a byte, 1 where there is a value, for each row of each output.
struct Emitted {
  Buffer memory;
  std::vector<Output> outputs;
  Buffer on_device;  ///< The list of outputs, for kernels.
  std::int64_t rows = 0;

  Emitted() = default;
  /// Memory that nothing has been written to. Waits for the stream.
  Emitted(StreamRef stream, std::size_t outputs, std::int64_t rows);
};

/// A value of each row as numbers without a sign that order as the values do.
struct OrderKey {
  std::uint32_t value = 0;  ///< Its output.
  Kind kind = Kind::integer;
  bool descending = false;
  bool nullable = true;
  /// The type has 32 bits or less: the number of a missing value follows on those of all others.
  bool narrow = false;
  std::uint8_t bits = 64;  ///< The bits of the numbers of values.
  std::int64_t least = 0;  ///< The value whose number is 0, of a narrow type.
  /// For strings that have a dictionary: the place in order of each entry, which is then the number.
  const std::int32_t* ranks = nullptr;
  std::int64_t rank_count = 0;
};

/// `ranks` may be null, and lie where the key is used.
[[nodiscard]] OrderKey make_order_key(const Typed& type, const Order& by, const std::int32_t* ranks,
                                      std::int64_t rank_count);

/// The keys of a wide decimal, whose low half is output `low` and whose high half is the next.
[[nodiscard]] std::array<OrderKey, 2> make_wide_order_keys(std::uint32_t low, bool descending, bool nullable);

/// The numbers of rows, for a sort.
struct OrderWords {
  OrderKey key;
  Output output;
  bool missing_only = false;  ///< 1 for a missing value, else 0.
  std::int64_t count = 0;
  bool first = false;             ///< Rows are in the table's order, and `rows` is to be written.
  std::uint32_t* rows = nullptr;  ///< The row that each word is of.
  std::uint64_t* words = nullptr;
};

/// Rows to where they belong.
struct OrderMove {
  const Output* from = nullptr;
  const Output* to = nullptr;
  std::uint32_t outputs = 0;
  const std::uint32_t* rows = nullptr;
  std::int64_t count = 0;
};

[[nodiscard]] Status enqueue_order_words(StreamRef stream, const OrderWords& work) noexcept;
[[nodiscard]] Status enqueue_order_move(StreamRef stream, const OrderMove& work) noexcept;

/// Puts the first `limit` rows in the order of `keys`, of the first `count` ones, where `to` begins; those that are
/// equal in it as they were. Waits. Throws DeviceError when the device fails or lacks memory.
void order_rows(StreamRef stream, const Emitted& rows, std::int64_t count, std::span<const OrderKey> keys,
                const Emitted& to, std::int64_t limit);
/// The first `limit` rows in the order of `keys`, those that are equal in it as they were. Throws DeviceError when the
/// device fails or lacks memory.
[[nodiscard]] Emitted ordered_rows(StreamRef stream, const Emitted& rows, std::span<const OrderKey> keys,
                                   std::int64_t limit);

}  // namespace headrace::fetch
