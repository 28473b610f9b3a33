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
/// Lines are handed on while they lie in the first cache.
constexpr std::size_t kBlock = 4096;
/// Below this, nothing is handed on: others write to the same lines next.
constexpr std::size_t kDemotedBytesMin = 1024;

/// A device reads lines that a core has written much more slowly from that core's caches than from the one that all
/// cores share, to which this hands them on. A hint: processors that do not know it take it for none.
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

/// Below this, what is not a whole line makes more stores than the rest.
constexpr std::size_t kStreamedBytesMin = 1024;

/// Lines of `to`, which is aligned to one.
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
  _mm_sfence();  // streaming stores are ordered by nothing else
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
