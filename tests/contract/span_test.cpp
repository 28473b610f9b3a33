#include "headrace/device/span.hpp"

#include "device/backend.hpp"
#include "device/span/page_memory.hpp"
#include "tests/contract/kernels.hpp"
#include "tests/contract/span_support.hpp"

/// Properties of a span on every device: one range over several places.
namespace headrace::testing {
namespace {

class SpanContract : public SpanTest {};

TEST_P(SpanContract, IsOneRangeOverAllPlaces) {
  const auto places = some_places();
  Stream stream(device());
  const auto bytes = some_bytes(7 * kPageBytes - 12345, 1);
  const Span span(device(), bytes.size(), Placement::interleaved({{places.front(), 2}, {places.back(), 1}}));
  EXPECT_EQ(span.device(), device());
  EXPECT_EQ(span.bytes(), bytes.size());
  EXPECT_EQ(span.page_count(), 7U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(span.data()) % kPageBytes, 0U);
  EXPECT_EQ(span.places(), Placement::interleaved({{places.front(), 2}, {places.back(), 1}}).pages(7));
  write(span, stream, bytes);
  EXPECT_TRUE(read(span, stream) == bytes);
}

TEST_P(SpanContract, AKernelWorksOnAllOfItAsOneArray) {
  Stream stream(device());
  const auto places = some_places();
  const std::size_t words = 6 * kPageBytes / sizeof(std::uint32_t);
  std::vector<Place> map;
  for (std::size_t page = 0; page < 6; ++page) map.push_back(places[page % places.size()]);
  const Span span(device(), words * sizeof(std::uint32_t), Placement::map(map));
  write(span, stream, std::vector<std::byte>(span.bytes()));
  ASSERT_OK(launch(stream, add_kernel(), {.blocks = 64, .threads = 256}, span.as<std::uint32_t>(),
                   static_cast<std::uint32_t>(words), std::uint32_t{7}));
  const auto after = read(span, stream);
  const auto* const first = reinterpret_cast<const std::uint32_t*>(after.data());
  EXPECT_EQ(std::count(first, first + words, 7U), static_cast<std::ptrdiff_t>(words));
}

TEST_P(SpanContract, SaysWhatLiesWhere) {
  const Span span(device(), 5 * kPageBytes, Placement::map({Place::host(), here(), here(), Place::host(), here()}));
  const SpanStatistics statistics = span.statistics();
  ASSERT_EQ(statistics.places.size(), 2U);
  EXPECT_EQ(statistics.places[0].place, Place::host()) << "in the order in which they first appear";
  EXPECT_EQ(statistics.places[0].page_count, 2U);
  EXPECT_EQ(statistics.places[0].bytes, 2 * kPageBytes);
  EXPECT_EQ(statistics.places[1].place, here());
  EXPECT_EQ(statistics.places[1].page_count, 3U);
  EXPECT_EQ(statistics.pages_moved, 0U);
  EXPECT_EQ(statistics.spare_pages, 0U);
  EXPECT_EQ(span.place(2), here());
  expect_usage_error([&] { static_cast<void>(span.place(5)); }, "there is no page 5 in a span of 5 pages");
}

TEST_P(SpanContract, TakesDeviceMemoryAndGivesItBack) {
  {  // A driver keeps some memory that its first pages needed, such as page tables.
    const Span first(device(), 8 * kPageBytes, Placement::budget(device(), 4 * kPageBytes));
  }
  const std::size_t before = device().memory().free_bytes;
  {
    Span span(device(), 8 * kPageBytes, Placement::budget(device(), 4 * kPageBytes));
    EXPECT_LE(device().memory().free_bytes, before - 4 * kPageBytes);
    Span other = std::move(span);
    EXPECT_EQ(span.data(), nullptr);  // NOLINT(bugprone-use-after-move): what is left behind
    EXPECT_EQ(span.bytes(), 0U);
    EXPECT_NE(other.data(), nullptr);
  }
  EXPECT_TRUE(eventually([&] { return device().memory().free_bytes >= before; }));
}

TEST_P(SpanContract, HostWorksInHostPages) {
  Stream stream(device());
  const Span span(device(), 2 * kPageBytes, Placement::all(Place::host()));
  EXPECT_TRUE(span.host_readable());
  std::memset(span.data(), 3, span.bytes());
  ASSERT_OK(launch(stream, add_kernel(), {}, span.as<std::uint32_t>(), 1U, 1U));
  ASSERT_OK(stream.wait());
  EXPECT_EQ(*span.as<std::uint32_t>(), 0x03030304U);
  const Span device_pages(device(), kPageBytes, Placement::all(here()));
  EXPECT_EQ(device_pages.host_readable(), on_cpu());
}

TEST_P(SpanContract, RefusesWhatCannotBe) {
  const auto span_of = [&](std::size_t bytes, const Placement& placement, const SpanOptions& options = {}) {
    const Span span(device(), bytes, placement, options);
  };
  const Placement all = Placement::all(here());
  expect_usage_error([&] { span_of(0, all); }, "needs at least one byte");
  expect_usage_error([&] { span_of(3 * kPageBytes, Placement::map({here(), here()})); }, "for 2 pages");
  expect_usage_error([&] { span_of(kPageBytes, all, {.numa_node = -3}); }, "there is no NUMA node -3");
  expect_usage_error([] { static_cast<void>(Place::parse("cuda:77")); }, "there is no device 'cuda:77'");
  if (device() != Device::parse("cpu") && !on_cpu()) {
    const Device cpu = Device::parse("cpu");
    expect_usage_error([&] { span_of(kPageBytes, Placement::all(Place::on(cpu))); }, "of one kind");
    expect_usage_error([&] { span_of(kPageBytes, all, {.accessed_by = {cpu}}); }, "of one kind");
  }
}

TEST_P(SpanContract, TooMuchSaysWhatWasAskedForAndWhatIsFree) {
  const std::size_t before = device().memory().free_bytes;
  const std::size_t too_much = align_up(before + kGiB, kPageBytes);
  for (const std::size_t bytes : {too_much, std::size_t{1} << 60, ~std::size_t{0}}) {
    try {
      const Span span(device(), bytes, Placement::all(here()));
      FAIL() << "must throw";
    } catch (const DeviceError& error) {
      EXPECT_EQ(error.code(), Errc::out_of_memory);
      EXPECT_THAT(error.what(), ::testing::HasSubstr(format_bytes(bytes)));
      EXPECT_THAT(error.what(), ::testing::HasSubstr(" free"));
      EXPECT_THAT(error.what(), ::testing::HasSubstr(device().name()));
    }
  }
  EXPECT_EQ(device().memory().free_bytes, before);
}

TEST_P(SpanContract, IsNotReleasedUnderWork) {
  Stream stream(device());
  Span span(device(), kPageBytes, Placement::all(here()));
  {
    Gate gate;
    ASSERT_OK(gate.enqueue(stream));
    ASSERT_OK(stream.fill(span.data(), 1, kPageBytes));
    ASSERT_OK(span.used_by(stream));
    expect_usage_error([&] { span.release(); }, "the span is in use");
    EXPECT_NE(span.data(), nullptr) << "nothing was given back";
    gate.open();
    ASSERT_OK(stream.wait());
  }
  ASSERT_OK(span.used_by(stream));
  ASSERT_OK(stream.wait());
  span.release();
  EXPECT_EQ(span.data(), nullptr);
  EXPECT_EQ(span.page_count(), 0U);
  EXPECT_FALSE(span.host_readable());
  span.release();  // once is enough
  span.trim();
  expect_usage_error([&] { static_cast<void>(span.places()); }, "the span was released");
  expect_usage_error([&] { span.move(stream, {0, 1}, Place::host()); }, "the span was released");
}

TEST_P(SpanContract, DestructionWaitsForWork) {
  Stream stream(device());
  Buffer back = pinned(device(), std::vector<std::byte>(kPageBytes));
  Gate gate;
  std::thread opener;
  {
    Span span(device(), kPageBytes, Placement::all(here()));
    write(span, stream, some_bytes(kPageBytes, 9));
    ASSERT_OK(gate.enqueue(stream));
    ASSERT_OK(stream.copy(back.data(), span.data(), kPageBytes));
    ASSERT_OK(span.used_by(stream));
    gate.wait_entered();
    opener = std::thread([&] { gate.open(); });
  }  // a page freed too early would end the copy with a fault
  opener.join();
  ASSERT_OK(stream.wait());
  EXPECT_TRUE(content(back) == some_bytes(kPageBytes, 9));
}

HEADRACE_ON_EVERY_DEVICE(SpanContract);

TEST(SpanSupport, DeviceErrorsNameTheMissingAbility) {
  const Device cpu = Device::parse("cpu");
  EXPECT_TRUE(cpu.properties().virtual_memory_management);
  EXPECT_EQ(cpu.backend().page_memory().absence(Place::host()), "");
}

}  // namespace
}  // namespace headrace::testing
