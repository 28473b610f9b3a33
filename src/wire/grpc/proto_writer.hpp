#pragma once

#include <cstdint>
#include <string>
#include <string_view>

/// Appends fields of messages to `out` in the wire format of protocol buffers.
/// Source: protobuf.dev/programming-guides/encoding.
namespace headrace::wire::grpc {

/// Writes a number without its field, as in packed elements and lengths.
void put_number(std::string& out, std::uint64_t number);
/// Number of bytes that put_number() writes.
[[nodiscard]] std::size_t number_bytes(std::uint64_t number) noexcept;

void put_number_field(std::string& out, std::uint32_t field, std::uint64_t number);
/// Writes the head of a field of `size` bytes, which must follow: bytes, a string, a message or packed numbers.
void put_bytes_head(std::string& out, std::uint32_t field, std::size_t size);
void put_bytes(std::string& out, std::uint32_t field, std::string_view bytes);

}  // namespace headrace::wire::grpc
