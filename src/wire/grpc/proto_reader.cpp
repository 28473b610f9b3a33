#include "wire/grpc/proto_reader.hpp"

#include <fmt/format.h>

#include <limits>

#include "wire/request_error.hpp"

namespace headrace::wire::grpc {

namespace {

[[noreturn]] void malformed(std::string_view why) {
  throw RequestError(kBadRequest, fmt::format("the request is not a valid protocol buffers message: {}", why));
}

/// Length in bytes of the UTF-8 character that `text` begins with; 0 if it begins with none (RFC 3629, section 4).
std::size_t character_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const auto follows = [&](std::size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
  const unsigned first = byte(0);
  const unsigned second = byte(1);
  if (first < 0x80) return 1;
  if (first < 0xC2 || !follows(1)) return 0;
  if (first < 0xE0) return 2;
  if (!follows(2)) return 0;
  if (first < 0xF0) {
    const bool overlong = first == 0xE0 && second < 0xA0;
    const bool surrogate = first == 0xED && second > 0x9F;
    return overlong || surrogate ? 0 : 3;
  }
  const bool overlong = first == 0xF0 && second < 0x90;
  const bool beyond = first > 0xF4 || (first == 0xF4 && second > 0x8F);
  return overlong || beyond || !follows(3) ? 0 : 4;
}

}  // namespace

bool ProtoReader::next() {
  if (rest_.empty()) return false;
  constexpr unsigned kTypeBits = 3;
  const std::uint64_t tag = take_number(rest_);
  if (tag > std::numeric_limits<std::uint32_t>::max() || tag >> kTypeBits == 0)
    malformed("a field has an invalid number");
  field_ = static_cast<std::uint32_t>(tag >> kTypeBits);
  type_ = static_cast<Type>(tag & 7);
  switch (type_) {
    case Type::number: number_ = take_number(rest_); return true;
    case Type::eight_bytes: value_bytes_ = take(rest_, 8); return true;
    case Type::four_bytes: value_bytes_ = take(rest_, 4); return true;
    case Type::bytes: {
      const std::uint64_t count = take_number(rest_);
      value_bytes_ = take(rest_, count);
      return true;
    }
  }
  malformed("a field has an unknown wire type");
}

std::uint64_t ProtoReader::number() const {
  if (type_ != Type::number) malformed(fmt::format("field {} is not a whole number", field_));
  return number_;
}

std::string_view ProtoReader::bytes() const {
  if (type_ != Type::bytes) malformed(fmt::format("field {} is neither bytes nor a message", field_));
  return value_bytes_;
}

std::string_view ProtoReader::text() const {
  const std::string_view text = bytes();
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t count = character_bytes(rest);
    if (count == 0) malformed(fmt::format("field {} is not valid UTF-8", field_));
    rest.remove_prefix(count);
  }
  return text;
}

std::string_view ProtoReader::fixed_numbers(std::size_t size) const {
  const Type single = size == 4 ? Type::four_bytes : Type::eight_bytes;
  if (type_ != single && type_ != Type::bytes)
    malformed(fmt::format("field {} does not have numbers of {} bytes", field_, size));
  if (value_bytes_.size() % size != 0) malformed(fmt::format("field {} ends in the middle of a number", field_));
  return value_bytes_;
}

std::uint64_t ProtoReader::take_number(std::string_view& from) {
  constexpr unsigned kBits = 7;  // bits of the number in each byte
  constexpr std::size_t kBytesMax = 10;
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < from.size() && i < kBytesMax; ++i) {
    const auto byte = static_cast<unsigned char>(from[i]);
    if (i + 1 == kBytesMax && byte > 1) break;
    number |= std::uint64_t{byte & 0x7FU} << (kBits * i);
    if ((byte & 0x80U) == 0) {
      from.remove_prefix(i + 1);
      return number;
    }
  }
  malformed(from.size() < kBytesMax ? "it ends in the middle of a number" : "a number has more than 64 bits");
}

std::string_view ProtoReader::take(std::string_view& from, std::uint64_t count) {
  if (count > from.size()) malformed("it ends in the middle of a field");
  const std::string_view taken = from.substr(0, count);
  from.remove_prefix(count);
  return taken;
}

}  // namespace headrace::wire::grpc
