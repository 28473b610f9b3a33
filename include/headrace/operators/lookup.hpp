#pragma once

// lookup() is an operator that pools rows of a table, such as the embeddings of what a user has clicked on. The table
// may be larger than a GPU's memory: frequently used rows are on the device, all others on the host.
//
//     const float rows[] = {1, 2, 3, 4, 5, 6};
//     headrace::operators::LookupTable table{.data = rows, .row_count = 3, .column_count = 2};
//     headrace::serve::Operator sums = headrace::operators::lookup(table, {.most = 4});
//     headrace::serve::LoadedState state = sums.load(headrace::Device::parse("cpu"));
//     const std::uint32_t query[] = {2, /* rows: */ 0, 2, 0, 0};  // the last two are not looked at
//     float answer[2];  // 6, 8 afterwards
//     headrace::serve::answer_here(sums, state, std::as_bytes(std::span(query)).data(),
//                                  std::as_writable_bytes(std::span(answer)).data());

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "headrace/device/span.hpp"
#include "headrace/operators/detail/elements.hpp"
#include "headrace/serve/operator.hpp"

namespace headrace::operators {

/// How the rows of a query are combined, in each column separately.
enum class Pooling : std::uint8_t {
  sum,   ///< Their sum, each row multiplied by its weight if there are weights.
  mean,  ///< Their sum divided by their number.
  max,   ///< The largest of them; a NaN is skipped.
};

/// The pooling of that name: "sum", "mean" or "max". Throws UsageError that lists the names if there is none.
[[nodiscard]] Pooling parse_pooling(std::string_view text);

/// The most rows that a query may request.
inline constexpr std::uint32_t kLookupMost = 1024;
/// The most columns of a table.
inline constexpr std::uint32_t kLookupColumnsMost = 4096;
/// Row i of a query belongs to part i % kLookupParts, and each part is pooled separately, so that a query with few
/// columns occupies more threads, whose loads are all in flight at once.
inline constexpr std::uint32_t kLookupParts = 8;

/// The table and the format of queries, for kernels.
struct LookupState {
  const std::byte* rows;        ///< Consecutive rows, each padded with zeros to whole units.
  const std::uint32_t* places;  ///< The storage position of each row, in rows. Null: in numerical order.
  std::uint64_t row_count;      ///< Rows of the table.
  std::uint32_t columns;        ///< Columns of the table, and numbers of an answer.
  std::uint32_t units;          ///< Units of eight elements in a row as it is stored.
  std::uint32_t most;           ///< The most rows that a query may request.
  ElementType element;          ///< The type of the stored elements.
  Pooling pooling;              ///< How the rows of a query are combined.
  bool weighted;                ///< Whether queries have a weight for each row.
};

/// The sum, mean or maximum over some rows of a table. A query is a number of rows (std::uint32_t), then room for
/// `most` row numbers (std::uint32_t) and, if the operator is weighted, for as many weights (float). Rows may come in
/// any order and more than once. Whatever follows the given number of rows is ignored. An answer is a float for each
/// column; zeros for no rows.
///
/// A query that requests more than `most` rows, or a row that the table does not have, is answered by a quiet NaN in
/// every column, and nothing outside the table is read. An operator has no other way to reject a single query.
///
/// A sum is float32, and each step of it is one fused multiply-add (of 1 without weights), in an order that depends
/// only on the number of rows: row i is added to part i % 8 in the order of i, and the eight parts by sum_of_unit().
/// Answers are bit-equal on every device, under every schedule, for any number of threads and any placement of rows,
/// except for the bits of a NaN.
struct Lookup {
  static constexpr const char* kName = "lookup";  ///< The operator's name.
  static constexpr bool kAnswersInline = true;    ///< It supports Plan::answer_inline.

  using Query = std::uint32_t;  ///< A word of a query.
  using Answer = float;         ///< A number of an answer.
  using State = LookupState;    ///< The argument of kernels.

  /// Answers one query; every thread of the group calls it.
  template <class Group>
  HEADRACE_HD static void answer(Group group, const State& state, const Query* query, Answer* answer) {
    if (group.block() != 0) return;
    Memory& memory = group.template shared<Memory>();
    const std::uint32_t count = query[0];
    if (group.any(!read_query(group, state, query, count, memory))) {
      for (std::uint32_t i = group.rank(); i < state.columns; i += group.size()) answer[i] = quiet_nan();
    } else if (state.element == ElementType::float16) {
      pool<ElementType::float16>(group, state, count, memory, answer);
    } else {
      pool<ElementType::float32>(group, state, count, memory, answer);
    }
    group.sync();
  }

