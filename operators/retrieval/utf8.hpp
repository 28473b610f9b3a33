#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace headrace::operators {

/// The offset of the first byte that is not part of a well-formed UTF-8 sequence (Unicode 15, table 3-7), or
/// text.size() if all of it is well-formed.
[[nodiscard]] std::size_t valid_utf8_prefix(std::string_view text) noexcept;

/// The start of the character after the one at `at`, in valid text; `at` < text.size().
[[nodiscard]] inline std::size_t next_utf8(std::string_view text, std::size_t at) noexcept {
  do {
    ++at;
  } while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U);
  return at;
}

/// Decodes the character that begins at `at` in valid text, and moves `at` behind it; `at` < text.size().
[[nodiscard]] inline std::uint32_t decode_utf8(std::string_view text, std::size_t& at) noexcept {
  const auto lead = static_cast<unsigned char>(text[at++]);
  if (lead < 0x80U) return lead;
  const std::uint32_t following = lead < 0xE0U ? 1 : lead < 0xF0U ? 2 : 3;
  std::uint32_t character = lead & (0x3FU >> following);
  for (std::uint32_t i = 0; i < following; ++i) {
    character = character << 6U | (static_cast<unsigned char>(text[at++]) & 0x3FU);
  }
  return character;
}

/// Appends a character below U+10000 that is not a surrogate.
inline void append_utf8(std::string& text, char16_t character) {
  const auto following = [](std::uint32_t bits) { return static_cast<char>(0x80U | (bits & 0x3FU)); };
  const std::uint32_t bits = character;
  if (bits < 0x80U) {
    text += static_cast<char>(bits);
  } else if (bits < 0x800U) {
    text += static_cast<char>(0xC0U | bits >> 6U);
    text += following(bits);
  } else {
    text += static_cast<char>(0xE0U | bits >> 12U);
    text += following(bits >> 6U);
    text += following(bits);
  }
}

}  // namespace headrace::operators
