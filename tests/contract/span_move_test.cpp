#include <random>

#include "tests/contract/kernels.hpp"
#include "tests/contract/span_support.hpp"

/// Pages of a span that move while the span is in use.
namespace headrace::testing {
namespace {

class SpanMoveTest : public SpanTest {};

TEST_P(SpanMoveTest, KeepsAddressAndContent) {
  Stream stream(device());
  const auto bytes = some_bytes(5 * kPageBytes - 77, 5);
  Span span(device(), bytes.size(), Placement::all(here()));
  std::byte* const data = span.data();
  write(span, stream, bytes);
  span.move(stream, {1, 3}, Place::host());
  EXPECT_EQ(span.data(), data);
  EXPECT_EQ(span.places(), (std::vector<Place>{here(), Place::host(), Place::host(), Place::host(), here()}));
  EXPECT_TRUE(read(span, stream) == bytes);
  EXPECT_EQ(span.statistics().pages_moved, 3U);
  EXPECT_EQ(span.statistics().bytes_moved, 3 * kPageBytes);
  EXPECT_EQ(span.statistics().spare_pages, 3U);
  span.trim();
  EXPECT_EQ(span.statistics().spare_pages, 0U);
  EXPECT_TRUE(read(span, stream) == bytes);
}

TEST_P(SpanMoveTest, KeepsAsManySparePagesAsItIsTold) {
  Stream stream(device());
  constexpr std::size_t kPages = 20;  // more than one batch
  Span span(device(), kPages * kPageBytes, Placement::all(here()));
  const auto bytes = some_bytes(span.bytes(), 13);
  write(span, stream, bytes);
  const auto spares_after = [&](Place to) {
    span.move(stream, Placement::all(to));
    return span.statistics().spare_pages;
  };
  span.keep_spare_pages(3);
  EXPECT_EQ(spares_after(Place::host()), 3U);
  EXPECT_EQ(spares_after(here()), 3U) << "the device's spare pages were used, the host's are kept";
  span.keep_spare_pages(kPages);
  EXPECT_EQ(spares_after(Place::host()), kPages);
  const std::size_t free = device().memory().free_bytes;
  span.keep_spare_pages(5);
  EXPECT_EQ(span.statistics().spare_pages, 5U) << "at once";
  if (on_cpu()) {
    EXPECT_EQ(device().memory().free_bytes, free + (kPages - 5) * kPageBytes);
  }
  span.keep_spare_pages(0);
  EXPECT_EQ(span.statistics().spare_pages, 0U);
  EXPECT_EQ(spares_after(here()), 0U);
  EXPECT_TRUE(read(span, stream) == bytes);
  span.release();
  EXPECT_THROW(span.keep_spare_pages(1), UsageError);
}

TEST_P(SpanMoveTest, AnyPlacementFromAnyOther) {
  Stream stream(device());
  const auto places = some_places();
  std::mt19937 random(6);
  const auto bytes = some_bytes(9 * kPageBytes, 6);
  const auto random_map = [&] {
    std::vector<Place> map;
    for (int page = 0; page < 9; ++page) map.push_back(places[random() % places.size()]);
    return map;
  };
  SpanOptions options;
  if (const auto other = peer()) options.accessed_by = {*other};
  Span span(device(), bytes.size(), Placement::map(random_map()), options);
  write(span, stream, bytes);
  std::uint64_t moved = 0;
  for (int round = 0; round < 6; ++round) {
    const auto map = random_map();
    for (std::size_t page = 0; page < map.size(); ++page) moved += map[page] == span.place(page) ? 0 : 1;
    span.move(stream, Placement::map(map));
    EXPECT_EQ(span.places(), map);
    EXPECT_EQ(span.statistics().pages_moved, moved) << "a page already in its place is not moved";
    EXPECT_TRUE(read(span, stream) == bytes) << "round " << round;
  }
}

TEST_P(SpanMoveTest, ManyPagesInBatches) {
  Stream stream(device());
  constexpr std::size_t kPages = 36;  // more than two batches, and part of another
  Span span(device(), kPages * kPageBytes, Placement::interleaved({{here(), 1}, {Place::host(), 1}}));
  const auto bytes = some_bytes(span.bytes(), 7);
  write(span, stream, bytes);
  const auto turned = Placement::interleaved({{Place::host(), 1}, {here(), 1}});
  span.move(stream, turned);
  EXPECT_EQ(span.places(), turned.pages(kPages));
  EXPECT_TRUE(read(span, stream) == bytes);
  EXPECT_LE(span.statistics().spare_pages, kPages);
}

TEST_P(SpanMoveTest, WhatIsThereAlreadyCostsNothing) {
  Stream stream(device());
  Span span(device(), 4 * kPageBytes, Placement::all(here()));
  Gate gate;
  ASSERT_OK(gate.enqueue(stream));  // a copy, or a wait for the stream, would never end
  gate.wait_entered();
  const std::size_t before = device().memory().free_bytes;
  span.move(stream, {0, 4}, here());
  span.move(stream, Placement::all(here()));
  span.move(stream, {4, 0}, Place::host());
  EXPECT_EQ(span.statistics().pages_moved, 0U);
  EXPECT_EQ(device().memory().free_bytes, before);
}

TEST_P(SpanMoveTest, ComesAfterTheWorkEnqueuedBefore) {
  Stream stream(device());
  Span span(device(), 3 * kPageBytes, Placement::all(here()));
  ASSERT_OK(stream.fill(span.data(), 0, span.bytes()));
  Gate gate;
  ASSERT_OK(gate.enqueue(stream));
  const auto words = static_cast<std::uint32_t>(span.bytes() / 4);
  ASSERT_OK(launch(stream, add_kernel(), {.blocks = 8, .threads = 128}, span.as<std::uint32_t>(), words, 5U));
  std::thread opener([&] { gate.open(); });
  span.move(stream, Placement::all(Place::host()));
  opener.join();
  const auto* const first = span.as<std::uint32_t>();
  EXPECT_EQ(std::count(first, first + words, 5U), static_cast<std::ptrdiff_t>(words));
}

TEST_P(SpanMoveTest, KeepsRights) {
  Stream stream(device());
  Span span(device(), 6 * kPageBytes, Placement::all(Place::host()));
  const auto bytes = some_bytes(span.bytes(), 8);
  write(span, stream, bytes);
  span.allow(device(), Right::read, PageRange{1, 2});
  span.allow(device(), Right::none, PageRange{3, 1});
  span.allow_host(Right::none, PageRange{2, 3});
  const auto rights = [&](std::size_t page) { return std::pair(span.right(device(), page), span.host_right(page)); };
  std::vector<std::pair<Right, Right>> before;
  for (std::size_t page = 0; page < 6; ++page) before.push_back(rights(page));
  span.move(stream, Placement::all(here()));  // also the pages that the device may not read
  for (std::size_t page = 0; page < 6; ++page) {
    EXPECT_EQ(span.right(device(), page), before[page].first);
    if (!on_cpu()) {
      EXPECT_EQ(span.host_right(page), Right::none) << "out of its reach";
    }
  }
  span.move(stream, {0, 6}, Place::host());
  for (std::size_t page = 0; page < 6; ++page) EXPECT_EQ(rights(page), before[page]) << page;
  span.allow(device(), Right::read);
  span.allow_host(Right::read);  // between two places on the host, the host copies
  EXPECT_TRUE(read(span, stream) == bytes);
}

TEST_P(SpanMoveTest, RefusesWhatCannotBe) {
  Stream stream(device());
  Span span(device(), 3 * kPageBytes, Placement::all(here()));
  expect_usage_error([&] { span.move(stream, {1, 3}, Place::host()); }, "are not in a span of 3 pages");
  expect_usage_error([&] { span.move(stream, Placement::map({here()})); }, "for 1 pages");
  if (!on_cpu()) {
    expect_usage_error([&] { span.move(stream, {0, 1}, Place::parse("cpu")); }, "of one kind");
    const Stream cpu(Device::parse("cpu"));
    expect_usage_error([&] { span.move(cpu, {0, 1}, Place::host()); }, "cannot move pages of a span");
  }
  EXPECT_EQ(span.statistics().pages_moved, 0U);
}

HEADRACE_ON_EVERY_DEVICE(SpanMoveTest);

/// Sets HEADRACE_CPU_MEMORY during its lifetime. A device reads the variable at its first use.
Device cpu_with_pages(const char* name, std::size_t pages) {
  setenv("HEADRACE_CPU_MEMORY", std::to_string(pages * kPageBytes).c_str(), 1);
  const Device device = Device::parse(name);
  unsetenv("HEADRACE_CPU_MEMORY");
  return device;
}

TEST(CpuSpanMove, AFullDeviceIsRearranged) {
  constexpr std::size_t kPages = 18;
  const Device device = cpu_with_pages("cpu:50", kPages);
  Stream stream(device);
  const Place here = Place::on(device);
  Span span(device, 2 * kPages * kPageBytes, Placement::blocked({here, Place::host()}));
  EXPECT_EQ(device.memory().free_bytes, 0U);
  const auto bytes = some_bytes(span.bytes(), 10);
  std::memcpy(span.data(), bytes.data(), bytes.size());
  span.move(stream, Placement::blocked({Place::host(), here}));
  EXPECT_EQ(span.places(), Placement::blocked({Place::host(), here}).pages(2 * kPages));
  EXPECT_EQ(std::memcmp(span.data(), bytes.data(), bytes.size()), 0);
  EXPECT_LE(span.statistics().spare_pages, 2 * 16U) << "two batches, not a second copy of everything";
  EXPECT_EQ(device.memory().free_bytes, 0U);
}

TEST(CpuSpanMove, TwoFullDevicesSwapThroughTheFewPagesThatOneHasToSpare) {
  const Device first = cpu_with_pages("cpu:51", 21);
  const Device second = cpu_with_pages("cpu:52", 20);
  Stream stream(first);
  Span span(first, 40 * kPageBytes, Placement::blocked({Place::on(first), Place::on(second)}));
  const auto bytes = some_bytes(span.bytes(), 11);
  std::memcpy(span.data(), bytes.data(), bytes.size());
  const auto turned = Placement::blocked({Place::on(second), Place::on(first)});
  span.move(stream, turned);
  EXPECT_EQ(span.places(), turned.pages(40));
  EXPECT_EQ(std::memcmp(span.data(), bytes.data(), bytes.size()), 0);
}

TEST(CpuSpanMove, BeyondTheBudgetIsRefusedBeforeAnyPageMoves) {
  const Device device = cpu_with_pages("cpu:53", 4);
  Stream stream(device);
  try {
    const Span span(device, 5 * kPageBytes, Placement::all(Place::on(device)));
    FAIL() << "must throw";
  } catch (const DeviceError& error) {
    EXPECT_EQ(error.code(), Errc::out_of_memory);
    EXPECT_STREQ(error.what(), "a span of 10 MiB needs 10 MiB on cpu:53 (8 MiB free)");
  }
  Span span(device, 6 * kPageBytes, Placement::budget(device, 2 * kPageBytes));
  const auto before = span.places();
  try {
    span.move(stream, Placement::all(Place::on(device)));
    FAIL() << "must throw";
  } catch (const DeviceError& error) {
    EXPECT_EQ(error.code(), Errc::out_of_memory);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("needs 8 MiB more on cpu:53 (4 MiB free)"));
  }
  EXPECT_EQ(span.places(), before);
}

}  // namespace
}  // namespace headrace::testing
