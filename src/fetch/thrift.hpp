#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "headrace/base/error.hpp"

namespace headrace::fetch {

/// Reads Thrift's compact protocol from bytes that anyone may have written:
/// https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md. Throws DataError if they end
/// early or are invalid.
class ThriftReader {
 public:
  enum class Type : std::uint8_t {
    stop,
    boolean_true,
    boolean_false,
    int8,
    int16,
    int32,
    int64,
    float64,
    binary,
    list,
    set,
    map,
    structure,
    uuid
  };

  explicit ThriftReader(std::span<const std::byte> bytes) noexcept : left_(bytes) {}

  /// Calls take(number, type) for every field of a structure. `take` reads the field, or returns false to have it
  /// skipped.
  template <class Take>
  void each_field(Take take) {
    std::int16_t number = 0;
    while (true) {
      const std::uint8_t header = byte();
      const Type type = checked(header & 0x0F);
      if (type == Type::stop) return;
      const int step = header >> 4;
      number = static_cast<std::int16_t>(step == 0 ? integer() : number + step);
      if (!take(number, type)) skip(type);
    }
  }

  /// Calls take(), which reads one item, for every item of a list. The items must be of type `expected`.
  template <class Take>
  void each_item(Type expected, Take take) {
    const auto [count, type] = list();
    if (type != expected && count > 0) throw DataError("a list has items of the wrong type");
    for (std::uint64_t i = 0; i < count; ++i) take();
  }

  [[nodiscard]] std::int64_t integer() {
    const std::uint64_t bits = varint();
    return static_cast<std::int64_t>(bits >> 1) ^ -static_cast<std::int64_t>(bits & 1);
  }
  [[nodiscard]] std::string_view binary() {
    const std::uint64_t size = varint();
    const auto bytes = take(size);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  void skip(Type type) { skip(type, kDepthMost); }

 private:
  static constexpr int kDepthMost = 32;

  struct List {
    std::uint64_t count;
    Type type;
  };

  [[nodiscard]] static Type checked(int type) {
    if (type > static_cast<int>(Type::uuid)) throw DataError("a field has an unknown type");
    return static_cast<Type>(type);
  }
  [[nodiscard]] std::span<const std::byte> take(std::uint64_t count) {
    if (count > left_.size()) throw DataError("the data ends too soon");
    const auto taken = left_.first(static_cast<std::size_t>(count));
    left_ = left_.subspan(static_cast<std::size_t>(count));
    return taken;
  }
  [[nodiscard]] std::uint8_t byte() { return std::to_integer<std::uint8_t>(take(1)[0]); }
  [[nodiscard]] std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const std::uint8_t part = byte();
      value |= std::uint64_t{part & 0x7FU} << shift;
      if (part < 0x80) return value;
    }
    throw DataError("a number has more than 64 bits");
  }
  /// Reads the head of a list. Every item takes at least one byte, so the bytes left bound the count.
  [[nodiscard]] List list() {
    const std::uint8_t header = byte();
    constexpr std::uint8_t long_form = 15;
    const std::uint64_t count = header >> 4 == long_form ? varint() : header >> 4;
    if (count > left_.size()) throw DataError("the data ends too soon");
    return {count, checked(header & 0x0F)};
  }
  void skip_items(std::uint64_t count, Type type, int depth) {
    for (std::uint64_t i = 0; i < count; ++i) {
      // In a container, a boolean takes a byte; in a field, its type holds the value.
      type == Type::boolean_true || type == Type::boolean_false ? static_cast<void>(byte()) : skip(type, depth);
    }
  }
  void skip(Type type, int depth) {
    if (depth == 0) throw DataError("structures are nested too deeply");
    switch (type) {
      case Type::stop: throw DataError("a field has an unknown type");
      case Type::boolean_true:
      case Type::boolean_false: return;
      case Type::int8: return static_cast<void>(byte());
      case Type::int16:
      case Type::int32:
      case Type::int64: return static_cast<void>(varint());
      case Type::float64: return static_cast<void>(take(sizeof(double)));
      case Type::uuid: return static_cast<void>(take(16));
      case Type::binary: return static_cast<void>(binary());
      case Type::list:
      case Type::set: {
        const auto [count, item] = list();
        return skip_items(count, item, depth - 1);
      }
      case Type::map: {
        const std::uint64_t count = varint();
        if (count == 0) return;
        const std::uint8_t types = byte();
        for (std::uint64_t i = 0; i < count; ++i) {
          skip_items(1, checked(types >> 4), depth - 1);
          skip_items(1, checked(types & 0x0F), depth - 1);
        }
        return;
      }
      case Type::structure: return skip_fields(depth - 1);
    }
  }
  void skip_fields(int depth) {
    each_field([&](std::int16_t, Type type) {
      skip(type, depth);
      return true;
    });
  }

  std::span<const std::byte> left_;
};

}  // namespace headrace::fetch
