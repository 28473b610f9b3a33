#include "operators/retrieval/xxh64.hpp"

#include <array>
#include <bit>
#include <cstring>

namespace headrace::operators {

namespace {

constexpr std::uint64_t kPrime1 = 0x9E3779B185EBCA87ULL;
constexpr std::uint64_t kPrime2 = 0xC2B2AE3D27D4EB4FULL;
constexpr std::uint64_t kPrime3 = 0x165667B19E3779F9ULL;
constexpr std::uint64_t kPrime4 = 0x85EBCA77C2B2AE63ULL;
constexpr std::uint64_t kPrime5 = 0x27D4EB2F165667C5ULL;

template <class T>
T read(const std::byte*& at) noexcept {
  T value;
  std::memcpy(&value, at, sizeof(T));
  at += sizeof(T);
  return value;
}

std::uint64_t round(std::uint64_t lane, std::uint64_t input) noexcept {
  return std::rotl(lane + input * kPrime2, 31) * kPrime1;
}

/// Digests whole stripes of 32 bytes in four independent lanes.
std::uint64_t digest_stripes(const std::byte*& at, const std::byte* end) noexcept {
  std::array<std::uint64_t, 4> lanes{kPrime1 + kPrime2, kPrime2, 0, 0 - kPrime1};
  while (end - at >= 32) {
    for (auto& lane : lanes) lane = round(lane, read<std::uint64_t>(at));
  }
  std::uint64_t hash =
      std::rotl(lanes[0], 1) + std::rotl(lanes[1], 7) + std::rotl(lanes[2], 12) + std::rotl(lanes[3], 18);
  for (const auto lane : lanes) hash = (hash ^ round(0, lane)) * kPrime1 + kPrime4;
  return hash;
}

}  // namespace

std::uint64_t xxh64(std::span<const std::byte> bytes) noexcept {
  const std::byte* at = bytes.data();
  const std::byte* const end = at + bytes.size();
  std::uint64_t hash = bytes.size() >= 32 ? digest_stripes(at, end) : kPrime5;
  hash += bytes.size();
  while (end - at >= 8) hash = std::rotl(hash ^ round(0, read<std::uint64_t>(at)), 27) * kPrime1 + kPrime4;
  if (end - at >= 4) hash = std::rotl(hash ^ (read<std::uint32_t>(at) * kPrime1), 23) * kPrime2 + kPrime3;
  while (at != end) hash = std::rotl(hash ^ (read<std::uint8_t>(at) * kPrime5), 11) * kPrime1;
  hash = (hash ^ (hash >> 33)) * kPrime2;
  hash = (hash ^ (hash >> 29)) * kPrime3;
  return hash ^ (hash >> 32);
}

}  // namespace headrace::operators
