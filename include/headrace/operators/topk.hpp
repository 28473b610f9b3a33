#pragma once

// topk() is an operator that finds the rows of a matrix which are best for a vector, by dot product or distance,
// exactly.
//
//     const float rows[] = {1, 0, 0, 1, 1, 1};
//     headrace::operators::TopkMatrix matrix{.data = rows, .row_count = 3, .column_count = 2};
//     headrace::serve::Operator best = headrace::operators::topk(matrix, {.k = 2});
//     headrace::serve::LoadedState state = best.load(headrace::Device::parse("cpu"));
//     const float query[] = {1, 0.5F};
//     std::uint32_t answer[4];  // two numbers of rows, then their scores as float
//     headrace::serve::answer_here(best, state, std::as_bytes(std::span(query)).data(),
//                                  std::as_writable_bytes(std::span(answer)).data());

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "headrace/operators/detail/elements.hpp"
#include "headrace/serve/operator.hpp"

namespace headrace::operators {

/// What makes a row better than another.
enum class Metric : std::uint8_t {
  dot,  ///< A larger dot product with the query.
  l2,   ///< A smaller squared Euclidean distance from it.
};

/// The metric of that name: "dot" or "l2". Throws UsageError that lists the names if there is none.
[[nodiscard]] Metric parse_metric(std::string_view text);

/// Most rows that a query finds.
inline constexpr std::uint32_t kTopkMost = 256;
/// Most columns of a matrix.
inline constexpr std::uint32_t kTopkColumnsMost = 4096;
/// Rows of a tile, in which rows are stored. Unit u of row r of a tile is number u * kTopkTileRows + r of it, so that
/// threads which take neighbouring rows read neighbouring units.
inline constexpr std::uint32_t kTopkTileRows = 32;

/// A matrix in a device's memory, as kernels need it.
struct TopkState {
  const std::byte* tiles;   ///< The matrix, tile by tile.
  std::uint32_t* cursor;    ///< The row that some block is currently reading.
  std::uint64_t row_count;  ///< Number of rows.
  std::uint32_t columns;    ///< Number of columns.
  std::uint32_t units;      ///< Units of a row, padded with zeros.
  std::uint32_t k;          ///< Rows that a query finds.
  ElementType element;      ///< How the matrix is stored.
  Metric metric;            ///< What makes a row better.
};

namespace detail {

/// A row and its score as one number. Smaller is better: by score, then by row. NaN is worse than any number.
[[nodiscard]] HEADRACE_HD inline std::uint64_t topk_key(float score, std::uint32_t row, Metric metric) {
  const float cleaned = score + 0.0F;  // -0 becomes 0
  std::uint32_t bits;
  memcpy(&bits, &cleaned, sizeof(bits));
  bits = (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;  // makes the bits order as the numbers do
  if (metric == Metric::dot) bits = ~bits;
  if (score != score) bits = 0xFFFFFFFFU;
  return std::uint64_t{bits} << 32 | row;
}

/// The score of a key; a quiet NaN for every NaN.
[[nodiscard]] HEADRACE_HD inline float topk_score(std::uint64_t key, Metric metric) {
  auto bits = static_cast<std::uint32_t>(key >> 32);
  if (bits == 0xFFFFFFFFU) {
    bits = 0x7FC00000U;
  } else {
    if (metric == Metric::dot) bits = ~bits;
    bits = (bits & 0x80000000U) != 0 ? bits & 0x7FFFFFFFU : ~bits;
  }
  float score;
  memcpy(&score, &bits, sizeof(score));
  return score;
}

}  // namespace detail

/// Finds the k rows of a matrix that are best for a vector, best first, by an exact search over all rows. A query is a
/// float32 for each column. An answer is k row numbers (std::uint32_t), then their k scores (float): the dot product,
/// or the squared distance. Equal scores come in the order of their rows; a row whose score is NaN comes after all
/// others.
///
/// A score is a float32 sum, each step of it one fused multiply-add, in an order that the number of columns alone
/// decides: column 8u + i is added to sum number i in the order of u, and the eight sums by sum_of_unit(). Answers are
/// bit-equal on every device, under every schedule and for any number of threads.
///
/// One block answers a query. It begins where another block is reading, and goes around: blocks that run at the same
/// time then share what they read through the device's cache.
struct Topk {
  static constexpr const char* kName = "topk";  ///< For make_operator().
  static constexpr bool kAnswersInline = true;  ///< For Plan::answer_inline.

