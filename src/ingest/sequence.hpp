#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "ingest/stream_bytes.hpp"

namespace headrace::ingest {

/// Where a datagram's number lies in its payload.
struct SequenceField {
  std::optional<std::uint32_t> offset;
  std::uint32_t bytes = 8;

  /// Bytes of a payload up to the end of its number.
  [[nodiscard]] std::uint32_t end() const noexcept { return offset ? *offset + bytes : 0; }
};

/// Throws UsageError for a number that does not have 4 or 8 bytes, or does not fit in a payload.
void check_sequence(const SequenceField& field, std::uint32_t payload_bytes);

/// Writes the number, big-endian, into a payload.
void write_sequence(const SequenceField& field, std::uint64_t number, std::span<std::byte> payload) noexcept;

/// Writes all of a payload but the number: zeros before it, and the stream from `offset` on after it. Returns how many
/// bytes of the stream it wrote.
std::uint64_t write_payload(const SequenceField& field, const StreamBytes& stream, std::uint64_t offset,
                            std::span<std::byte> payload) noexcept;

}  // namespace headrace::ingest
