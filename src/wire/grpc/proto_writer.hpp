#pragma once

#include <cstdint>
#include <string>
#include <string_view>

/// Writes fields of messages in the wire format of protocol buffers behind what `out` has.
/// Source: protobuf.dev/programming-guides/encoding.
namespace headrace::wire::grpc {

/// A number without its field, as packed elements and lengths are written.
void put_number(std::string& out, std::uint64_t number);
/// Bytes that put_number() writes.
[[nodiscard]] std::size_t number_bytes(std::uint64_t number) noexcept;

void put_number_field(std::string& out, std::uint32_t field, std::uint64_t number);
/// The head of a field of `size` bytes, which come next: bytes, a text, a message, packed numbers.
void put_bytes_head(std::string& out, std::uint32_t field, std::size_t size);
void put_bytes(std::string& out, std::uint32_t field, std::string_view bytes);

}  // namespace headrace::wire::grpc
