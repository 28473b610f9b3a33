#include "operators/retrieval/utf8.hpp"

#include <cstdint>
#include <cstring>

namespace headrace::operators {

namespace {

/// What may follow a lead byte: the number of bytes, and the range of the first of them.
struct Lead {
  std::size_t following;
  unsigned char low = 0x80;
  unsigned char high = 0xBF;
};

/// `following` is 0 for a byte that starts no sequence.
Lead classify(unsigned char byte) noexcept {
  if (byte >= 0xC2 && byte <= 0xDF) return {1};
  if (byte == 0xE0) return {2, 0xA0, 0xBF};  // no overlong forms
  if (byte == 0xED) return {2, 0x80, 0x9F};  // no surrogates
  if (byte >= 0xE1 && byte <= 0xEF) return {2};
  if (byte == 0xF0) return {3, 0x90, 0xBF};
  if (byte >= 0xF1 && byte <= 0xF3) return {3};
  if (byte == 0xF4) return {3, 0x80, 0x8F};  // nothing above U+10FFFF
  return {0};
}

bool ascii_word(const char* at) noexcept {
  std::uint64_t word;
  std::memcpy(&word, at, sizeof(word));
  return (word & 0x8080808080808080ULL) == 0;
}

}  // namespace

std::size_t valid_utf8_prefix(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  std::size_t at = 0;
  while (at < text.size()) {
    if (text.size() - at >= 8 && ascii_word(text.data() + at)) {
      at += 8;
      continue;
    }
    if (byte(at) < 0x80) {
      ++at;
      continue;
    }
    const Lead lead = classify(byte(at));
    if (lead.following == 0 || text.size() - at <= lead.following) return at;
    if (byte(at + 1) < lead.low || byte(at + 1) > lead.high) return at;
    for (std::size_t i = 2; i <= lead.following; ++i) {
      if ((byte(at + i) & 0xC0) != 0x80) return at;
    }
    at += lead.following + 1;
  }
  return at;
}

}  // namespace headrace::operators
