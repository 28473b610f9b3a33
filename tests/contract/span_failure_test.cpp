#include <functional>

#include "device/cpu/testing.hpp"
#include "tests/contract/span_support.hpp"

/// A span that cannot be made or moved leaves nothing behind, and every page stays whole. The tests fail each step that
/// needs memory in turn.
namespace headrace::testing {
namespace {

constexpr std::int64_t kStepsMax = 1000;

/// Calls `body` with step 0 failing, then step 1, until it has no such step; calls `check` after each.
void fail_each_step(const std::function<void()>& body, const std::function<void(bool threw)>& check) {
  for (std::int64_t step = 0;; ++step) {
    ASSERT_LT(step, kStepsMax) << "it never succeeds";
    SCOPED_TRACE(step);
    bool threw = false;
    bool happened = false;
    {
      const detail::AllocationFailure failure(step);
      try {
        body();
      } catch (const DeviceError& error) {
        EXPECT_EQ(error.code(), Errc::out_of_memory) << error.what();
        threw = true;
      }
      happened = failure.happened();
    }
    check(threw);
    if (happened) continue;
    EXPECT_FALSE(threw);
    EXPECT_GT(step, 10) << "it must need some memory";
    return;
  }
}

/// Compares one byte in every 256, because the tests compare often and the thread sanitizer inspects each access.
bool looks_like(const Span& span, const std::vector<std::byte>& bytes) {
  for (std::size_t at = 0; at < bytes.size(); at += 256) {
    if (span.data()[at] != bytes[at]) return false;
  }
  return span.data()[bytes.size() - 1] == bytes.back();
}

class CpuSpanFailure : public ::testing::Test {
 protected:
  [[nodiscard]] Held held_now() const { return held(first_, second_); }

  Device first_ = Device::parse("cpu:54");
  Device second_ = Device::parse("cpu:55");
  Place here_ = Place::on(first_);
  Place there_ = Place::on(second_);
};

TEST_F(CpuSpanFailure, HalfwayThroughBuildingReleasesWhatWasTaken) {
  for (const SpanOptions& options :
       {SpanOptions{}, SpanOptions{.shareable = true}, SpanOptions{.page_bytes = 2 * kPageBytes}}) {
    const Held before = held_now();
    fail_each_step(
        [&] {
          const Span span(first_, 7 * options.page_bytes,
                          Placement::interleaved({{here_, 3}, {Place::host(), 2}, {there_, 2}}), options);
        },
        [&](bool /*threw*/) { EXPECT_EQ(held_now(), before); });
  }
}

TEST_F(CpuSpanFailure, HalfwayThroughAMoveLeavesEveryPageWhole) {
  const Held before = held_now();
  for (const std::size_t page_bytes : {kPageBytes, 2 * kPageBytes}) {
    constexpr std::size_t kPages = 3;  // for three places: three batches, two of them in flight at once
    Stream stream(first_, {.run_in_waiter = true});
    Span span(first_, kPages * page_bytes, Placement::interleaved({{here_, 2}, {Place::host(), 1}}),
              {.page_bytes = page_bytes});
    const auto bytes = some_bytes(span.bytes(), 12);
    std::memcpy(span.data(), bytes.data(), bytes.size());
    // The pages have all kinds of rights, so the test sees that a move restores what it lifts for its copies.
    span.allow(first_, Right::none, PageRange{0, 3});
    span.allow_host(Right::none, PageRange{0, 2});
    span.allow(first_, Right::read, PageRange{1, 1});
    const auto turned = Placement::interleaved({{Place::host(), 1}, {there_, 1}, {here_, 1}});
    span.allow(second_, Right::none);
    const auto first_places = span.places();
    fail_each_step([&] { span.move(stream, turned); },
                   [&](bool threw) {
                     if (!threw) {
                       EXPECT_EQ(span.places(), turned.pages(kPages));
                     }
                     EXPECT_EQ(permissions_at(span.data()), "---s");
                     EXPECT_EQ(permissions_at(span.data() + page_bytes), "r--s");
                     EXPECT_EQ(permissions_at(span.data() + 2 * page_bytes), "rw-s");
                     EXPECT_EQ(span.right(first_, 1), Right::read);
                     span.allow_host(Right::read_write, PageRange{0, 2});
                     EXPECT_TRUE(looks_like(span, bytes));
                     span.move(stream, Placement::map(first_places));
                     EXPECT_TRUE(looks_like(span, bytes));
                     span.trim();
                     span.allow_host(Right::none, PageRange{0, 2});
                   });
  }
  EXPECT_EQ(held_now(), before);
}

TEST_F(CpuSpanFailure, SparePagesGoWithTheirSpan) {
  const Held before = held_now();
  Stream stream(first_, {.run_in_waiter = true});
  for (const std::size_t kept : {std::size_t{0}, std::size_t{2}}) {
    fail_each_step(
        [&] {
          Span span(first_, 3 * kPageBytes, Placement::all(here_));
          span.keep_spare_pages(kept);
          span.move(stream, Placement::all(there_));
          span.move(stream, Placement::all(here_));
        },
        [&](bool /*threw*/) { EXPECT_EQ(held_now(), before); });
  }
}

TEST_F(CpuSpanFailure, RightsThatCannotBeSetAreAsBefore) {
  Span span(first_, 6 * kPageBytes, Placement::interleaved({{here_, 1}, {Place::host(), 1}}));
  span.allow_host(Right::none);
  span.allow(first_, Right::read, PageRange{2, 2});
  span.allow(second_, Right::read, PageRange{3, 2});
  {
    const detail::AllocationFailure failure(1);  // the second of two runs
    EXPECT_THROW(span.allow(first_, Right::none, PageRange{1, 4}), DeviceError);
    EXPECT_TRUE(failure.happened());
  }
  const std::vector<std::string> want{"rw-s", "rw-s", "r--s", "r--s", "rw-s", "rw-s"};
  for (std::size_t page = 0; page < 6; ++page) {
    EXPECT_EQ(permissions_at(span.data() + page * kPageBytes), want[page]) << page;
    EXPECT_EQ(span.right(first_, page), page == 2 || page == 3 ? Right::read : Right::read_write);
  }
}

TEST_F(CpuSpanFailure, TheBudgetIsWholeAfterwards) {
  setenv("HEADRACE_CPU_MEMORY", std::to_string(3 * kPageBytes).c_str(), 1);
  const Device small = Device::parse("cpu:56");
  unsetenv("HEADRACE_CPU_MEMORY");
  for (int round = 0; round < 3; ++round) {
    {
      const Span most(small, 3 * kPageBytes, Placement::all(Place::on(small)));
      EXPECT_THROW(Span(small, kPageBytes, Placement::all(Place::on(small))), DeviceError);
      const Span on_host(small, 4 * kPageBytes, Placement::all(Place::host()));
    }
    EXPECT_EQ(small.memory().free_bytes, 3 * kPageBytes);
  }
}

}  // namespace
}  // namespace headrace::testing
