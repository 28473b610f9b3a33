#include "wire/grpc/status.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <iterator>

#include "wire/request_error.hpp"

namespace headrace::wire::grpc {

namespace {

constexpr std::size_t kMessageMax = 1024;  // bytes; clients accept only a few KiB of headers

}  // namespace

StatusCode code_of(int http_status) noexcept {
  switch (http_status) {
    case kOk: return StatusCode::ok;
    case kBadRequest: return StatusCode::invalid_argument;
    case kUnauthorized: return StatusCode::unauthenticated;
    case kNotFound: return StatusCode::not_found;
    case kConflict: return StatusCode::already_exists;
    case kTooLarge:
    case kTooManyRequests: return StatusCode::resource_exhausted;
    case kNotImplemented: return StatusCode::unimplemented;
    case kUnavailable: return StatusCode::unavailable;
    case kRequestTimedOut:
    case kTimedOut: return StatusCode::deadline_exceeded;
    default: return StatusCode::internal;
  }
}

std::string encode_message(std::string_view message) {
  if (message.size() > kMessageMax) {
    std::size_t end = kMessageMax;
    while (end > 0 && (static_cast<unsigned char>(message[end]) & 0xC0U) == 0x80U) --end;  // cuts between characters
    message = message.substr(0, end);
  }
  std::string encoded;
  for (const char c : message) {
    if (c >= ' ' && c <= '~' && c != '%') {
      encoded += c;
    } else {
      fmt::format_to(std::back_inserter(encoded), "%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

std::optional<Duration> parse_timeout(std::string_view text) noexcept {
  constexpr std::size_t kDigitsMax = 8;
  if (text.size() < 2 || text.size() > kDigitsMax + 1) return {};
  const std::string_view digits = text.substr(0, text.size() - 1);
  std::uint32_t count = 0;
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  if (failure != std::errc{} || end != digits.data() + digits.size()) return {};
  switch (text.back()) {
    // 8 digits of hours exceed a Duration, which counts nanoseconds.
    case 'H': return std::chrono::hours(std::min<std::uint32_t>(count, 1'000'000));
    case 'M': return std::chrono::minutes(count);
    case 'S': return std::chrono::seconds(count);
    case 'm': return std::chrono::milliseconds(count);
    case 'u': return std::chrono::microseconds(count);
    case 'n': return std::chrono::nanoseconds(count);
    default: return {};
  }
}

}  // namespace headrace::wire::grpc
