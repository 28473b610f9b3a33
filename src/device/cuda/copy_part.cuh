#pragma once

#include "headrace/device/detail/copy_part.hpp"

/// Copies a part of any length and alignment with one warp.
namespace headrace::detail::cuda {

inline constexpr std::uint32_t kWarp = 32;
inline constexpr std::uint32_t kAllLanes = 0xffffffffU;
inline constexpr std::uint32_t kVector = sizeof(uint4);
/// Vectors that a lane has in flight before it stores the first: a part of 4 KiB costs one round trip over the link.
inline constexpr std::uint32_t kInFlight = 8;
inline constexpr std::uint32_t kRound = kWarp * kInFlight;
/// Vectors per memory line.
inline constexpr std::uint32_t kLineVectors = 128 / kVector;
/// Below this size, one round of two bytes per lane is faster than setting up the vector loop.
inline constexpr std::uint32_t kVectorBytesMin = 2 * kWarp;

/// Copies at most two bytes per lane. Both loads are issued before the first store.
__device__ inline void copy_bytes(std::byte* to, const std::byte* from, std::uint32_t bytes, std::uint32_t lane) {
  std::byte first{};
  std::byte second{};
  if (lane < bytes) first = from[lane];
  if (lane + kWarp < bytes) second = from[lane + kWarp];
  if (lane < bytes) to[lane] = first;
  if (lane + kWarp < bytes) to[lane + kWarp] = second;
}

/// Vectors between the start of the line and `from`. Lane 0 starts that far before `from`, so that no two loads request
/// the same line.
__device__ inline std::uint32_t line_offset(const uint4* from) {
  return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(from) / kVector) % kLineVectors;
}

/// Both sides 16-byte aligned. Indices below 0 wrap to numbers above `count`.
__device__ inline void copy_aligned(uint4* to, const uint4* from, std::uint32_t count, std::uint32_t lane) {
  const std::uint32_t skip = line_offset(from);
  for (std::uint32_t base = 0; base < count + skip; base += kRound) {
    const std::uint32_t first = base + lane - skip;
    uint4 value[kInFlight];
#pragma unroll
    for (std::uint32_t k = 0; k < kInFlight; ++k) {
      const std::uint32_t i = first + k * kWarp;
      if (i < count) value[k] = __ldcs(from + i);
    }
#pragma unroll
    for (std::uint32_t k = 0; k < kInFlight; ++k) {
      const std::uint32_t i = first + k * kWarp;
      if (i < count) to[i] = value[k];
    }
  }
}

