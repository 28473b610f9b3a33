#include "headrace/measure/detail/arrivals.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <limits>

#include "headrace/base/error.hpp"
#include "tests/temporary_folder.hpp"

namespace headrace::measure {
namespace {

using std::chrono::milliseconds;

std::vector<Duration> take(Arrivals arrivals, int count) {
  std::vector<Duration> times;
  for (int i = 0; i < count; ++i) times.push_back(arrivals.next());
  return times;
}

TEST(Arrivals, ConstantGapsAreEqual) {
  const auto times = take(Arrivals::constant(1000), 5);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(times[static_cast<std::size_t>(i)], milliseconds(i + 1));
}

TEST(Arrivals, PoissonIsReproducibleAndDependsOnTheSeed) {
  EXPECT_EQ(take(Arrivals::poisson(1e6, 7), 1000), take(Arrivals::poisson(1e6, 7), 1000));
  EXPECT_NE(take(Arrivals::poisson(1e6, 7), 1000), take(Arrivals::poisson(1e6, 8), 1000));
}

// An exponential gap has a standard deviation equal to its mean; for 200,000 gaps both are within 2%.
TEST(Arrivals, PoissonGapsAreExponential) {
  constexpr int kCount = 200'000;
  constexpr double kRate = 1e5;
  const auto times = take(Arrivals::poisson(kRate, 3), kCount);
  double sum = 0;
  double squares = 0;
  Duration before{};
  for (const Duration time : times) {
    ASSERT_GE(time, before);
    const double gap = static_cast<double>((time - before).count());
    sum += gap;
    squares += gap * gap;
    before = time;
  }
  const double mean = sum / kCount;
  EXPECT_NEAR(mean, 1e9 / kRate, 0.02 * 1e9 / kRate);
  EXPECT_NEAR(std::sqrt(squares / kCount - mean * mean), mean, 0.02 * mean);
}

// The share of gaps longer than k times their mean is exp(-k); the test allows 4 standard deviations of 200,000 gaps.
TEST(Arrivals, PoissonGapsHaveTheExponentialTail) {
  constexpr int kCount = 200'000;
  const auto times = take(Arrivals::poisson(1e3, 11), kCount);
  for (const double k : {0.01, 0.1, 0.7, 1.0, 2.0, 4.0, 7.0}) {
    int above = 0;
    Duration before{};
    for (const Duration time : times) {
      above += static_cast<double>((time - before).count()) > k * 1e6 ? 1 : 0;
      before = time;
    }
    const double share = std::exp(-k);
    EXPECT_NEAR(above, kCount * share, 4 * std::sqrt(kCount * share * (1 - share))) << k;
  }
}

TEST(Arrivals, TraceStartsOverAtItsEnd) {
  const auto times = take(Arrivals::trace({milliseconds(1), milliseconds(4)}), 4);
  EXPECT_EQ(times, (std::vector<Duration>{milliseconds(1), milliseconds(4), milliseconds(5), milliseconds(8)}));
  EXPECT_DOUBLE_EQ(Arrivals::trace({milliseconds(1), milliseconds(4)}).per_second(), 500);
}

TEST(Arrivals, RefuseRatesThatAreNone) {
  for (const double rate : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    EXPECT_THROW(static_cast<void>(Arrivals::poisson(rate, 1)), UsageError) << rate;
    EXPECT_THROW(static_cast<void>(Arrivals::constant(rate)), UsageError) << rate;
  }
}

TEST(Arrivals, RefuseTracesThatDoNotAscend) {
  EXPECT_THROW(static_cast<void>(Arrivals::trace({})), UsageError);
  EXPECT_THROW(static_cast<void>(Arrivals::trace({milliseconds(-1)})), UsageError);
  EXPECT_THROW(static_cast<void>(Arrivals::trace({Duration::zero()})), UsageError);
  EXPECT_THROW(static_cast<void>(Arrivals::trace({milliseconds(2), milliseconds(1)})), UsageError);
}

class TraceFile : public ::testing::Test {
 protected:
  std::string write(const std::string& text) {
    const std::string path = folder_.path() / "trace.txt";
    std::ofstream(path) << text;
    return path;
  }

 private:
  headrace::testing::TemporaryFolder folder_;
};

TEST_F(TraceFile, ReadsSecondsAndSkipsComments) {
  EXPECT_EQ(read_trace(write("# seconds\n0.001\n\n0.0025\n")),
            (std::vector<Duration>{milliseconds(1), std::chrono::microseconds(2500)}));
}

TEST_F(TraceFile, NamesTheLineThatIsNoNumber) {
  for (const char* bad : {"0.1\nsoon\n", "0.1\n-1\n", "0.1\n0.2 s\n", "0.1\nnan\n"}) {
    try {
      static_cast<void>(read_trace(write(bad)));
      ADD_FAILURE() << bad;
    } catch (const DataError& error) {
      EXPECT_NE(std::string(error.what()).find(":2:"), std::string::npos) << error.what();
    }
  }
}

TEST_F(TraceFile, AMissingFileKeepsErrno) {
  try {
    static_cast<void>(read_trace("/nonexistent/trace.txt"));
    ADD_FAILURE();
  } catch (const SystemError& error) {
    EXPECT_EQ(error.native(), ENOENT);
  }
}

}  // namespace
}  // namespace headrace::measure
