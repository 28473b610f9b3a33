#pragma once

#include <cstdint>
#include <string_view>

namespace headrace::wire::grpc {

/// Reads the fields of a message in the wire format of protocol buffers in place, one after the other. It copies and
/// allocates nothing, so that a message cannot make the server use more memory than the message itself takes. Every
/// method throws RequestError for a malformed message.
/// Source: protobuf.dev/programming-guides/encoding.
class ProtoReader {
 public:
  explicit ProtoReader(std::string_view message) noexcept : rest_(message) {}

  /// Advances to the next field; false after the last one.
  [[nodiscard]] bool next();
  /// The number of the present field.
  [[nodiscard]] std::uint32_t field() const noexcept { return field_; }

  /// The value of the present field. Throws RequestError for a field of another wire type.
  [[nodiscard]] std::uint64_t number() const;
  [[nodiscard]] std::string_view bytes() const;
  /// Bytes, which must be UTF-8.
  [[nodiscard]] std::string_view text() const;
  [[nodiscard]] ProtoReader message() const { return ProtoReader(bytes()); }

  /// Calls each(number) for the elements of a repeated field of whole numbers, packed or not.
  template <class Each>
  void each_number(Each each) const {
    if (type_ != Type::bytes) return each(number());
    for (std::string_view packed = value_bytes_; !packed.empty();) each(take_number(packed));
  }
  /// The elements of a repeated field of numbers of `size` bytes, 4 or 8, packed or not: a multiple of `size` bytes.
  [[nodiscard]] std::string_view fixed_numbers(std::size_t size) const;

 private:
  enum class Type : std::uint8_t { number = 0, eight_bytes = 1, bytes = 2, four_bytes = 5 };

  static std::uint64_t take_number(std::string_view& from);
  static std::string_view take(std::string_view& from, std::uint64_t count);

  std::string_view rest_;
  std::uint32_t field_ = 0;
  Type type_ = Type::number;
  std::uint64_t number_ = 0;
  std::string_view value_bytes_;
};

}  // namespace headrace::wire::grpc
