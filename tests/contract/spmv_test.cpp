#include <numeric>

#include "headrace/base/error.hpp"
#include "headrace/operators/csr_matrix.hpp"
#include "tests/contract/devices.hpp"

namespace headrace::testing {
namespace {

using operators::CsrMatrix;
using operators::HostCsr;
using operators::VectorReads;

/// Values are small whole numbers, so their sums are exact in any order.
template <class Value, class Column>
struct Matrix {
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  std::vector<std::int64_t> starts{0};
  std::vector<Column> indices;
  std::vector<Value> values;

  Matrix(std::uint64_t its_rows, std::uint64_t its_columns) : rows(its_rows), columns(its_columns) {}

  void add(std::uint64_t column) {
    indices.push_back(static_cast<Column>(column));
    values.push_back(static_cast<Value>((column * 7 + starts.size()) % 5) - 2);
  }
  void end_row() { starts.push_back(static_cast<std::int64_t>(indices.size())); }

  [[nodiscard]] HostCsr<Value, Column> host() const { return {rows, columns, starts, indices, values}; }

  [[nodiscard]] std::vector<Value> times(const std::vector<Value>& x) const {
    std::vector<Value> y(rows);
    for (std::uint64_t r = 0; r < rows; ++r) {
      for (auto i = static_cast<std::size_t>(starts[r]); i < static_cast<std::size_t>(starts[r + 1]); ++i) {
        y[r] += values[i] * x[static_cast<std::size_t>(indices[i])];
      }
    }
    return y;
  }
};

template <class Value, class Column = std::int32_t>
Matrix<Value, Column> banded(std::uint64_t size, std::uint64_t half) {
  Matrix<Value, Column> matrix(size, size);
  for (std::uint64_t r = 0; r < size; ++r) {
    for (std::uint64_t c = r < half ? 0 : r - half; c <= std::min(size - 1, r + half); ++c) matrix.add(c);
    matrix.end_row();
  }
  return matrix;
}

/// Rows of all lengths: most short, many empty, some longer than a chunk, one dense.
template <class Value, class Column = std::int32_t>
Matrix<Value, Column> skewed(std::uint64_t rows, std::uint64_t columns, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Matrix<Value, Column> matrix(rows, columns);
  for (std::uint64_t r = 0; r < rows; ++r) {
    const auto kind = random() % 1000;
    std::uint64_t length = kind < 300 ? 0 : kind < 990 ? random() % 30 : random() % 6000;
    if (r == rows / 3) length = columns;
    for (std::uint64_t i = 0; i < length; ++i) matrix.add(r == rows / 3 ? i : random() % columns);
    matrix.end_row();
  }
  return matrix;
}

template <class Value>
std::vector<Value> some_values(std::uint64_t count) {
  std::vector<Value> values(count);
  for (std::uint64_t i = 0; i < count; ++i) values[i] = static_cast<Value>((i * 13 + 5) % 7) - 3;
  return values;
}

template <class Value, class Column>
void expect_product(const std::vector<Device>& devices, const Matrix<Value, Column>& host,
                    VectorReads reads = VectorReads::automatic) {
  CsrMatrix<Value> matrix(devices, host.host(), reads);
  ASSERT_EQ(matrix.row_count(), host.rows);
  ASSERT_EQ(matrix.column_count(), host.columns);
  ASSERT_EQ(matrix.entry_count(), host.values.size());
  const std::vector<Value> x = some_values<Value>(host.columns);
  const Span in = matrix.input_vector();
  const Span out = matrix.output_vector();
  std::vector<Value> y(host.rows, Value{99});
  ASSERT_OK(matrix.copy_in(in, x));
  ASSERT_OK(matrix.copy_in(out, y));
  ASSERT_OK(matrix.multiply(in.as<Value>(), out.as<Value>()));
  ASSERT_OK(matrix.copy_out(y, out));
  EXPECT_EQ(y, host.times(x));
}

class SpmvTest : public DeviceTest {
 public:
  /// All devices up to `count`; a test can make any number of CPU devices.
  [[nodiscard]] static std::vector<Device> devices(std::size_t count) {
    std::vector<Device> found{device()};
    for (const Device other : Device::list()) {
      if (!on_cpu() && other.kind() == device().kind() && other != device() && found.size() < count) {
        found.push_back(other);
      }
    }
    for (std::size_t i = 1; on_cpu() && i < count; ++i) found.push_back(Device::parse("cpu:" + std::to_string(i)));
    return found;
  }
};
HEADRACE_ON_EVERY_DEVICE(SpmvTest);

TEST_P(SpmvTest, MatricesOfAllKindsOverOneAndSeveralDevices) {
  for (const std::size_t count : {1U, 2U, 3U}) {
    SCOPED_TRACE(count);
    expect_product(devices(count), banded<double>(3000, 12));
    expect_product(devices(count), banded<float, std::int64_t>(3000, 1));
    expect_product(devices(count), skewed<float>(4000, 7000, count));
    expect_product(devices(count), skewed<double, std::int64_t>(3001, 2500, 7 + count));
  }
}

TEST_P(SpmvTest, VectorsReadInPlaceOrCopied) {
  for (const VectorReads reads : {VectorReads::in_place, VectorReads::copied}) {
    expect_product(devices(3), banded<float>(3000, 12), reads);
    expect_product(devices(2), skewed<double, std::int64_t>(3001, 9000, 3), reads);
    expect_product(devices(2), Matrix<float, std::int32_t>(0, 10), reads);
  }
}

TEST_P(SpmvTest, WhatIsReadFromAllOverIsCopied) {
  const auto all = devices(2);
  const std::uint64_t columns = 2 * kPageBytes / sizeof(double);
  Matrix<double, std::int64_t> wide(2, columns);
  for (std::uint64_t i = 0; i < 1200000; ++i) {
    wide.indices.push_back(static_cast<std::int64_t>(i * 48271 % columns));
    wide.values.push_back(1);
    if (i == 600000) wide.end_row();
  }
  wide.end_row();
  const CsrMatrix<double> matrix(all, wide.host());
  for (const auto& part : matrix.parts()) {
    EXPECT_EQ(part.remote_read_count > part.entry_count / 3, all.size() > 1);
    EXPECT_EQ(part.copied_count > 0, all.size() > 1) << "alone, nothing is remote";
    EXPECT_LE(part.copied_count, columns);
  }
}

TEST_P(SpmvTest, RowsOfEveryLengthAboutTheSizesThatMatter) {
  Matrix<double, std::int32_t> matrix(0, 5000);
  for (const std::uint64_t length :
       {0U, 1U, 31U, 32U, 33U, 255U, 256U, 257U, 1023U, 1024U, 1025U, 2047U, 2048U, 2049U, 4096U, 4097U}) {
    for (std::uint64_t c = 0; c < length; ++c) matrix.add(c);
    matrix.end_row();
    ++matrix.rows;
  }
  expect_product(devices(1), matrix);
  expect_product(devices(2), matrix);
}

TEST_P(SpmvTest, MatricesWithNothingInThem) {
  expect_product(devices(2), Matrix<float, std::int32_t>(0, 0));
  expect_product(devices(2), Matrix<float, std::int32_t>(0, 10));
  Matrix<double, std::int32_t> empty_rows(5000, 0);
  for (int r = 0; r < 5000; ++r) empty_rows.end_row();
  expect_product(devices(2), empty_rows);
  Matrix<float, std::int64_t> one(1, 1);
  one.add(0);
  one.end_row();
  expect_product(devices(3), one);  // more devices than rows
}

TEST_P(SpmvTest, VectorsLieOverAllDevices) {
  const auto all = devices(2);
  const std::uint64_t size = 3 * kPageBytes / sizeof(double);
  const Matrix<double, std::int32_t> host = banded<double>(size, 0);
  const CsrMatrix<double> matrix(all, host.host());
  const Span in = matrix.input_vector();
  EXPECT_EQ(in.places(), matrix.output_vector().places()) << "y can be the next x";
  EXPECT_EQ(in.places().front(), Place::on(all.front()));
  EXPECT_EQ(in.places().back(), Place::on(all.back()));
  std::uint64_t entries = 0;
  std::uint64_t rows = 0;
  for (const auto& part : matrix.parts()) {
    EXPECT_EQ(part.first_row, rows);
    rows += part.row_count;
    entries += part.entry_count;
    EXPECT_NEAR(static_cast<double>(part.row_count), static_cast<double>(size) / static_cast<double>(all.size()), 2);
    // The page in the middle belongs to one device, and the other one reads half of it.
    EXPECT_LE(part.remote_read_count, all.size() == 1 ? 0 : host.values.size() / 5);
    // Blocks read neighbouring elements, four of which share a sector.
    EXPECT_LE(part.remote_bytes, part.remote_read_count * sizeof(double) * 11 / 10);
    EXPECT_EQ(part.copied_count, 0U);
  }
  EXPECT_EQ(rows, size);
  EXPECT_EQ(entries, host.values.size());
}

// Each step reads what all devices wrote in the step before. More steps are in flight at once than the queue holds.
TEST_P(SpmvTest, StepsFollowEachOtherWithoutAWait) {
  Matrix<double, std::int32_t> shift(20000, 20000);  // y[r] = x[(r + 7919) mod rows] moves values between the devices
  for (std::uint64_t r = 0; r < shift.rows; ++r) {
    shift.indices.push_back(static_cast<std::int32_t>((r + 7919) % shift.rows));
    shift.values.push_back(1);
    shift.end_row();
  }
  CsrMatrix<double> matrix(devices(3), shift.host());
  const Span a = matrix.input_vector();
  const Span b = matrix.input_vector();
  std::vector<double> x(shift.columns);
  std::iota(x.begin(), x.end(), 0.0);
  ASSERT_OK(matrix.copy_in(a, x));
  constexpr int kSteps = 60;
  for (int step = 0; step < kSteps; ++step) {
    const Span& from = step % 2 == 0 ? a : b;
    const Span& to = step % 2 == 0 ? b : a;
    ASSERT_OK(matrix.enqueue(from.as<double>(), to.as<double>()));
  }
  std::vector<double> y(shift.rows);
  ASSERT_OK(matrix.copy_out(y, a));
  for (std::uint64_t r = 0; r < shift.rows; ++r) {
    ASSERT_EQ(y[r], static_cast<double>((r + std::uint64_t{7919} * kSteps) % shift.rows)) << r;
  }
}

TEST_P(SpmvTest, EndsWithWorkEnqueued) {
  const auto host = banded<float>(2000, 3);
  auto matrix = std::make_unique<CsrMatrix<float>>(devices(2), host.host());
  const Span x = matrix->input_vector();
  const Span y = matrix->output_vector();
  ASSERT_OK(matrix->copy_in(x, some_values<float>(2000)));
  for (int i = 0; i < 5; ++i) ASSERT_OK(matrix->enqueue(x.as<float>(), y.as<float>()));
  CsrMatrix<float> moved = std::move(*matrix);
  matrix.reset();
  std::vector<float> result(2000);
  ASSERT_OK(moved.copy_out(result, y));
  EXPECT_EQ(result, host.times(some_values<float>(2000)));
  ASSERT_OK(moved.enqueue(x.as<float>(), y.as<float>()));
}

TEST_P(SpmvTest, BadVectorsAreRefused) {
  const auto host = banded<double>(100, 1);
  CsrMatrix<double> matrix(devices(2), host.host());
  const Span x = matrix.input_vector();
  const Span y = matrix.output_vector();
  EXPECT_TRUE(failed_with(matrix.multiply(nullptr, y.as<double>()), Errc::invalid_argument));
  EXPECT_TRUE(failed_with(matrix.multiply(x.as<double>(), nullptr), Errc::invalid_argument));
  EXPECT_TRUE(failed_with(matrix.multiply(x.as<double>(), x.as<double>() + 99), Errc::invalid_argument));
  EXPECT_TRUE(failed_with(matrix.multiply(x.as<double>() + 99, x.as<double>()), Errc::invalid_argument));
  std::vector<double> long_one(101);
  EXPECT_TRUE(failed_with(matrix.copy_in(x, long_one), Errc::invalid_argument));
  EXPECT_TRUE(failed_with(matrix.copy_out(long_one, y), Errc::invalid_argument));
  std::vector<double> zeros(100);
  ASSERT_OK(matrix.copy_in(x, zeros));
  EXPECT_OK(matrix.multiply(x.as<double>(), y.as<double>()));
}

TEST_P(SpmvTest, BadDevicesAndMatricesAreRefused) {
  const auto host = banded<double>(10, 1);
  EXPECT_THROW(CsrMatrix<double>({}, host.host()), UsageError);
  EXPECT_THROW(CsrMatrix<double>({device(), device()}, host.host()), UsageError);
  if (!on_cpu()) {
    EXPECT_THROW(CsrMatrix<double>({device(), Device::parse("cpu")}, host.host()), UsageError);
  }
  Matrix<double, std::int32_t> wrong = host;
  wrong.indices[5] = 10;
  EXPECT_THROW(CsrMatrix<double>(devices(2), wrong.host()), UsageError);
  EXPECT_EQ(operators::parse_vector_reads("in-place"), VectorReads::in_place);
  EXPECT_THROW(static_cast<void>(operators::parse_vector_reads("sometimes")), UsageError);
}

}  // namespace
}  // namespace headrace::testing
