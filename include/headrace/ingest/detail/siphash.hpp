#pragma once

#include <cstdint>

#include "headrace/device/group.hpp"

namespace headrace::ingest {

/// A secret of 128 bits, from the system's random numbers.
struct HashKey {
  std::uint64_t words[2] = {0, 0};
};

/// SipHash-2-4 (Aumasson and Bernstein, 2012) of whole 64-bit words: a peer that does not know the key can neither
/// guess the value nor make many inputs collide.
[[nodiscard, gnu::noinline]] HEADRACE_HD inline std::uint64_t siphash(const HashKey& key, const std::uint64_t* words,
                                                                      std::uint32_t count) {
  std::uint64_t v0 = key.words[0] ^ 0x736f6d6570736575;
  std::uint64_t v1 = key.words[1] ^ 0x646f72616e646f6d;
  std::uint64_t v2 = key.words[0] ^ 0x6c7967656e657261;
  std::uint64_t v3 = key.words[1] ^ 0x7465646279746573;
  const auto rotate = [](std::uint64_t value, int by) { return (value << by) | (value >> (64 - by)); };
  const auto mix = [&](int rounds) {
    for (int i = 0; i < rounds; ++i) {
      v0 += v1;
      v1 = rotate(v1, 13) ^ v0;
      v0 = rotate(v0, 32);
      v2 += v3;
      v3 = rotate(v3, 16) ^ v2;
      v0 += v3;
      v3 = rotate(v3, 21) ^ v0;
      v2 += v1;
      v1 = rotate(v1, 17) ^ v2;
      v2 = rotate(v2, 32);
    }
  };
  for (std::uint32_t i = 0; i <= count; ++i) {
    const std::uint64_t word = i < count ? words[i] : std::uint64_t{count * 8 & 0xFF} << 56;
    v3 ^= word;
    mix(2);
    v0 ^= word;
  }
  v2 ^= 0xFF;
  mix(4);
  return v0 ^ v1 ^ v2 ^ v3;
}

}  // namespace headrace::ingest