/// The 16 bytes that start `Skip` words and `shift` bits into the 32 bytes of `low` and `high`.
template <std::uint32_t Skip>
__device__ uint4 cut(const uint4& low, const uint4& high, std::uint32_t shift) {
  const std::uint32_t word[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
  return {__funnelshift_r(word[Skip], word[Skip + 1], shift), __funnelshift_r(word[Skip + 1], word[Skip + 2], shift),
          __funnelshift_r(word[Skip + 2], word[Skip + 3], shift),
          __funnelshift_r(word[Skip + 3], word[Skip + 4], shift)};
}

/// The next lane's value; lane 31 gets what lane 0 passes as `wrapped`. Words are selected one by one, because
/// selecting whole vectors would put them in local memory.
__device__ inline uint4 from_next_lane(uint4 own, uint4 wrapped, std::uint32_t lane) {
  const bool first = lane == 0;
  const std::uint32_t source = (lane + 1) % kWarp;
  return {__shfl_sync(kAllLanes, first ? wrapped.x : own.x, source),
          __shfl_sync(kAllLanes, first ? wrapped.y : own.y, source),
          __shfl_sync(kAllLanes, first ? wrapped.z : own.z, source),
          __shfl_sync(kAllLanes, first ? wrapped.w : own.w, source)};
}

/// The target is 16-byte aligned; the source starts `Skip` words and `shift` bits into the aligned vector `from[0]`.
/// Reads from[0] to from[count]. Every lane reads a vector once and gets the following one from its neighbour. Indices
/// below 0 wrap to numbers above `count`, except that adding 1 to the last of them gives 0.
template <std::uint32_t Skip>
__device__ void copy_shifted(uint4* to, const uint4* from, std::uint32_t count, std::uint32_t shift,
                             std::uint32_t lane) {
  const std::uint32_t skip = line_offset(from);
  for (std::uint32_t base = 0; base < count + skip; base += kRound) {
    const std::uint32_t first = base + lane - skip;
    uint4 value[kInFlight + 1] = {};
#pragma unroll
    for (std::uint32_t k = 0; k < kInFlight; ++k) {
      const std::uint32_t i = first + k * kWarp;
      if (i <= count) value[k] = __ldcs(from + i);
    }
    // The vector after the last lane's last one; lane 0 hands it to lane 31 below.
    const std::uint32_t after = first + kRound;
    if (lane == 0 && after <= count) value[kInFlight] = __ldcs(from + after);
#pragma unroll
    for (std::uint32_t k = 0; k < kInFlight; ++k) {
      const uint4 next = from_next_lane(value[k], value[k + 1], lane);
      const std::uint32_t i = first + k * kWarp;
      if (i < count) to[i] = cut<Skip>(value[k], next, shift);
    }
  }
}

__device__ inline void copy_shifted(uint4* to, const uint4* from, std::uint32_t count, std::uint32_t offset,
                                    std::uint32_t lane) {
  const std::uint32_t shift = offset % 4 * 8;
  switch (offset / 4) {
    case 0: copy_shifted<0>(to, from, count, shift, lane); break;
    case 1: copy_shifted<1>(to, from, count, shift, lane); break;
    case 2: copy_shifted<2>(to, from, count, shift, lane); break;
    default: copy_shifted<3>(to, from, count, shift, lane); break;
  }
}

/// One warp copies one part: bytes until the target is aligned, then vectors, then the remaining bytes. Never touches a
/// byte outside the part: the aligned vectors around an unaligned source lie inside it. The bytes at both ends are
/// loaded before the vectors and stored after them, so that everything takes one round trip over the link.
__device__ inline void copy_part(std::byte* to, const std::byte* from, std::uint32_t bytes, std::uint32_t lane) {
  if (bytes < kVectorBytesMin) {
    copy_bytes(to, from, bytes, lane);
    return;
  }
  std::uint32_t head = static_cast<std::uint32_t>(-reinterpret_cast<std::uintptr_t>(to)) % kVector;
  const auto offset = static_cast<std::uint32_t>((reinterpret_cast<std::uintptr_t>(from) + head) % kVector);
  if (head < offset) head += kVector;  // else the first aligned vector would start before the source
  std::uint32_t count = (bytes - head + offset) / kVector;
  if (offset != 0) --count;  // each stored vector needs one more source vector
  const std::uint32_t done = head + count * kVector;
  const std::uint32_t tail = bytes - done;  // like the head, fewer bytes than a warp has lanes

  std::byte first{};
  std::byte last{};
  if (lane < head) first = from[lane];
  if (lane < tail) last = from[done + lane];
  auto* const vectors_to = reinterpret_cast<uint4*>(to + head);
  const auto* const vectors_from = reinterpret_cast<const uint4*>(from + head - offset);
  if (offset == 0) {
    copy_aligned(vectors_to, vectors_from, count, lane);
  } else {
    copy_shifted(vectors_to, vectors_from, count, offset, lane);
  }
  if (lane < head) to[lane] = first;
  if (lane < tail) to[done + lane] = last;
}

__device__ inline void copy_part(Part part, std::uint32_t lane) {
  copy_part(part.to(), part.from(), part.bytes(), lane);
}

}  // namespace headrace::detail::cuda
