#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace headrace::wire {

/// The span of a caller that a request is part of, as W3C Trace Context identifies it.
struct TraceParent {
  std::array<std::uint8_t, 16> trace{};
  std::array<std::uint8_t, 8> span{};
};

/// A sampled inference request and the times of its stages, in nanoseconds since 1970. 0: the request did not reach the
/// stage.
struct RequestTrace {
  TraceParent parent;
  std::string model;
  std::string version;
  std::string protocol;  ///< "http" or "grpc".
  bool high = false;     ///< Its priority.
  int status = 0;        ///< The HTTP status, whatever the protocol.
  std::size_t queries = 0;
  std::int64_t arrived = 0;    ///< The first byte arrived.
  std::int64_t began = 0;      ///< The request had been read and checked.
  std::int64_t submitted = 0;  ///< The last of its queries went to the engine.
  std::int64_t back = 0;       ///< The server had all answers.
  std::int64_t ended = 0;      ///< The reply was ready to send.
};

}  // namespace headrace::wire
