#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "headrace/base/detail/clock.hpp"

namespace headrace::wire::grpc {

/// The gRPC status codes that the server uses.
enum class StatusCode : std::uint8_t {
  ok = 0,
  invalid_argument = 3,
  deadline_exceeded = 4,
  not_found = 5,
  already_exists = 6,
  resource_exhausted = 8,
  unimplemented = 12,
  internal = 13,
  unavailable = 14,
  unauthenticated = 16,
};

/// How a call ended.
struct CallStatus {
  StatusCode code = StatusCode::ok;
  std::string message = {};
};

/// The gRPC code for an HTTP status.
[[nodiscard]] StatusCode code_of(int http_status) noexcept;

/// Encodes a message for the header grpc-message: percent-encoded, and cut if it is very long.
/// Source: grpc/grpc, doc/PROTOCOL-HTTP2.md.
[[nodiscard]] std::string encode_message(std::string_view message);

/// Parses the header grpc-timeout: at most 8 digits, followed by H, M, S, m, u or n. Empty for any other text.
[[nodiscard]] std::optional<Duration> parse_timeout(std::string_view text) noexcept;

}  // namespace headrace::wire::grpc
