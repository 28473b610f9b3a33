#include <set>
#include <tuple>

#include "device/backend.hpp"
#include "device/span/page_memory.hpp"
#include "headrace/device/copy_batch.hpp"
#include "tests/contract/faulty_device.hpp"
#include "tests/contract/span_support.hpp"

/// Spans where some devices cannot reach all memory, as on CUDA, built from CPU devices: which requests are refused,
/// and how many calls set which rights.
namespace headrace::testing {
namespace {

/// Arguments of a call of set_access().
struct Call {
  std::size_t page_count;
  std::string who;
  Right right;
  friend bool operator==(const Call&, const Call&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Call& call) {
    return out << call.who << " " << static_cast<int>(call.right) << " to " << call.page_count;
  }
};

/// A CPU device's pages with separate rights for each device. The pages stay usable whatever the rights say.
class SeparatePages final : public detail::PageMemory {
 public:
  std::vector<Call> calls;
  std::size_t created = 0;
  std::size_t mapped = 0;
  std::size_t unmap_calls = 0;
  bool unmaps_runs = false;                                    ///< Otherwise one page at a time.
  std::set<std::string> absent;                                ///< Names of places.
  std::set<std::pair<std::string, std::string>> out_of_reach;  ///< The device and the place.

  std::string absence(Place place) override {
    return absent.contains(place.name()) ? "this machine has no such thing" : "";
  }
  bool reaches(detail::Accessor who, Place place) override {
    if (!who) return place.is_host();
    return !out_of_reach.contains({who->name(), place.name()});
  }
  bool shares_rights() const noexcept override { return false; }
  Result<std::byte*> reserve(std::size_t bytes) noexcept override { return cpu_.reserve(bytes); }
  void release(std::byte* at, std::size_t bytes) noexcept override { cpu_.release(at, bytes); }
  Result<detail::Page> create(Place place, detail::PageOptions options) noexcept override {
    ++created;
    return cpu_.create(place.is_host() ? place : Place::parse(place.name()), options);
  }
  void destroy(detail::Page page) noexcept override { cpu_.destroy(page); }
  Status map(std::byte* at, detail::Page page) noexcept override {
    ++mapped;
    if (const Status status = cpu_.map(at, page); !status) return status;
    return cpu_.set_access(at, page.bytes, {}, Right::read_write);
  }
  Status unmap(std::byte* at, std::size_t bytes) noexcept override {
    if (bytes > kPageBytes && !unmaps_runs) return Errc::invalid_argument;
    ++unmap_calls;
    return cpu_.unmap(at, bytes);
  }
  Status set_access(std::byte*, std::size_t bytes, detail::Accessor who, Right right) noexcept override {
    calls.push_back({bytes / kPageBytes, who ? who->name() : "host", right});
    return {};
  }
  Result<int> export_page(detail::Page page) noexcept override { return cpu_.export_page(page); }
  Result<detail::Page> import_page(int descriptor, Device device, std::size_t bytes) noexcept override {
    return cpu_.import_page(descriptor, device, bytes);
  }

 private:
  detail::PageMemory& cpu_ = Device::parse("cpu").backend().page_memory();
};

class SpanReach : public ::testing::Test {
 protected:
  SpanReach() { faulty_.use_pages(pages_); }

  [[nodiscard]] std::vector<Call> taken_calls() { return std::exchange(pages_.calls, {}); }
  [[nodiscard]] Span two_and_two() { return Span(device_, 4 * kPageBytes, Placement::blocked({here_, Place::host()})); }

