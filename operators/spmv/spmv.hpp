#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/device/group.hpp"

/// The kernels of a sparse matrix-vector product, y = A x. They do not depend on the number of devices: x and y are
/// ranges of memory that may be anywhere.
namespace headrace::operators {

/// Entries that one block works on at a time. 2,048 products of 8 bytes are 16 KiB of shared memory, which leaves room
/// for as many blocks as a multiprocessor has registers for.
inline constexpr std::uint32_t kSpmvChunkEntries = 2048;
/// Threads of a block: each loads kSpmvEntriesPerThread entries before it uses the first, to hide the memory's latency.
inline constexpr std::uint32_t kSpmvThreads = 256;
inline constexpr std::uint32_t kSpmvEntriesPerThread = kSpmvChunkEntries / kSpmvThreads;

/// Consecutive whole rows of at most kSpmvChunkEntries entries together; or, with `rows` 0, a piece of one longer row,
/// whose sum goes to the partial of number `first_row`.
struct alignas(16) SpmvChunk {
  std::uint64_t first_entry;
  std::uint32_t first_row;
  std::uint16_t entries;
  std::uint16_t rows;
};
static_assert(sizeof(SpmvChunk) == 16);

/// A row that is longer than a chunk, and its partial sums.
struct alignas(16) SpmvLongRow {
  std::uint64_t first_partial;
  std::uint32_t partials;
  std::uint32_t row;
};

/// The rows of one device, in its own memory. A kernel argument. Work is cut as in CSR-Adaptive (Greathouse and Daga,
/// "Efficient Sparse Matrix-Vector Multiplication on GPUs using the CSR Storage Format", SC14): blocks have equal
/// numbers of entries, whatever the row lengths.
template <class Value>
struct SpmvPart {
  const SpmvChunk* chunks = nullptr;
  const SpmvLongRow* long_rows = nullptr;
  const std::uint16_t* row_starts = nullptr;  ///< The start of each row, counted from the first entry of its chunk.
  const std::uint32_t* columns = nullptr;     ///< Relative to the first column that the part needs.
  const Value* values = nullptr;
  Value* partials = nullptr;
  std::uint32_t chunk_count = 0;
  std::uint32_t long_row_count = 0;
};

namespace detail {

/// A load of data that is read once, which does not evict reused data from the caches.
template <class T>
[[nodiscard]] HEADRACE_HD T load_once(const T* from) {
#if defined(__CUDA_ARCH__)
  return __ldcs(from);
#else
  return *from;
#endif
}

template <class Value>
struct SpmvProducts {
  Value of[kSpmvChunkEntries];
};

/// Calls use(i, value * x[column]) for this thread's share of a chunk's entries. All loads of a round are issued before
/// the first is used, and none is behind a branch: a thread beyond the end reads the last entry.
template <class Group, class Value, class Use>
HEADRACE_HD void spmv_products(Group group, const SpmvPart<Value>& part, const SpmvChunk& chunk, const Value* x,
                               Use use) {
  constexpr std::uint32_t kEach = kSpmvEntriesPerThread;
  const std::uint32_t* columns = part.columns + chunk.first_entry;
  const Value* values = part.values + chunk.first_entry;
  const std::uint32_t entries = chunk.entries;
  for (std::uint32_t base = group.rank(); base < entries; base += kEach * group.size()) {
    std::uint32_t column[kEach];
    Value value[kEach];
    for (std::uint32_t k = 0; k < kEach; ++k) {
      const std::uint32_t i = base + k * group.size();
      const std::uint32_t at = i < entries ? i : entries - 1;
      column[k] = load_once(columns + at);
      value[k] = load_once(values + at);
    }
    for (std::uint32_t k = 0; k < kEach; ++k) value[k] *= x[column[k]];
    for (std::uint32_t k = 0; k < kEach; ++k) {
      if (base + k * group.size() < entries) use(base + k * group.size(), value[k]);
    }
  }
}

/// The end of row `row` in a chunk, counted like row_starts.
template <class Value>
[[nodiscard]] HEADRACE_HD std::uint32_t spmv_row_end(const SpmvPart<Value>& part, const SpmvChunk& chunk,
                                                     std::uint32_t row) {
  return row + 1 < chunk.rows ? part.row_starts[chunk.first_row + row + 1] : chunk.entries;
}

/// Whole rows on one thread, in a plain loop.
template <class Value>
HEADRACE_HD void spmv_rows_alone(const SpmvPart<Value>& part, const SpmvChunk& chunk, const Value* x, Value* y) {
  const std::uint32_t* columns = part.columns + chunk.first_entry;
  const Value* values = part.values + chunk.first_entry;
  std::uint32_t i = 0;
  for (std::uint32_t row = 0; row < chunk.rows; ++row) {
    Value sum{};
    for (const std::uint32_t end = spmv_row_end(part, chunk, row); i < end; ++i) sum += values[i] * x[columns[i]];
    y[chunk.first_row + row] = sum;
  }
}

/// The most threads, a power of two, that each of `rows` rows can have.
[[nodiscard]] HEADRACE_HD inline std::uint32_t spmv_threads_per_row(std::uint32_t threads, std::uint32_t rows,
                                                                    std::uint32_t most) {
  std::uint32_t each = 1;
  while (each < most && 2 * each * rows <= threads) each *= 2;
  return each;
}

/// Adds up the products of each row, with neighbouring threads on one row.
template <class Group, class Value>
HEADRACE_HD void spmv_row_sums(Group group, const SpmvPart<Value>& part, const SpmvChunk& chunk, const Value* products,
                               Value* y) {
  const std::uint32_t each = spmv_threads_per_row(group.size(), chunk.rows, Group::kTeam);
  const std::uint32_t at_once = group.size() / each;
  const std::uint32_t lane = group.rank() % each;
  // Every thread of a team does the same number of iterations, because they exchange sums.
  for (std::uint32_t first = 0; first < chunk.rows; first += at_once) {
    const std::uint32_t row = first + group.rank() / each;
    Value sum{};
    if (row < chunk.rows) {
      const std::uint32_t end = spmv_row_end(part, chunk, row);
      for (std::uint32_t i = part.row_starts[chunk.first_row + row] + lane; i < end; i += each) sum += products[i];
    }
    for (std::uint32_t step = each / 2; step > 0; step /= 2) sum += group.team_from(sum, group.team_rank() ^ step);
    if (lane == 0 && row < chunk.rows) y[chunk.first_row + row] = sum;
  }
}

}  // namespace detail

/// y = A x for the rows of one part; `x` points to its first column, `y` to its first row. SpmvLongRows finishes rows
/// longer than a chunk. Blocks take chunks in turn, with kSpmvThreads threads a block on CUDA.
template <class Value>
struct Spmv {
  static constexpr const char* kName = "headrace::spmv";
  template <class Group>
  HEADRACE_HD static void run(Group group, SpmvPart<Value> part, const Value* x, Value* y) {
    for (std::uint32_t c = group.block(); c < part.chunk_count; c += group.block_count()) {
      const SpmvChunk chunk = part.chunks[c];
      if (chunk.rows == 0) {
        Value sum{};
        detail::spmv_products(group, part, chunk, x, [&sum](std::uint32_t, Value product) { sum += product; });
        sum = group.sum(sum);
        if (group.rank() == 0) part.partials[chunk.first_row] = sum;
      } else if constexpr (Group::kTeam == 1) {
        detail::spmv_rows_alone(part, chunk, x, y);
      } else {
        Value* products = group.template shared<detail::SpmvProducts<Value>>().of;
        detail::spmv_products(group, part, chunk, x, [products](std::uint32_t i, Value p) { products[i] = p; });
        group.sync();
        detail::spmv_row_sums(group, part, chunk, products, y);
        group.sync();  // the next chunk overwrites the products
      }
    }
  }
};

/// Copies `count` values from any memory, with several loads in flight, because a link's latency is long.
template <class Value>
struct SpmvGather {
  static constexpr const char* kName = "headrace::spmv_gather";
  template <class Group>
  HEADRACE_HD static void run(Group group, Value* to, const Value* from, std::uint64_t count) {
    constexpr std::uint32_t kEach = kSpmvEntriesPerThread;
    const std::uint64_t tile = std::uint64_t{kEach} * group.size();
    for (std::uint64_t first = group.block() * tile; first < count; first += group.block_count() * tile) {
      Value value[kEach];
      for (std::uint32_t k = 0; k < kEach; ++k) {
        const std::uint64_t i = first + group.rank() + k * group.size();
        value[k] = detail::load_once(from + (i < count ? i : count - 1));
      }
      for (std::uint32_t k = 0; k < kEach; ++k) {
        const std::uint64_t i = first + group.rank() + k * group.size();
        if (i < count) to[i] = value[k];
      }
    }
  }
};

/// Adds up the partial sums of long rows, with one block for each row, always in the same order.
template <class Value>
struct SpmvLongRows {
  static constexpr const char* kName = "headrace::spmv_long_rows";
  template <class Group>
  HEADRACE_HD static void run(Group group, SpmvPart<Value> part, Value* y) {
    for (std::uint32_t l = group.block(); l < part.long_row_count; l += group.block_count()) {
      const SpmvLongRow row = part.long_rows[l];
      Value sum{};
      for (std::uint32_t i = group.rank(); i < row.partials; i += group.size()) {
        sum += part.partials[row.first_partial + i];
      }
      sum = group.sum(sum);
      if (group.rank() == 0) y[row.row] = sum;
    }
  }
};

}  // namespace headrace::operators
