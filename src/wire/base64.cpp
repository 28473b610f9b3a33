#include "wire/base64.hpp"

#include <cstdint>

namespace headrace::wire {

namespace {

constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::size_t kGroup = 4;  // characters, for 3 bytes

}  // namespace

std::optional<std::vector<std::byte>> decode_base64(std::string_view text) {
  if (text.size() % kGroup != 0) return {};
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  std::vector<std::byte> bytes;
  bytes.reserve(text.size() / kGroup * 3);
  std::uint32_t bits = 0;
  std::size_t count = 0;  // bits that are not yet in a byte
  for (const char c : text.substr(0, text.size() - padding)) {
    const std::size_t digit = kAlphabet.find(c);
    if (digit == std::string_view::npos) return {};
    bits = (bits << 6U | static_cast<std::uint32_t>(digit)) & 0xFFFFU;
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes.push_back(static_cast<std::byte>(bits >> count & 0xFFU));
  }
  if ((bits & ((1U << count) - 1U)) != 0) return {};  // the bits beyond the last byte must be 0
  return bytes;
}

}  // namespace headrace::wire
