#include "operators/lookup/lookup_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/error.hpp"
#include "operators/sample.hpp"

namespace headrace::operators {

namespace {

constexpr std::uint64_t kRowsMost = (std::uint64_t{1} << 32) - 1;

}  // namespace

LookupState sound_lookup(std::uint64_t row_count, std::uint32_t column_count, const LookupOptions& options) {
  require_in_range("lookup: rows of the table", row_count, 1, kRowsMost);
  require_in_range("lookup: columns of the table", column_count, 1, kLookupColumnsMost);
  require_in_range("lookup: most", options.most, 1, kLookupMost);
  require_in_range("lookup: threads", options.threads, 1, 1024);
  if (options.weighted && options.pooling != Pooling::sum) {
    throw UsageError("lookup: weights are possible only with sum pooling");
  }
  if (options.exponent && (!std::isfinite(*options.exponent) || *options.exponent < 0)) {
    throw UsageError(
        fmt::format("lookup: the exponent of Zipf's law must be finite and 0 or more, not {}", *options.exponent));
  }
  return {.rows = nullptr,
          .places = nullptr,
          .row_count = row_count,
          .columns = column_count,
          .units = whole_units(column_count) / kUnit,
          .most = options.most,
          .element = options.element,
          .pooling = options.pooling,
          .weighted = options.weighted};
}

std::size_t lookup_row_bytes(const LookupState& state) noexcept {
  return std::size_t{state.units} * kUnit * bytes_of(state.element);
}

std::size_t lookup_query_bytes(const LookupState& state) noexcept {
  const std::size_t words = std::size_t{1} + (state.weighted ? 2 : 1) * std::size_t{state.most};
  return words * sizeof(std::uint32_t);
}

std::size_t lookup_samples(const LookupState& state) noexcept {
  constexpr std::size_t kMost = 65536;
  constexpr std::size_t kBytesMost = 64 * kMiB;  // of queries and answers
  constexpr std::size_t kTimesARow = 4;
  const std::size_t by_bytes = kBytesMost / (lookup_query_bytes(state) + state.columns * sizeof(float));
  const std::size_t by_rows = state.row_count * kTimesARow / state.most;
  return std::min({kMost, by_bytes, by_rows});
}

std::string lookup_query_type(const LookupState& state) {
  const std::string weights = state.weighted ? fmt::format(", ('weights', '<f4', ({},))", state.most) : "";
  return fmt::format("([('count', '<u4'), ('rows', '<u4', ({},)){}], ())", state.most, weights);
}

std::string lookup_answer_type(const LookupState& state) { return fmt::format("('<f4', ({},))", state.columns); }

Pooling parse_pooling(std::string_view text) {
  if (text == "sum") return Pooling::sum;
  if (text == "mean") return Pooling::mean;
  if (text == "max") return Pooling::max;
  throw UsageError(fmt::format("a pooling must be sum, mean or max, not '{}'", text));
}

}  // namespace headrace::operators
