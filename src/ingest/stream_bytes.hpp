#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace headrace::ingest {

/// An endless stream of bytes that follows from a seed, any part of which can be made alone: what is sent can be
/// checked without being kept. Made at memory speed: words of a table in the first-level cache, XORed with one that
/// changes every 32 KiB (Steele, Lea and Flood's SplitMix64, 2014). Looks random; is not for cryptography.
class StreamBytes {
 public:
  explicit StreamBytes(std::uint64_t seed) noexcept;

  /// The bytes from `offset` of the stream on.
  void fill(std::uint64_t offset, std::span<std::byte> to) const noexcept;

 private:
  static constexpr std::size_t kWords = 4096;

  [[nodiscard]] std::uint64_t word(std::uint64_t index) const noexcept;

  std::uint64_t seed_;
  std::array<std::uint64_t, kWords> table_;
};

}  // namespace headrace::ingest
