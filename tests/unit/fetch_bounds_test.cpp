#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "fetch/parquet_footer.hpp"
#include "fetch/query/prune.hpp"

namespace headrace::fetch {
namespace {

enum Physical : int { boolean, int32, int64, int96, float32, float64, byte_array, fixed_bytes };

template <class T>
std::string plain(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

template <class T>
ChunkBounds bounds(int physical, T least, T greatest, const DataType& type) {
  return bounds_of({.physical_type = physical, .least = plain(least), .greatest = plain(greatest), .nulls = 0}, type,
                   10);
}

void expect_range(const ChunkBounds& found, std::int64_t least, std::int64_t greatest) {
  ASSERT_TRUE(found.range.has_value());
  EXPECT_EQ(found.range->least, least);
  EXPECT_EQ(found.range->greatest, greatest);
}

TEST(FetchBounds, AreThoseOfTheColumnsType) {
  expect_range(bounds<std::int32_t>(int32, -5, 7, {.id = Type::int8}), -5, 7);
  expect_range(bounds<std::int64_t>(int64, -5, 7, {.id = Type::timestamp}), -5, 7);
  expect_range(bounds<std::uint32_t>(int32, 5, 0xFFFF'FFFF, {.id = Type::uint32}), 5, 0xFFFF'FFFF);
  expect_range(bounds<std::int32_t>(int32, -5, 7, {.id = Type::decimal128, .precision = 9, .scale = 2}), -5, 7);
  expect_range(bounds_of({.physical_type = fixed_bytes, .least = "\xFF\xFE", .greatest = std::string("\x01\x00", 2)},
                         {.id = Type::decimal128, .precision = 4}, 10),
               -2, 256);
  const auto strings =
      bounds_of({.physical_type = byte_array, .least = "a", .greatest = "\xC3\xA9"}, {.id = Type::dictionary}, 10);
  ASSERT_TRUE(strings.strings.has_value());
  EXPECT_EQ(strings.nulls, -1);
}

TEST(FetchBounds, OfFloatsNothingIsSaidOfTheGreatest) {
  const auto found = bounds(float64, -0.0, 5.0, {.id = Type::float64});
  ASSERT_TRUE(found.range.has_value());
  EXPECT_TRUE(std::isnan(std::bit_cast<double>(found.range->greatest)));
  const double none = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(bounds(float64, none, 5.0, {.id = Type::float64}).range);
}

TEST(FetchBounds, WhatContradictsItselfSaysNothing) {
  const auto nothing = [](const ChunkBounds& found) { return !found.range && !found.strings && found.nulls < 0; };
  EXPECT_TRUE(nothing(bounds<std::int32_t>(int32, 8, 7, {.id = Type::int32})));
  EXPECT_TRUE(nothing(bounds<std::int32_t>(int32, -7, 5, {.id = Type::uint32})));  // ordered differently from the type
  EXPECT_TRUE(
      nothing(bounds_of({.physical_type = byte_array, .least = "b", .greatest = "a"}, {.id = Type::dictionary}, 9)));
  EXPECT_TRUE(nothing(bounds_of({.physical_type = int32, .least = plain(1), .greatest = plain(2), .nulls = 11},
                                {.id = Type::int32}, 10)));
  EXPECT_TRUE(nothing(bounds_of({.physical_type = int32, .nulls = -1}, {.id = Type::int32}, 10)));
}

TEST(FetchBounds, WhatIsOfAnotherTypeOrSizeIsLeftOut) {
  EXPECT_FALSE(bounds<std::int64_t>(int32, 1, 2, {.id = Type::int32}).range);
  EXPECT_FALSE(bounds<std::int64_t>(int96, 1, 2, {.id = Type::timestamp}).range);
  EXPECT_FALSE(bounds<std::int64_t>(-1, 1, 2, {.id = Type::int64}).range);
  EXPECT_FALSE(bounds(float32, 1.0F, 2.0F, {.id = Type::float64}).range);
  EXPECT_FALSE(bounds<std::int32_t>(int32, 1, 2, {.id = Type::float32}).range);
  EXPECT_FALSE(bounds<std::uint8_t>(boolean, 0, 2, {.id = Type::boolean}).range);
  EXPECT_FALSE(bounds<std::uint64_t>(int64, 1, 1ULL << 63, {.id = Type::uint64}).range);
  const DataType wide{.id = Type::decimal128, .precision = 38};
  EXPECT_FALSE(
      bounds_of({.physical_type = fixed_bytes, .least = std::string(16, '\x01'), .greatest = std::string(16, '\x02')},
                wide, 10)
          .range);
  EXPECT_FALSE(bounds_of({.physical_type = byte_array, .least = "", .greatest = ""}, wide, 10).range);
  EXPECT_FALSE(
      bounds_of({.physical_type = fixed_bytes, .least = "a", .greatest = "b"}, {.id = Type::dictionary}, 10).strings);
}

/// One chunk of ten rows of a column of int32 with these bounds.
class Bounded final : public Source {
 public:
  explicit Bounded(ChunkBounds bounds)
      : Source({{.name = "a", .type = {.id = Type::int32}}}, {{.rows = 10}}), bounds_(std::move(bounds)) {}
  OwnedArray read(Chunk /*chunk*/) override { return {}; }
  std::vector<FileRange> ranges(Chunk /*chunk*/) const override { return {}; }
  std::size_t read_bytes(Chunk /*chunk*/) const override { return 0; }
  const ChunkBounds* bounds(Chunk /*chunk*/) const override { return &bounds_; }

 private:
  ChunkBounds bounds_;
};

Expression compare(Operation operation, std::int64_t value) {
  return Expression::call(operation, {Expression::column(0), Expression::literal({.id = Type::int64}, value)});
}

/// Checks against every row that the bounds allow: pruning keeps a chunk if any such row passes.
TEST(FetchPrune, KeepsWhatAnyRowOfTheBoundsPasses) {
  constexpr std::array comparisons{Operation::equal,      Operation::not_equal, Operation::less,
                                   Operation::less_equal, Operation::greater,   Operation::greater_equal};
  const auto holds = [](Operation operation, std::int64_t a, std::int64_t b) {
    switch (operation) {
      case Operation::equal: return a == b;
      case Operation::not_equal: return a != b;
      case Operation::less: return a < b;
      case Operation::less_equal: return a <= b;
      case Operation::greater: return a > b;
      default: return a >= b;
    }
  };
  for (std::int64_t least = -2; least <= 2; ++least) {
    for (std::int64_t greatest = least; greatest <= 2; ++greatest) {
      const Bounded source({.range = ValueRange{least, greatest}, .nulls = 0});
      for (const Operation first : comparisons) {
        for (const Operation second : comparisons) {
          for (std::int64_t literal = -3; literal <= 3; ++literal) {
            const auto left = compare(first, literal);
            const auto right = compare(second, 0);
            bool both = false;
            bool one = false;
            bool neither = false;
            bool alone = false;
            for (std::int64_t value = least; value <= greatest; ++value) {
              const bool a = holds(first, value, literal);
              const bool b = holds(second, value, 0);
              both |= a && b;
              one |= a || b;
              neither |= !a && !b;
              alone |= a;
            }
            const auto passes = [&](const Expression& filter) { return may_pass(filter, source, 0); };
            const auto either = Expression::call(Operation::logical_or, {left, right});
            EXPECT_EQ(passes(left), alone);
            EXPECT_TRUE(passes(Expression::call(Operation::logical_and, {left, right})) || !both);
            EXPECT_EQ(passes(either), one);
            EXPECT_TRUE(passes(Expression::call(Operation::logical_not, {either})) || !neither);
          }
        }
      }
    }
  }
}

TEST(FetchPrune, KnowsWhatIsMissing) {
  const auto null = Expression::call(Operation::is_null, {Expression::column(0)});
  const auto passes = [](std::int64_t nulls, const Expression& filter) {
    return may_pass(filter, Bounded({.range = ValueRange{1, 2}, .nulls = nulls}), 0);
  };
  const auto there = Expression::call(Operation::logical_not, {null});
  EXPECT_FALSE(passes(0, null));
  EXPECT_TRUE(passes(1, null));
  EXPECT_TRUE(passes(-1, null));
  EXPECT_TRUE(passes(0, there));
  EXPECT_FALSE(passes(10, there));
  EXPECT_FALSE(passes(10, compare(Operation::less, 5)));
  EXPECT_FALSE(passes(10, Expression::call(Operation::logical_not, {compare(Operation::less, 5)})));
  EXPECT_TRUE(passes(10, Expression::call(Operation::logical_or, {null, compare(Operation::less, 5)})));
}

TEST(FetchPrune, SaysNothingOfWhatItDoesNotKnow) {
  const Bounded source({});
  EXPECT_TRUE(may_pass(compare(Operation::less, 5), source, 0));
  const auto sum = Expression::call(Operation::add, {Expression::column(0), Expression::column(0)});
  const Bounded known({.range = ValueRange{1, 2}, .nulls = 0});
  EXPECT_TRUE(
      may_pass(Expression::call(Operation::less, {sum, Expression::literal({.id = Type::int64}, 0)}), known, 0));
  EXPECT_TRUE(may_pass(Expression::call(Operation::less, {Expression::column(0), Expression::column(0)}), known, 0));
  // Compiling refuses values that cannot be compared.
  const auto flag = Expression::literal({.id = Type::boolean}, 1);
  EXPECT_TRUE(may_pass(Expression::call(Operation::less, {Expression::column(0), flag}), known, 0));
}

}  // namespace
}  // namespace headrace::fetch