  using Query = float;           ///< One for each column.
  using Answer = std::uint32_t;  ///< k row numbers, then the bits of their k scores.
  using State = TopkState;       ///< The matrix.

  /// Answers one query with one block; further blocks do nothing.
  template <class Group>
  HEADRACE_HD static void answer(Group group, const State& state, const Query* query, Answer* answer) {
    if (group.block() != 0) return;
    Memory& memory = group.template shared<Memory>();
    for (std::uint32_t i = group.rank(); i < state.units * kUnit; i += group.size()) {
      memory.query[i] = i < state.columns ? query[i] : 0.0F;
    }
    for (std::uint32_t i = group.rank(); i < state.k; i += group.size()) memory.best[0][i] = kNone;
    if (group.rank() == 0) memory.start = group.load_relaxed(*state.cursor);
    group.sync();
    std::uint32_t now = 0;  // which of the two lists holds the best so far
    if (state.element == ElementType::float16) {
      now = search<ElementType::float16>(group, state, memory);
    } else {
      now = search<ElementType::float32>(group, state, memory);
    }
    for (std::uint32_t i = group.rank(); i < state.k; i += group.size()) {
      const std::uint64_t key = memory.best[now][i];
      const float score = detail::topk_score(key, state.metric);
      answer[i] = static_cast<std::uint32_t>(key);
      memcpy(answer + state.k + i, &score, sizeof(score));
    }
    group.sync();
  }

 private:
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};  ///< Worse than any row's key.
  static constexpr std::uint32_t kThreadsMost = 1024;

  struct Memory {
    alignas(16) float query[kTopkColumnsMost];
    std::uint64_t best[2][kTopkMost];
    std::uint64_t fresh[kThreadsMost];  ///< Keys better than the worst of the best, in no order.
    std::uint32_t start;
  };

  /// The scores of `Rows` neighbouring rows of one tile.
  template <ElementType Type, Metric Better, std::uint32_t Rows>
  HEADRACE_HD static void find_scores(const State& state, const float* query, std::uint64_t row,
                                      float (&scores)[Rows]) {
    const std::size_t first = row / kTopkTileRows * kTopkTileRows * state.units + row % kTopkTileRows;
    float sums[Rows][kUnit] = {};
#if defined(__CUDA_ARCH__)
#pragma unroll 8
#endif
    for (std::uint32_t unit = 0; unit < state.units; ++unit) {
      for (std::uint32_t r = 0; r < Rows; ++r) {
        const std::size_t number = first + std::size_t{unit} * kTopkTileRows + r;
        if constexpr (Better == Metric::dot) {
          add_products<Type>(state.tiles, number, query + unit * kUnit, sums[r]);
        } else {
          add_squares<Type>(state.tiles, number, query + unit * kUnit, sums[r]);
        }
      }
    }
    for (std::uint32_t r = 0; r < Rows; ++r) scores[r] = sum_of_unit(sums[r]);
  }