  SeparatePages pages_;
  FaultyDevice faulty_;
  Device device_ = faulty_.device();  // named cpu:0
  Place here_ = Place::on(device_);
  Device other_ = Device::parse("cpu:1");
};

TEST_F(SpanReach, RightsAreSetOnceForEachRunOfNeighbours) {
  Span span(device_, 6 * kPageBytes, Placement::interleaved({{here_, 1}, {Place::host(), 1}}),
            {.accessed_by = {other_}});
  EXPECT_EQ(taken_calls(), (std::vector<Call>{{1, "host", Right::read_write},
                                              {1, "host", Right::read_write},
                                              {1, "host", Right::read_write},
                                              {6, "cpu:0", Right::read_write},
                                              {6, "cpu:1", Right::read_write}}));
  span.allow(other_, Right::none, PageRange{1, 4});
  EXPECT_EQ(taken_calls(), (std::vector<Call>{{4, "cpu:1", Right::none}})) << "the other pages do not change";
  span.allow_host(Right::read, PageRange{3, 1});
  EXPECT_EQ(taken_calls(), (std::vector<Call>{{1, "host", Right::read}}));
}

/// Each page of a moved run costs a mapping; the pages of a run share the few other calls.
TEST_F(SpanReach, AMovedRunCostsAMappingAPageAndFewCallsOtherwise) {
  constexpr std::size_t kPages = 16;  // one batch
  pages_.unmaps_runs = true;
  Stream stream(device_);
  Span span(device_, kPages * kPageBytes, Placement::all(here_));
  span.allow(device_, Right::none, PageRange{2, 9});  // the rights that the copies have to lift
  span.keep_spare_pages(kPages);
  span.move(stream, Placement::all(Place::host()));
  span.move(stream, Placement::all(here_));
  static_cast<void>(taken_calls());
  pages_.created = pages_.mapped = pages_.unmap_calls = 0;
  span.move(stream, Placement::all(Place::host()));
  EXPECT_EQ(pages_.created, 0U) << "all pages exist from the earlier moves";
  EXPECT_EQ(pages_.mapped, kPages) << "they are also mapped at the target of the copy";
  EXPECT_EQ(pages_.unmap_calls, 1U);
  EXPECT_EQ(taken_calls(), (std::vector<Call>{{9, "cpu:0", Right::read},
                                              {kPages, "host", Right::read_write},
                                              {2, "cpu:0", Right::read_write},
                                              {5, "cpu:0", Right::read_write}}));
}

TEST_F(SpanReach, CopiesAreCutWherePlacesChange) {
  Stream stream(device_);
  Span span = two_and_two();
  const Span other(device_, 4 * kPageBytes, Placement::map({here_, Place::host(), Place::host(), here_}));
  const auto bytes = some_bytes(4 * kPageBytes, 21);
  const auto same = [&](const Span& it) { return std::memcmp(it.data(), bytes.data(), bytes.size()) == 0; };
  static_cast<void>(faulty_.taken_copies());
  EXPECT_OK(stream.copy(span.data(), bytes.data(), bytes.size()));
  EXPECT_EQ(faulty_.taken_copies(), 2U);
  EXPECT_OK(stream.copy(other.data(), span.data(), bytes.size()));
  EXPECT_EQ(faulty_.taken_copies(), 4U) << "borders of either side";
  EXPECT_OK(stream.wait());
  EXPECT_TRUE(same(other));
  EXPECT_OK(stream.copy(span.data() + 5, bytes.data() + 5, 2 * kPageBytes - 5));
  EXPECT_EQ(faulty_.taken_copies(), 1U) << "it ends at the border";
  EXPECT_OK(stream.copy(span.data() + 2 * kPageBytes - 1, bytes.data() + 2 * kPageBytes - 1, 2));
  EXPECT_EQ(faulty_.taken_copies(), 2U);
  EXPECT_OK(stream.fill(span.data(), 0, span.bytes()));
  EXPECT_EQ(faulty_.taken_copies(), 2U);
  const std::size_t half = bytes.size() / 2 - 100;
  const std::vector<Copy> list{{span.data(), bytes.data(), half},
                               {span.data() + half, bytes.data() + half, bytes.size() - half}};
  EXPECT_OK(stream.copy_many(list));
  EXPECT_EQ(faulty_.taken_copies(), 3U);
  EXPECT_OK(stream.wait());
  EXPECT_TRUE(same(span));
  std::memset(span.data(), 0, span.bytes());
  CopyBatch batch(stream, {.route = CopyRoute::engine});
  EXPECT_OK(batch.add(span.data(), bytes.data(), bytes.size()));
  EXPECT_OK(batch.wait());
  EXPECT_EQ(faulty_.taken_copies(), 2U);
  EXPECT_TRUE(same(span));
  std::memset(span.data(), 0, span.bytes());
  constexpr std::size_t kRow = kPageBytes / 2;
  EXPECT_OK(stream.copy_rows({span.data(), bytes.data(), kRow, kRow, kRow, 8}));
  EXPECT_OK(stream.wait());
  EXPECT_TRUE(same(span));
}

TEST_F(SpanReach, CopiesOfAPlaceAreWholeAgainOnceItsSpanIsGone) {
  Stream stream(device_);
  std::vector<std::byte> from(6 * kPageBytes);
  std::vector<std::byte> to(from.size());
  {
    const Span span = two_and_two();
  }
  static_cast<void>(faulty_.taken_copies());
  EXPECT_OK(stream.copy(to.data(), from.data(), from.size()));
  EXPECT_EQ(faulty_.taken_copies(), 1U);
  Span span = two_and_two();
  EXPECT_OK(stream.copy(to.data(), from.data(), from.size()));
  EXPECT_EQ(faulty_.taken_copies(), 1U) << "memory outside of spans";
  span.move(stream, {2, 2}, here_);
  static_cast<void>(faulty_.taken_copies());
  EXPECT_OK(stream.copy(span.data(), from.data(), span.bytes()));
  EXPECT_EQ(faulty_.taken_copies(), 1U) << "places are the current ones";
  EXPECT_OK(stream.wait());
}

TEST_F(SpanReach, TheHostsRightsWaitForPagesToComeBack) {
  Stream stream(other_);
  Span span = two_and_two();
  std::memset(span.data(), 5, span.bytes());
  span.allow_host(Right::read, PageRange{2, 1});
  static_cast<void>(taken_calls());
  span.move(stream, {2, 2}, here_);
  EXPECT_EQ(span.host_right(2), Right::none);
  for (const Call& call : taken_calls()) EXPECT_NE(call.who, "host");
  span.move(stream, {2, 2}, Place::host());
  EXPECT_EQ(span.host_right(2), Right::read);
  EXPECT_EQ(span.host_right(3), Right::read_write);
  const auto calls = taken_calls();
  EXPECT_THAT(calls, ::testing::Contains(Call{1, "host", Right::read}));
  EXPECT_THAT(calls, ::testing::Contains(Call{2, "cpu:0", Right::read_write}));
  EXPECT_EQ(std::count(span.data(), span.data() + span.bytes(), std::byte{5}), std::ptrdiff_t{4 * kPageBytes});
}

TEST_F(SpanReach, WhoCopiesMayReadForAsLongAsThat) {
  Stream stream(other_);
  Span span = two_and_two();
  static_cast<void>(taken_calls());
  span.move(stream, {0, 1}, Place::host());
  EXPECT_EQ(taken_calls(), (std::vector<Call>{{1, "cpu:1", Right::read_write},  // the page that the copy fills
                                              {1, "cpu:1", Right::read},        // the page that the copy reads
                                              {1, "host", Right::read_write},
                                              {1, "cpu:0", Right::read_write}}));
  EXPECT_EQ(span.right(other_, 0), Right::none);
}

TEST_F(SpanReach, ACopyThatFailsLeavesThePagesWhereTheyWere) {
  Stream stream(device_);
  Span span = two_and_two();
  std::memset(span.data(), 6, span.bytes());
  span.allow(device_, Right::none, PageRange{0, 1});
  static_cast<void>(taken_calls());
  faulty_.fail();
  try {
    span.move(stream, Placement::blocked({Place::host(), here_}));
    FAIL() << "must throw";
  } catch (const DeviceError& error) {
    EXPECT_EQ(error.code(), Errc::device_fault);
  }
  EXPECT_EQ(span.places(), Placement::blocked({here_, Place::host()}).pages(4));
  EXPECT_EQ(span.statistics().pages_moved, 0U);
  EXPECT_EQ(std::count(span.data(), span.data() + span.bytes(), std::byte{6}), std::ptrdiff_t{4 * kPageBytes});
  const auto calls = taken_calls();
  ASSERT_FALSE(calls.empty());
  EXPECT_THAT(calls, ::testing::Contains(Call{1, "cpu:0", Right::none})) << "the rights lifted for the copy come back";
}

TEST_F(SpanReach, NoVirtualMemoryManagementIsNamed) {
  const auto expect_absent = [&](const Placement& placement, const char* why) {
    try {
      const Span span(device_, 2 * kPageBytes, placement);
      FAIL() << "must throw";
    } catch (const DeviceError& error) {
      EXPECT_EQ(error.code(), Errc::not_supported);
      EXPECT_STREQ(error.what(), why);
    }
  };
  pages_.absent = {"host"};
  expect_absent(Placement::blocked({here_, Place::host()}),
                "a span of cpu:0 cannot have pages on host: this machine has no such thing");
  pages_.absent = {"cpu:0"};
  expect_absent(Placement::all(Place::host()),
                "a span of cpu:0 cannot have pages on cpu:0: this machine has no such thing");
  pages_.absent = {};
  Span span(device_, 2 * kPageBytes, Placement::all(here_));
  pages_.absent = {"host"};
  Stream stream(device_);
  EXPECT_THROW(span.move(stream, {0, 1}, Place::host()), DeviceError);
}

TEST_F(SpanReach, RightsBeyondReachAreRefused) {
  pages_.out_of_reach = {{"cpu:1", "cpu:0"}};
  const Placement all = Placement::all(here_);
  expect_usage_error([&] { const Span span(device_, 1, all, {.accessed_by = {other_}}); },
                     "cpu:1 cannot reach pages on cpu:0");
  expect_usage_error([&] { const Span span(device_, 2 * kPageBytes, Placement::blocked({here_, Place::on(other_)})); },
                     "cpu:1 cannot reach pages on cpu:0");
  Span span = two_and_two();
  expect_usage_error([&] { span.allow(other_, Right::read); }, "cpu:1 cannot reach page 0, which lies on cpu:0");
  expect_usage_error([&] { span.allow_host(Right::read); }, "the host cannot reach page 0, which lies on cpu:0");
  span.allow(other_, Right::none);
  span.allow(other_, Right::read, PageRange{2, 2});
  Stream stream(device_);
  expect_usage_error([&] { span.move(stream, {2, 1}, here_); },
                     "cpu:1 has a right to page 2 but could not reach it on cpu:0");
  Stream far(other_);
  expect_usage_error([&] { span.move(far, {0, 1}, Place::host()); }, "cpu:1 cannot reach pages on cpu:0");
  span.allow(other_, Right::none);
  span.move(stream, {2, 1}, here_);
  EXPECT_EQ(span.place(2), here_);
}

}  // namespace
}  // namespace headrace::testing
