#include "device/copies/host_copy.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace headrace::detail {

namespace {

#if defined(__x86_64__)

constexpr std::size_t kLine = 64;
/// Lines are demoted in blocks of this size, while they are still in the L1 cache.
constexpr std::size_t kBlock = 4096;
/// Shorter copies are not demoted, because other copies write to the same lines next.
constexpr std::size_t kDemotedBytesMin = 1024;

/// Demotes lines to the cache that all cores share. A device reads written lines from there much faster than from a
/// core's own caches. Processors without this instruction treat it as a no-op.
[[gnu::target("cldemote")]] void demote_lines(std::byte* from, std::size_t bytes) noexcept {
  for (; bytes >= kLine; from += kLine, bytes -= kLine) _cldemote(from);
}

void copy_demoting(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  for (std::size_t at = 0; at < bytes; at += kBlock) {
    const std::size_t here = std::min(kBlock, bytes - at);
    std::memcpy(to + at, from + at, here);
    demote_lines(to + at, here);
  }
}

/// In shorter copies, partial lines take more stores than whole lines.
constexpr std::size_t kStreamedBytesMin = 1024;

/// Writes whole lines. `to` is aligned to a line.
void stream_lines(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  for (std::size_t at = 0; at < bytes; at += kLine) {
    const auto* const source = reinterpret_cast<const __m128i*>(from + at);
    auto* const target = reinterpret_cast<__m128i*>(to + at);
    const __m128i a = _mm_loadu_si128(source);
    const __m128i b = _mm_loadu_si128(source + 1);
    const __m128i c = _mm_loadu_si128(source + 2);
    const __m128i d = _mm_loadu_si128(source + 3);
    _mm_stream_si128(target, a);
    _mm_stream_si128(target + 1, b);
    _mm_stream_si128(target + 2, c);
    _mm_stream_si128(target + 3, d);
  }
  _mm_sfence();  // only a fence orders streaming stores
}

void copy_streaming(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  const std::size_t head = std::min<std::size_t>(bytes, -reinterpret_cast<std::uintptr_t>(to) % kLine);
  const std::size_t lines = (bytes - head) / kLine * kLine;
  std::memcpy(to, from, head);
  stream_lines(to + head, from + head, lines);
  std::memcpy(to + head + lines, from + head + lines, bytes - head - lines);
}

#endif

}  // namespace

void host_copy(std::byte* to, const std::byte* from, std::size_t bytes, HostStores stores) noexcept {
#if defined(__x86_64__)
  if (stores == HostStores::streaming && bytes >= kStreamedBytesMin) return copy_streaming(to, from, bytes);
  if (stores == HostStores::cached && bytes >= kDemotedBytesMin) return copy_demoting(to, from, bytes);
#else
  static_cast<void>(stores);
#endif
  std::memcpy(to, from, bytes);
}

}  // namespace headrace::detail
