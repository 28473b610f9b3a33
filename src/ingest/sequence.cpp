#include "ingest/sequence.hpp"

#include <fmt/format.h>

#include <cstring>

#include "headrace/base/error.hpp"
#include "headrace/ingest/detail/wire.hpp"

namespace headrace::ingest {

void check_sequence(const SequenceField& field, std::uint32_t payload_bytes) {
  if (field.bytes != 4 && field.bytes != 8) {
    throw UsageError(fmt::format("sequence numbers have 4 or 8 bytes, not {}", field.bytes));
  }
  const std::uint64_t end = field.offset ? std::uint64_t{*field.offset} + field.bytes : 0;
  if (payload_bytes == 0 || payload_bytes < end) {
    throw UsageError(
        fmt::format("a payload of {} bytes is empty or too short for its sequence number, which ends at byte {}",
                    payload_bytes, end));
  }
}

void write_sequence(const SequenceField& field, std::uint64_t number, std::span<std::byte> payload) noexcept {
  if (!field.offset) return;
  std::byte* at = payload.data() + *field.offset;
  if (field.bytes == 8) {
    store_be32(at, static_cast<std::uint32_t>(number >> 32));
    at += 4;
  }
  store_be32(at, static_cast<std::uint32_t>(number));
}

std::uint64_t write_payload(const SequenceField& field, const StreamBytes& stream, std::uint64_t offset,
                            std::span<std::byte> payload) noexcept {
  std::memset(payload.data(), 0, field.end());
  stream.fill(offset, payload.subspan(field.end()));
  return payload.size() - field.end();
}

}  // namespace headrace::ingest
