#include "wire/grpc/proto_writer.hpp"

namespace headrace::wire::grpc {

namespace {

constexpr unsigned kBits = 7;  // bits of a number in each byte
constexpr unsigned kTypeBits = 3;
constexpr std::uint32_t kNumber = 0;
constexpr std::uint32_t kBytes = 2;

}  // namespace

void put_number(std::string& out, std::uint64_t number) {
  for (; number >= 0x80; number >>= kBits) out += static_cast<char>(static_cast<unsigned char>(number | 0x80U));
  out += static_cast<char>(static_cast<unsigned char>(number));
}

std::size_t number_bytes(std::uint64_t number) noexcept {
  std::size_t count = 1;
  for (; number >= 0x80; number >>= kBits) ++count;
  return count;
}

void put_number_field(std::string& out, std::uint32_t field, std::uint64_t number) {
  put_number(out, field << kTypeBits | kNumber);
  put_number(out, number);
}

void put_bytes_head(std::string& out, std::uint32_t field, std::size_t size) {
  put_number(out, field << kTypeBits | kBytes);
  put_number(out, size);
}

void put_bytes(std::string& out, std::uint32_t field, std::string_view bytes) {
  put_bytes_head(out, field, bytes.size());
  out += bytes;
}

}  // namespace headrace::wire::grpc
