#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/device/detail/multiprocessor_set.hpp"
#include "headrace/device/group.hpp"

/// The resident pool of Schedule::dispatched, as the device sees it.
///
/// A client writes its query to the next slot of its lane and then the lane's tail word, both in host memory. Block 0
/// of the pool reads all tails at once and puts an entry for each new query into a queue in device memory. The other
/// blocks draw tickets from a counter and poll device memory for their entry. So only one block reads over the link
/// while the pool is idle, and any free block takes the next query, or the next part of a query that several blocks
/// answer. Short answers return as sealed units, written once and without a fence; the client polls the slot.
///
/// If block 0 answers lone queries itself (Plan::answer_inline), a client writes such a query a second time, as sealed
/// units, which block 0 reads together with the tails.
namespace headrace::serve {

/// Answers up to this size are written as sealed units.
inline constexpr std::uint32_t kSealedBytesMax = 10 * SealedUnit::kDataBytes;
/// Queries up to this size are copied to the block's shared memory before the operator reads them.
inline constexpr std::uint32_t kStagedBytesMax = 2048;
/// Most lanes of a pool, so that block 0 can keep the tail of each in its shared memory.
inline constexpr std::uint32_t kDispatchLanesMax = 256;

/// Units that hold `bytes` bytes.
[[nodiscard]] HEADRACE_HD constexpr std::uint32_t sealed_units(std::uint32_t bytes) {
  return (bytes + SealedUnit::kDataBytes - 1) / SealedUnit::kDataBytes;
}

/// Device times of one sampled query, in nanoseconds of the device's clock.
struct DispatchStamps {
  std::uint64_t seen;      ///< Block 0 has found the query.
  std::uint64_t taken;     ///< A block has the query's entry.
  std::uint64_t staged;    ///< The query is in the block's shared memory.
  std::uint64_t computed;  ///< The operator has returned.
};

/// With it, the blocks of a pool with its own multiprocessors find out which of them stay. Lies in device memory.
/// "Block 0" here is the first block that stays, whatever its number.
struct DispatchPlaces {
  MultiprocessorSet own;
  std::uint32_t begun;    ///< Blocks of the launch that have begun.
  std::uint32_t staying;  ///< Those of them that run on multiprocessors of the pool.
};

/// Addresses and sizes; passed by value to the pool. Slot s of lane l is number l * slots + s.
struct DispatchView {
  /// Words from one tail to the next: no two share a cache line, or a pair of lines that are fetched together.
  static constexpr std::uint32_t kTailStride = 128 / sizeof(std::uint32_t);
  /// Words from one half's count of entries taken to the other's.
  static constexpr std::uint32_t kTakenStride = 128 / sizeof(std::uint32_t);

  // In host memory.
  const std::byte* queries = nullptr;
  std::byte* answers = nullptr;
  std::uint32_t* done = nullptr;         ///< Sequence of the last answer of each slot; null if answers are sealed.
  const std::uint32_t* tails = nullptr;  ///< Queries written to each lane, modulo 2^32; behind them the stop word.
  DispatchStamps* stamps = nullptr;
  std::uint32_t* heartbeat = nullptr;
  /// The last lone query of each lane, as units with the sequence of the tail that announces it; null if clients write
  /// none.
  const SealedUnit* lone = nullptr;
  // In device memory.
  std::uint64_t* entries = nullptr;      ///< The queue: see entry().
  std::uint64_t* next_ticket = nullptr;  ///< Parts of queries that blocks have drawn.
  std::uint32_t* taken = nullptr;        ///< Parts whose entry a block has read, by half of the queue: see taken_in().
  std::uint32_t* leave = nullptr;        ///< Nonzero: the pool ends.
  std::uint32_t* arrived = nullptr;      ///< Blocks that have answered their part, if a query has several.
  std::uint64_t* seen_at = nullptr;      ///< DispatchStamps::seen of each slot.
  std::byte* parts = nullptr;            ///< Answers while several blocks write to them.
  /// Queries of each lane, modulo 2^32, from before the launch: they are answered, or their entries are already in the
  /// queue, and `first_ticket` counts those.
  const std::uint32_t* first_tails = nullptr;
  DispatchPlaces* places = nullptr;  ///< Null if every block stays.
  std::uint32_t first_ticket = 0;    ///< At most half as many as the queue has entries.

