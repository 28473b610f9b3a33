#include <algorithm>

#include "tests/contract/kernels.hpp"
#include "tests/contract/span_support.hpp"

/// Rights of each device to each page of a span.
namespace headrace::testing {
namespace {

class SpanRightsTest : public SpanTest {};

TEST_P(SpanRightsTest, AreFullAtFirstForThoseItIsFor) {
  const auto other = peer();
  SpanOptions options;
  if (other) options.accessed_by = {*other};
  const Span span(device(), 2 * kPageBytes, Placement::map({here(), Place::host()}), options);
  for (const std::size_t page : {0U, 1U}) {
    EXPECT_EQ(span.right(device(), page), Right::read_write);
    if (other) {
      EXPECT_EQ(span.right(*other, page), Right::read_write);
    }
  }
  EXPECT_EQ(span.host_right(0), on_cpu() ? Right::read_write : Right::none) << "CUDA shows the host no device pages";
  EXPECT_EQ(span.host_right(1), Right::read_write);
}

TEST_P(SpanRightsTest, OthersHaveNone) {
  const Span span(device(), kPageBytes, Placement::all(here()));
  if (const auto other = peer()) {
    EXPECT_EQ(span.right(*other, 0), Right::none);
  }
  if (!on_cpu()) {
    EXPECT_EQ(span.right(Device::parse("cpu"), 0), Right::none);
  }
  expect_usage_error([&] { static_cast<void>(span.right(device(), 1)); }, "there is no page 1");
  expect_usage_error([&] { static_cast<void>(span.host_right(7)); }, "there is no page 7");
}

TEST_P(SpanRightsTest, AreSetPageByPage) {
  Span span(device(), 5 * kPageBytes, Placement::interleaved({{here(), 1}, {Place::host(), 1}}));
  span.allow(device(), Right::read, PageRange{1, 3});
  span.allow(device(), Right::none, PageRange{3, 2});
  const std::vector<Right> want{Right::read_write, Right::read, Right::read, Right::none, Right::none};
  for (std::size_t page = 0; page < want.size(); ++page) EXPECT_EQ(span.right(device(), page), want[page]) << page;
  span.allow(device(), Right::read, PageRange{5, 0});  // no page: nothing to do
  span.allow(device(), Right::read_write);
  for (std::size_t page = 0; page < want.size(); ++page) EXPECT_EQ(span.right(device(), page), Right::read_write);
}

TEST_P(SpanRightsTest, CanBeGivenToOthersLater) {
  const auto other = peer();
  if (!other) GTEST_SKIP() << "one device alone";
  Span span(device(), 2 * kPageBytes, Placement::map({here(), Place::host()}));
  span.allow(*other, Right::read, PageRange{0, 1});
  EXPECT_EQ(span.right(*other, 0), Right::read);
  EXPECT_EQ(span.right(*other, 1), Right::none);
}

TEST_P(SpanRightsTest, ReadingIsEnoughForACopyFromThePages) {
  Stream stream(device());
  Span span(device(), 3 * kPageBytes, Placement::map({here(), Place::host(), here()}));
  const auto bytes = some_bytes(span.bytes(), 3);
  write(span, stream, bytes);
  span.allow(device(), Right::read);
  EXPECT_TRUE(read(span, stream) == bytes);
}

TEST_P(SpanRightsTest, OutsideOfTheSpanAreRefused) {
  Span span(device(), 3 * kPageBytes, Placement::all(here()));
  for (const PageRange outside : {PageRange{0, 4}, PageRange{3, 1}, PageRange{4, 0}, PageRange{1, ~std::size_t{0}}}) {
    expect_usage_error([&] { span.allow(device(), Right::read, outside); }, "are not in a span of 3 pages");
    expect_usage_error([&] { span.allow_host(Right::none, outside); }, "are not in a span of 3 pages");
  }
}

TEST_P(SpanRightsTest, BeyondReachAreRefused) {
  Span span(device(), 2 * kPageBytes, Placement::map({Place::host(), here()}));
  if (on_cpu()) {
    for (const Device cuda : Device::list()) {
      if (cuda.kind() == DeviceKind::cuda) {
        expect_usage_error([&] { span.allow(cuda, Right::read); }, "cannot reach a span of cpu:0");
      }
    }
    GTEST_SKIP() << "on a CPU device everything is in reach";
  }
  expect_usage_error([&] { span.allow(Device::parse("cpu"), Right::read); }, "cannot reach");
  expect_usage_error([&] { span.allow_host(Right::read); }, "the host cannot reach page 1");
  span.allow_host(Right::none);  // "none" is not a right
  EXPECT_EQ(span.host_right(0), Right::none);
  EXPECT_FALSE(span.host_readable());
  span.allow_host(Right::read, PageRange{0, 1});
  EXPECT_EQ(span.host_right(0), Right::read);
}

TEST_P(SpanRightsTest, OfTheHostDecideWhetherItMayRead) {
  Span span(device(), 2 * kPageBytes, Placement::all(Place::host()));
  span.allow_host(Right::read);
  EXPECT_TRUE(span.host_readable());
  span.allow_host(Right::none, PageRange{1, 1});
  EXPECT_FALSE(span.host_readable());
}

HEADRACE_ON_EVERY_DEVICE(SpanRightsTest);

TEST(CpuSpanRights, AreTheMostThatAnyoneHas) {
  const Device first = Device::parse("cpu:0");
  const Device second = Device::parse("cpu:1");
  Span span(first, 3 * kPageBytes, Placement::map({Place::on(first), Place::on(second), Place::host()}));
  for (std::size_t page = 0; page < 3; ++page) EXPECT_EQ(permissions_at(span.data() + page * kPageBytes), "rw-s");
  span.allow_host(Right::none);
  span.allow(first, Right::none, PageRange{0, 2});
  EXPECT_EQ(permissions_at(span.data()), "rw-s") << "cpu:1 still writes";
  span.allow(second, Right::read, PageRange{1, 2});
  EXPECT_EQ(permissions_at(span.data()), "rw-s");
  EXPECT_EQ(permissions_at(span.data() + kPageBytes), "r--s");
  EXPECT_EQ(permissions_at(span.data() + 2 * kPageBytes), "rw-s") << "cpu:0 still writes";
  span.allow(second, Right::none);
  EXPECT_EQ(permissions_at(span.data()), "---s");
  EXPECT_EQ(permissions_at(span.data() + kPageBytes), "---s");
}

/// Exit of a process whose kernel touches a page without the right to.
void add_to(const Span& span, std::size_t page) {
  Stream stream(span.device(), {.run_in_waiter = true});
  auto* const words = reinterpret_cast<std::uint32_t*>(span.data() + page * kPageBytes);
  const Status launched = launch(stream, add_kernel(), {}, words, 1U, 1U);
  static_cast<void>(launched.ok() && stream.wait().ok());
}

TEST(CpuSpanRightsDeathTest, AStrayAccessFaults) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const Device device = Device::parse("cpu:0");
  Span span(device, 3 * kPageBytes, Placement::all(Place::on(device)));
  add_to(span, 1);
  span.allow(device, Right::none, PageRange{1, 1});
  span.allow_host(Right::none, PageRange{1, 1});
  add_to(span, 0);
  add_to(span, 2);
  EXPECT_DEATH(add_to(span, 1), "") << "no right";
  span.allow(device, Right::read, PageRange{2, 1});
  span.allow_host(Right::read, PageRange{2, 1});
  EXPECT_DEATH(add_to(span, 2), "") << "a write where reading is allowed";
  span.allow(device, Right::read_write);
  add_to(span, 1);
  EXPECT_EQ(*reinterpret_cast<std::uint32_t*>(span.data() + kPageBytes), 2U);
}

}  // namespace
}  // namespace headrace::testing
