#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "headrace/base/error.hpp"
#include "operators/spmv/csr_check.hpp"
#include "operators/spmv/layout.hpp"

namespace headrace::operators {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::int64_t> starts_of(const std::vector<std::int64_t>& lengths) {
  std::vector<std::int64_t> starts{0};
  for (const std::int64_t length : lengths) starts.push_back(starts.back() + length);
  return starts;
}

TEST(SpmvLayout, RowsAreCutByWhatTheyCost) {
  EXPECT_THAT(cut_rows(starts_of({3, 3, 3, 3}), 2), ElementsAre(0, 2, 4));
  EXPECT_THAT(cut_rows(starts_of({9, 1, 1, 1, 1}), 2), ElementsAre(0, 1, 5));
  EXPECT_THAT(cut_rows(starts_of({0, 0, 0, 0}), 2), ElementsAre(0, 2, 4)) << "empty rows cost something";
  EXPECT_THAT(cut_rows(starts_of({5, 5}), 4), ElementsAre(0, 1, 1, 2, 2)) << "more parts than rows";
  EXPECT_THAT(cut_rows(starts_of({}), 3), ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(cut_rows(starts_of({1000000, 1, 1, 1}), 3), ElementsAre(0, 1, 1, 4)) << "a row is never cut";
}

TEST(SpmvLayout, VectorsAreCutAsRowsAre) {
  EXPECT_THAT(scale_cut({0, 25, 100}, 1000), ElementsAre(0, 250, 1000));
  EXPECT_THAT(scale_cut({0, 0, 0}, 10), ElementsAre(0, 5, 10));
  EXPECT_THAT(scale_cut({0, 1, 3}, 0), ElementsAre(0, 0, 0));
}

TEST(SpmvLayout, PagesGoWhereMostOfTheirElementsAre) {
  const Device a = Device::parse("cpu:0");
  const Device b = Device::parse("cpu:1");
  const std::uint64_t page = kPageBytes / sizeof(double);
  EXPECT_THAT(vector_pages({0, page + page / 2 + 1, 4 * page}, sizeof(double), {a, b}),
              ElementsAre(Place::on(a), Place::on(a), Place::on(b), Place::on(b)));
  EXPECT_THAT(vector_pages({0, page / 4, page / 2}, sizeof(float), {a, b}), ElementsAre(Place::on(a)));
  EXPECT_THAT(vector_pages({0, 0, 0}, sizeof(float), {a, b}), ElementsAre(Place::on(a))) << "a span has a page";
}

// For any rows, chunks hold each entry once, in order, and never exceed their capacity.
TEST(SpmvLayout, ChunksHoldEveryEntryOnce) {
  std::mt19937_64 random(3);
  std::vector<std::int64_t> lengths;
  for (int i = 0; i < 5000; ++i) {
    const auto kind = random() % 100;
    lengths.push_back(static_cast<std::int64_t>(kind < 60 ? random() % 40 : kind < 98 ? 0 : random() % 9000));
  }
  lengths.insert(lengths.end(), 5000, 0);
  lengths.insert(lengths.end(), {2048, 2049, 2048, 1, 4096});
  const auto starts = starts_of(lengths);
  const std::uint64_t first = 700;
  const PartWork work = cut_work(starts, first, lengths.size());
  ASSERT_EQ(work.row_starts.size(), lengths.size() - first);
  std::uint64_t entry = 0;
  std::uint64_t row = first;
  std::uint64_t partial = 0;
  auto long_row = work.long_rows.begin();
  for (const SpmvChunk& chunk : work.chunks) {
    ASSERT_EQ(chunk.first_entry, entry);
    ASSERT_LE(chunk.entries, kSpmvChunkEntries);
    if (chunk.rows == 0) {
      ASSERT_EQ(chunk.first_row, partial++);
      ASSERT_EQ(long_row->row, row - first);
      ASSERT_GE(chunk.first_row, long_row->first_partial);
      entry += chunk.entries;
      if (partial == long_row->first_partial + long_row->partials) {
        ASSERT_EQ(entry, static_cast<std::uint64_t>(starts[row + 1] - starts[first]));
        ++row;
        ++long_row;
      }
      continue;
    }
    ASSERT_EQ(chunk.first_row, row - first);
    for (std::uint32_t i = 0; i < chunk.rows; ++i, ++row) {
      ASSERT_EQ(work.row_starts[row - first], entry - chunk.first_entry);
      entry += static_cast<std::uint64_t>(lengths[row]);
    }
    ASSERT_EQ(entry, chunk.first_entry + chunk.entries);
  }
  EXPECT_EQ(row, lengths.size());
  EXPECT_EQ(partial, work.partials);
  EXPECT_EQ(long_row, work.long_rows.end());
  EXPECT_GT(work.long_rows.size(), 2U);
}

TEST(SpmvLayout, ArraysOfAPartAreAlignedAndApart) {
  const PartWork work = cut_work(starts_of({5, 3000, 7}), 0, 3);
  const PartLayout at = lay_out(work, 3012, 77, sizeof(float));
  const std::vector<std::size_t> places{at.chunks,  at.long_rows, at.row_starts, at.partials,
                                        at.columns, at.values,    at.x_copy};
  for (const std::size_t place : places) EXPECT_EQ(place % 256, 0U);
  EXPECT_TRUE(std::is_sorted(places.begin(), places.end()));
  EXPECT_GE(at.values - at.columns, 3012 * sizeof(std::uint32_t));
  EXPECT_GE(at.x_copy - at.values, 3012 * sizeof(float));
  EXPECT_GE(at.bytes - at.x_copy, 77 * sizeof(float));
  EXPECT_EQ(at.pages, 1U);
  EXPECT_EQ(lay_out({}, 0, 0, sizeof(float)).pages, 0U);
}

/// The error for a matrix of 3 columns with these row pointers and columns.
std::string complaint(std::uint64_t rows, const std::vector<std::int64_t>& starts,
                      const std::vector<std::int32_t>& columns, std::size_t value_count) {
  const std::vector<float> values(value_count);
  try {
    require_csr(HostCsr<float, std::int32_t>{rows, 3, starts, columns, values});
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(SpmvCheck, NamesWhatIsWrong) {
  EXPECT_EQ(complaint(2, {0, 1, 3}, {0, 1, 2}, 3), "");
  EXPECT_EQ(complaint(0, {0}, {}, 0), "");
  EXPECT_THAT(complaint(2, {0, 3}, {0, 1, 2}, 3), HasSubstr("2 rows needs 3 row pointers (indptr), not 2"));
  EXPECT_THAT(complaint(0, {}, {}, 0), HasSubstr("0 rows needs 1 row pointers (indptr), not 0"));
  EXPECT_THAT(complaint(2, {1, 1, 3}, {0, 1, 2}, 3), HasSubstr("must start with 0, not 1"));
  EXPECT_THAT(complaint(3, {0, 2, 1, 3}, {0, 1, 2}, 3), HasSubstr("row 1: row pointers (indptr) fall from 2 to 1"));
  EXPECT_THAT(complaint(2, {0, 1, 2}, {0, 1, 2}, 3), HasSubstr("end with 2, but there are 3 entries"));
  EXPECT_THAT(complaint(2, {0, 1, 3}, {0, 1, 2}, 2), HasSubstr("3 columns (indices) and 2 values (data)"));
  EXPECT_THAT(complaint(3, {0, 1, 1, 3}, {0, 3, 2}, 3),
              HasSubstr("entry 1 (row 2): column 3 is outside the 3 columns"));
  EXPECT_THAT(complaint(3, {0, 1, 1, 3}, {-1, 1, 9}, 3), HasSubstr("entry 0 (row 0): column -1"));
}

TEST(SpmvCheck, FindsTheFirstOfManyErrors) {
  constexpr std::uint64_t kRows = 300000;
  std::vector<std::int64_t> starts(kRows + 1);
  for (std::uint64_t r = 0; r <= kRows; ++r) starts[r] = static_cast<std::int64_t>(r);
  std::vector<std::int64_t> columns(kRows, 1);
  const std::vector<double> values(kRows);
  columns[299999] = columns[123456] = 7;
  try {
    require_csr(HostCsr<double, std::int64_t>{kRows, 2, starts, columns, values});
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("entry 123456 (row 123456): column 7"));
  }
}

}  // namespace
}  // namespace headrace::operators