  std::uint32_t lane_count = 0;
  std::uint32_t slots = 0;       ///< Slots of each lane; a power of two.
  std::uint32_t queue_log2 = 0;  ///< Log2 of the entries; there are at least two per waiting query.
  std::uint32_t query_stride = 0;
  std::uint32_t answer_stride = 0;
  std::uint32_t lone_stride = 0;  ///< Units from one lane's copy to the next one's.
  std::uint32_t query_bytes = 0;
  std::uint32_t answer_bytes = 0;
  std::uint32_t blocks = 1;        ///< Blocks that answer one query.
  std::uint32_t sample_every = 0;  ///< Positions that record stamps are multiples of this power of two; 0: none.

  /// Whether the query at `position` of a lane records stamps.
  [[nodiscard]] HEADRACE_HD bool sampled(std::uint32_t position) const {
    return sample_every != 0 && (position & (sample_every - 1)) == 0;
  }
  [[nodiscard]] HEADRACE_HD std::uint32_t slot(std::uint32_t lane, std::uint32_t position) const {
    return lane * slots + (position & (slots - 1));
  }
  /// The entry of ticket `ticket` (of queries, not parts): 16 bits for the round through the queue, the lane, and the
  /// position modulo 2^32.
  [[nodiscard]] HEADRACE_HD std::uint64_t entry(std::uint64_t ticket, std::uint32_t lane,
                                                std::uint32_t position) const {
    return (round(ticket) << 48) | (std::uint64_t{lane} << 32) | position;
  }
  [[nodiscard]] HEADRACE_HD bool is_for(std::uint64_t entry, std::uint64_t ticket) const {
    return (entry >> 48) == round(ticket);
  }
  [[nodiscard]] HEADRACE_HD std::uint64_t& entry_at(std::uint64_t ticket) const {
    return entries[ticket & ((std::uint64_t{1} << queue_log2) - 1)];
  }
  /// The half of the queue that holds a ticket's entry, counted through all rounds: halves 0 and 1 are the first round.
  [[nodiscard]] HEADRACE_HD std::uint64_t half(std::uint64_t ticket) const { return ticket >> (queue_log2 - 1); }
  /// Parts taken from that half in all rounds so far, modulo 2^32, because the thread would wait for a 64-bit atomic
  /// addition. One round has fewer than 2^32 parts.
  [[nodiscard]] HEADRACE_HD std::uint32_t& taken_in(std::uint64_t half) const { return taken[half % 2 * kTakenStride]; }
  /// The value of taken_in() once every block has its entry from all earlier rounds. Then the half may be overwritten.
  [[nodiscard]] HEADRACE_HD std::uint32_t taken_before(std::uint64_t half) const {
    return static_cast<std::uint32_t>((half / 2 * blocks) << (queue_log2 - 1));
  }

 private:
  /// Starts at 1, so that a zeroed queue has no entry.
  [[nodiscard]] HEADRACE_HD std::uint64_t round(std::uint64_t ticket) const {
    return ((ticket >> queue_log2) + 1) & 0xFFFF;
  }
};

namespace detail {

/// What a block must do.
struct Drawn {
  enum class What : std::uint32_t {
    nothing,   ///< Keep polling.
    query,     ///< Answer a query, or a part of one.
    held,      ///< Answer a query that is already in the block's Stage.
    expected,  ///< Poll for a query that is likely to arrive.
    leave,     ///< The pool ends.
  };
  What what;
  std::uint32_t lane;
  std::uint32_t position;
  std::uint32_t part;

  [[nodiscard]] HEADRACE_HD bool is(What other) const { return what == other; }
};

}  // namespace detail

}  // namespace headrace::serve
