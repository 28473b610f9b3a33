#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace headrace::ingest {

/// An endless stream of bytes that is determined by a seed. Any part of it can be made alone, so that a receiver can
/// check what was sent without a copy. It is made at memory speed: words of a table in the first-level cache, XORed
/// with a word that changes every 32 KiB (Steele, Lea and Flood's SplitMix64, 2014). Not for cryptography.
class StreamBytes {
 public:
  explicit StreamBytes(std::uint64_t seed) noexcept;

  /// Fills `to` with the stream's bytes from `offset` on.
  void fill(std::uint64_t offset, std::span<std::byte> to) const noexcept;

 private:
  static constexpr std::size_t kWords = 4096;

  [[nodiscard]] std::uint64_t word(std::uint64_t index) const noexcept;

  std::uint64_t seed_;
  std::array<std::uint64_t, kWords> table_;
};

}  // namespace headrace::ingest