  /// Looks at every row. Returns which of the two lists holds the best.
  template <ElementType Type, class Group>
  [[nodiscard]] HEADRACE_HD static std::uint32_t search(Group group, const State& state, Memory& memory) {
    constexpr std::uint32_t kRows = Group::kLanes > 1 ? kUnit : 1;
    constexpr std::uint32_t kRoundsACursor = 16;
    const std::uint64_t stored = (state.row_count + kTopkTileRows - 1) / kTopkTileRows * kTopkTileRows;
    std::uint32_t now = 0;
    std::uint32_t round = 0;
    for (std::uint64_t base = 0; base < stored; base += std::uint64_t{group.size()} * kRows, ++round) {
      const std::uint64_t worst = memory.best[now][state.k - 1];
      std::uint64_t row = base + group.rank() * kRows;
      std::uint64_t keys[kRows] = {};
      std::uint32_t passed = 0;
      if (row < stored) {
        row = row + memory.start < stored ? row + memory.start : row + memory.start - stored;
        float scores[kRows];
        if (state.metric == Metric::dot) {
          find_scores<Type, Metric::dot>(state, memory.query, row, scores);
        } else {
          find_scores<Type, Metric::l2>(state, memory.query, row, scores);
        }
        for (std::uint32_t r = 0; r < kRows; ++r) {
          const bool there = row + r < state.row_count;
          keys[r] = there ? detail::topk_key(scores[r], static_cast<std::uint32_t>(row + r), state.metric) : kNone;
          passed += keys[r] < worst ? 1 : 0;
        }
        if (group.rank() == 0 && round % kRoundsACursor == 0) {
          // A block that begins now starts here. Which block wrote last does not matter.
          group.store_relaxed_on_device(*state.cursor, static_cast<std::uint32_t>(row / kTopkTileRows * kTopkTileRows));
        }
      }
      if (!group.any(passed > 0)) continue;
      std::uint32_t fresh = 0;
      std::uint32_t place = group.sum_before(passed, fresh);
      for (std::uint32_t r = 0; passed > 0 && r < kRows; ++r) {
        if (keys[r] < worst) memory.fresh[place++] = keys[r];
      }
      group.sync();
      merge(group, memory, now, fresh, state.k);
      now = 1 - now;
      group.sync();
    }
    return now;
  }

  /// Merges the k best of list `now` and of the fresh keys into the other list, in order. No two keys are equal except
  /// kNone, which occurs only in lists.
  template <class Group>
  HEADRACE_HD static void merge(Group group, Memory& memory, std::uint32_t now, std::uint32_t fresh, std::uint32_t k) {
    const std::uint64_t* best = memory.best[now];
    for (std::uint32_t i = group.rank(); i < k + fresh; i += group.size()) {
      const std::uint64_t key = i < k ? best[i] : memory.fresh[i - k];
      std::uint32_t place = i < k ? i : count_below(best, k, key);
      for (std::uint32_t j = 0; j < fresh; ++j) place += memory.fresh[j] < key ? 1 : 0;
      if (place < k) memory.best[1 - now][place] = key;
    }
  }

  /// How many of `count` ordered keys are below a key.
  [[nodiscard]] HEADRACE_HD static std::uint32_t count_below(const std::uint64_t* keys, std::uint32_t count,
                                                             std::uint64_t key) {
    std::uint32_t below = 0;
    while (below < count) {
      const std::uint32_t middle = below + (count - below) / 2;
      if (keys[middle] < key) {
        below = middle + 1;
      } else {
        count = middle;
      }
    }
    return below;
  }
};

/// What topk() searches for, and how.
struct TopkOptions {
  std::uint32_t k = 10;         ///< Rows to find: 1 to kTopkMost, and at most the rows of the matrix.
  Metric metric = Metric::dot;  ///< What makes a row better.
  /// How the matrix is stored; float16 rounds each element to the nearest.
  ElementType element = ElementType::float16;
  std::uint32_t threads = 256;  ///< Threads of the one block that answers a query: 1 to 1024.
};

/// A matrix in host memory, row after row, which topk() copies. Its elements must be finite, also once they are rounded
/// to TopkOptions::element.
struct TopkMatrix {
  const void* data = nullptr;                  ///< Its first element.
  ElementType element = ElementType::float32;  ///< The type of its elements.
  std::uint64_t row_count = 0;                 ///< 1 to 2^32 - kTopkTileRows.
  std::uint32_t column_count = 0;              ///< 1 to kTopkColumnsMost.
};

/// The operator that finds the best rows of `matrix`. Its samples are uniform in [-1, 1). It keeps the matrix in host
/// memory as it is stored, with columns padded to a multiple of 8 and rows to a multiple of 32; CUDA devices get a
/// copy. Throws UsageError that names the option out of range or the first element that is not finite, and SystemError
/// (Errc::out_of_memory) with the bytes needed.
[[nodiscard]] serve::Operator topk(const TopkMatrix& matrix, const TopkOptions& options = {});

}  // namespace headrace::operators
