#include "device/cuda/gather.hpp"

namespace headrace::detail::cuda {

namespace {

constexpr std::uint32_t kWarp = 32;
constexpr std::uint32_t kAllLanes = 0xffffffffU;
constexpr std::uint32_t kVector = sizeof(uint4);
/// Vectors that a lane has in flight before it stores the first.
constexpr std::uint32_t kInFlight = 4;
/// Below this the byte loop, one or two rounds, beats the set-up of the vector loop.
constexpr std::uint64_t kVectorBytesMin = 4 * kVector;

__device__ void copy_bytes(std::byte* to, const std::byte* from, std::uint32_t bytes, std::uint32_t lane) {
  for (std::uint32_t i = lane; i < bytes; i += kWarp) to[i] = from[i];
}

/// Both sides 16-byte aligned.
__device__ void copy_aligned(uint4* to, const uint4* from, std::uint32_t count, std::uint32_t lane) {
  for (std::uint32_t first = lane; first < count; first += kWarp * kInFlight) {
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

/// What the next lane holds; lane 31 gets what lane 0 passes as `wrapped`. Words are chosen one by one: choosing
/// between whole vectors would put them in local memory.
__device__ uint4 from_next_lane(uint4 own, uint4 wrapped, std::uint32_t lane) {
  const bool first = lane == 0;
  const std::uint32_t source = (lane + 1) % kWarp;
  return {__shfl_sync(kAllLanes, first ? wrapped.x : own.x, source),
          __shfl_sync(kAllLanes, first ? wrapped.y : own.y, source),
          __shfl_sync(kAllLanes, first ? wrapped.z : own.z, source),
          __shfl_sync(kAllLanes, first ? wrapped.w : own.w, source)};
}

/// The target is 16-byte aligned; the source starts `Skip` words and `shift` bits into the aligned vector `from[0]`.
/// Reads from[0] to from[count]. Every lane reads a vector once and gets the following one from its neighbour.
template <std::uint32_t Skip>
__device__ void copy_shifted(uint4* to, const uint4* from, std::uint32_t count, std::uint32_t shift,
                             std::uint32_t lane) {
  for (std::uint32_t base = 0; base < count; base += kWarp * kInFlight) {
    uint4 value[kInFlight + 1] = {};
#pragma unroll
    for (std::uint32_t k = 0; k < kInFlight; ++k) {
      const std::uint32_t i = base + k * kWarp + lane;
      if (i <= count) value[k] = __ldcs(from + i);
    }
    // The vector after the last lane's last one; lane 0 hands it to lane 31 below.
    const std::uint32_t after = base + kInFlight * kWarp;
    if (lane == 0 && after <= count) value[kInFlight] = __ldcs(from + after);
#pragma unroll
    for (std::uint32_t k = 0; k < kInFlight; ++k) {
      const uint4 next = from_next_lane(value[k], value[k + 1], lane);
      const std::uint32_t i = base + k * kWarp + lane;
      if (i < count) to[i] = cut<Skip>(value[k], next, shift);
    }
  }
}

__device__ void copy_shifted(uint4* to, const uint4* from, std::uint32_t count, std::uint32_t offset,
                             std::uint32_t lane) {
  const std::uint32_t shift = offset % 4 * 8;
  switch (offset / 4) {
    case 0: copy_shifted<0>(to, from, count, shift, lane); break;
    case 1: copy_shifted<1>(to, from, count, shift, lane); break;
    case 2: copy_shifted<2>(to, from, count, shift, lane); break;
    default: copy_shifted<3>(to, from, count, shift, lane); break;
  }
}

/// One warp copies one piece: bytes until the target is aligned, then vectors, then the bytes that are left. Never
/// touches a byte outside of the piece: the aligned vectors around an unaligned source lie inside it.
__device__ void copy_piece(const Piece& piece, std::uint32_t lane) {
  const auto bytes = static_cast<std::uint32_t>(piece.bytes);
  if (bytes < kVectorBytesMin) {
    copy_bytes(piece.to, piece.from, bytes, lane);
    return;
  }
  std::uint32_t head = static_cast<std::uint32_t>(-reinterpret_cast<std::uintptr_t>(piece.to)) % kVector;
  const auto offset = static_cast<std::uint32_t>((reinterpret_cast<std::uintptr_t>(piece.from) + head) % kVector);
  if (head < offset) head += kVector;  // else the first aligned vector would start before the source
  auto* const to = reinterpret_cast<uint4*>(piece.to + head);
  const auto* const from = reinterpret_cast<const uint4*>(piece.from + head - offset);
  std::uint32_t count = (bytes - head + offset) / kVector;
  if (offset == 0) {
    copy_aligned(to, from, count, lane);
  } else {
    --count;  // each vector stored needs one more than itself
    copy_shifted(to, from, count, offset, lane);
  }
  copy_bytes(piece.to, piece.from, head, lane);
  const std::uint32_t done = head + count * kVector;
  copy_bytes(piece.to + done, piece.from + done, bytes - done, lane);
}

__global__ void __launch_bounds__(kGatherThreads) gather_inline(const __grid_constant__ InlineList list) {
  const std::uint32_t i = blockIdx.x * kGatherWarps + threadIdx.x / kWarp;
  if (i < list.count) copy_piece(list.pieces[i], threadIdx.x % kWarp);
}

__global__ void __launch_bounds__(kGatherThreads)
    gather_list(const Piece* pieces, std::uint32_t count, std::uint32_t per_block) {
  constexpr std::uint32_t kWords = sizeof(Piece) / sizeof(std::uint64_t);
  static_assert(kPiecesPerBlockMax * kWords <= kGatherThreads, "a thread fetches one word");
  __shared__ Piece fetched[kPiecesPerBlockMax];
  const std::uint32_t first = blockIdx.x * per_block;
  const std::uint32_t here = min(per_block, count - first);
  if (threadIdx.x < here * kWords) {
    reinterpret_cast<std::uint64_t*>(fetched)[threadIdx.x] =
        reinterpret_cast<const std::uint64_t*>(pieces + first)[threadIdx.x];
  }
  __syncthreads();
  for (std::uint32_t i = threadIdx.x / kWarp; i < here; i += kGatherWarps) {
    copy_piece(fetched[i], threadIdx.x % kWarp);
  }
}

}  // namespace

const void* gather_inline_kernel() noexcept { return reinterpret_cast<const void*>(&gather_inline); }
const void* gather_list_kernel() noexcept { return reinterpret_cast<const void*>(&gather_list); }

}  // namespace headrace::detail::cuda