 private:
  /// Units of a row that the threads of a block take at once. The partial sums of more units would take memory from the
  /// cache that holds popular rows.
  static constexpr std::uint32_t kUnitsAtOnce = 16;
  static constexpr std::size_t kLineBytes = 64;
  static constexpr std::size_t kPrefetchedBytes = 512;  ///< The beginning of a row; processors prefetch the rest.

  struct Memory {
    alignas(16) float parts[kLookupParts][kUnitsAtOnce * kUnit];
    std::uint32_t places[kLookupMost];
    float weights[kLookupMost];
  };

  [[nodiscard]] HEADRACE_HD static float quiet_nan() {
    constexpr std::uint32_t kBits = 0x7FC00000U;
    float value;
    memcpy(&value, &kBits, sizeof(value));
    return value;
  }

  /// Finds where the calling thread's share of the rows is stored. Returns false if the query is not valid. The results
  /// may be used after a barrier.
  template <class Group>
  [[nodiscard]] HEADRACE_HD static bool read_query(Group group, const State& state, const Query* query,
                                                   std::uint32_t count, Memory& memory) {
    const Query* const rows = query + 1;
    std::uint32_t row = group.rank() < state.most ? rows[group.rank()] : 0;  // in flight together with the count
    if (count > state.most) return false;
    for (std::uint32_t i = group.rank(); i < count; i += group.size()) {
      if (row >= state.row_count) return false;
      const std::uint32_t place = state.places == nullptr ? row : state.places[row];
      memory.places[i] = place;
      memory.weights[i] = 1.0F;
      if (state.weighted) {
        const std::uint32_t bits = rows[state.most + i];
        memcpy(&memory.weights[i], &bits, sizeof(bits));
      }
      if (i + group.size() < count) row = rows[i + group.size()];
#if !defined(__CUDA_ARCH__)
      const std::size_t row_bytes = std::size_t{state.units} * kUnit * bytes_of(state.element);
      for (std::size_t at = 0; at < row_bytes && at < kPrefetchedBytes; at += kLineBytes) {
        __builtin_prefetch(state.rows + place * row_bytes + at);
      }
#endif
    }
    return true;
  }

  template <ElementType Type, class Group>
  HEADRACE_HD static void pool(Group group, const State& state, std::uint32_t count, Memory& memory, float* answer) {
    for (std::uint32_t first = 0; first < state.units; first += kUnitsAtOnce) {
      const std::uint32_t units = state.units - first < kUnitsAtOnce ? state.units - first : kUnitsAtOnce;
      for (std::uint32_t item = group.rank(); item < kLookupParts * units; item += group.size()) {
        const std::uint32_t part = item / units;
        const std::uint32_t unit = item % units;
        float pooled[kUnit];
        if (state.pooling == Pooling::max) {
          pool_part<Type, true, Group>(state, part, first + unit, count, memory, pooled);
        } else {
          pool_part<Type, false, Group>(state, part, first + unit, count, memory, pooled);
        }
        memcpy(memory.parts[part] + unit * kUnit, pooled, sizeof(pooled));
      }
      group.sync();
      const std::uint32_t column = first * kUnit;
      const std::uint32_t columns = state.columns - column < units * kUnit ? state.columns - column : units * kUnit;
      for (std::uint32_t i = group.rank(); i < columns; i += group.size()) {
        answer[column + i] = count == 0 ? 0.0F : join_parts(state.pooling, count, memory, i);
      }
      group.sync();
    }
  }

  /// One unit of the rows of one part. A GPU's thread has several loads in flight before it needs the first.
  template <ElementType Type, bool Max, class Group>
  HEADRACE_HD static void pool_part(const State& state, std::uint32_t part, std::uint32_t unit, std::uint32_t count,
                                    const Memory& memory, float (&pooled)[kUnit]) {
    constexpr std::uint32_t kAhead = Group::kLanes > 1 ? 1 : 4;
    for (float& value : pooled) value = Max ? -INFINITY : 0.0F;
    for (std::uint32_t first = part; first < count; first += kLookupParts * kAhead) {
      StoredUnit<Type> loaded[kAhead];
      for (std::uint32_t i = 0; i < kAhead; ++i) {
        const std::uint32_t row = first + i * kLookupParts;
        const std::uint32_t place = memory.places[row < count ? row : first];  // without a branch between the loads
        loaded[i] = load_stored_unit<Type>(state.rows, std::size_t{place} * state.units + unit);
      }
      for (std::uint32_t i = 0; i < kAhead; ++i) {
        const std::uint32_t row = first + i * kLookupParts;
        if (row >= count) break;
        if constexpr (Max) {
          keep_larger<Type>(loaded[i], pooled);
        } else {
          add_scaled<Type>(loaded[i], memory.weights[row], pooled);
        }
      }
    }
  }

  [[nodiscard]] HEADRACE_HD static float join_parts(Pooling pooling, std::uint32_t count, const Memory& memory,
                                                    std::uint32_t column) {
    float parts[kLookupParts];
    for (std::uint32_t part = 0; part < kLookupParts; ++part) parts[part] = memory.parts[part][column];
    if (pooling == Pooling::max) {
      float largest = parts[0];
      for (const float part : parts) largest = part > largest ? part : largest;
      return largest;
    }
    static_assert(kLookupParts == kUnit);
    const float sum = sum_of_unit(parts);
    return pooling == Pooling::mean ? sum / static_cast<float>(count) : sum;
  }
};

/// A table in host memory, row after row, which lookup() copies. Its elements must be finite, also as stored.
struct LookupTable {
  const void* data = nullptr;                  ///< The first element.
  ElementType element = ElementType::float32;  ///< The type of the elements at `data`.
  std::uint64_t row_count = 0;                 ///< 1 to 2^32 - 1.
  std::uint32_t column_count = 0;              ///< 1 to kLookupColumnsMost.
};

/// What queries request from a table, and where its rows are stored.
struct LookupOptions {
  std::uint32_t most = 32;         ///< Most rows that a query may request: 1 to kLookupMost.
  Pooling pooling = Pooling::sum;  ///< How the rows of a query are combined.
  bool weighted = false;           ///< Whether queries have a weight for each row. For Pooling::sum only.
  /// How rows are stored; float16 rounds each element to the nearest. For a span, how they are already stored.
  ElementType element = ElementType::float16;
  /// The most bytes of rows in the memory of each GPU, in whole pages of kPageBytes. If the table is larger, the
  /// remaining rows are in page-locked host memory, which kernels read over the link; 0 puts all rows there. Empty: all
  /// rows go to the GPU. A CPU device has only one memory, and reads the operator's own rows regardless.
  std::optional<std::size_t> device_bytes = {};
  /// How often each row has been requested, for example yesterday: the most popular rows go to the device, among equals
  /// those with lower numbers. Empty: the first rows of the table do. Only read during lookup() itself.
  std::span<const std::uint64_t> counts = {};
  /// Exponent of Zipf's law, by which samples draw rows. Popular rows are scattered over the table, independently of
  /// `counts`. Empty: in proportion to `counts`, or 1.05 without counts.
  std::optional<double> exponent = {};
  std::uint32_t threads = 128;  ///< Threads of the one block that answers a query: 1 to 1024.
};

/// The operator that pools rows of `table`. It keeps the table in host memory as stored, with columns padded to a
/// multiple of 8. Each engine on a GPU takes memory there for the rows within LookupOptions::device_bytes, page-locked
/// host memory for the others, and 4 bytes a row on the GPU if `counts` change the order. Samples request `most` rows,
/// and every eighth requests fewer. Throws UsageError that names the option out of range or the first element that is
/// not finite, and SystemError (Errc::out_of_memory) with the bytes needed. Engines on a GPU throw DeviceError if its
/// memory, or the host's, does not hold the rows.
[[nodiscard]] serve::Operator lookup(const LookupTable& table, const LookupOptions& options = {});

/// The same for rows in a span, consecutive from its first byte on, which are read in place: nothing is copied, and the
/// span's placement determines which rows are near. The number of columns must be a multiple of 8. The rows must not be
/// written to, nor pages moved, while an engine with this operator runs. Engines throw UsageError on a device that may
/// not read every page. A CPU device that cannot access a GPU's pages copies the rows whenever the operator is loaded
/// there, as checks of answers do. Throws UsageError if the span is smaller than the rows, and for `device_bytes` and
/// `counts`, which apply only to tables that lookup() places itself.
[[nodiscard]] serve::Operator lookup(std::shared_ptr<const Span> rows, std::uint64_t row_count,
                                     std::uint32_t column_count, const LookupOptions& options = {});

}  // namespace headrace::operators
