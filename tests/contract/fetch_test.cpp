#include "headrace/fetch/fetch.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <latch>
#include <numeric>
#include <span>
#include <thread>

#include "devices.hpp"
#include "faulty_device.hpp"
#include "headrace/base/error.hpp"
#include "tests/fetch_tables.hpp"

namespace headrace::testing {
namespace {

using namespace fetch;
using ::testing::HasSubstr;

constexpr std::array<std::uint32_t, kTableColumns> kAll{0, 1, 2, 3, 4};

FetchRequest all_columns() { return {.columns = {kAll.begin(), kAll.end()}, .options = {.threads = 4}}; }

/// A source over another one, whose reads can be held, counted and made to fail.
class Watched final : public Source {
 public:
  explicit Watched(std::shared_ptr<Source> inner)
      : Source(inner->columns(), inner->fragments()), inner_(std::move(inner)) {}
  OwnedArray read(Chunk chunk) override {
    ++reads;
    if (before) before(chunk);
    return inner_->read(chunk);
  }
  std::vector<FileRange> ranges(Chunk chunk) const override { return inner_->ranges(chunk); }
  std::size_t read_bytes(Chunk chunk) const override { return inner_->read_bytes(chunk); }

  std::atomic<int> reads{0};
  std::function<void(Chunk)> before;

 private:
  std::shared_ptr<Source> inner_;
};

/// A source over another one that makes what it reads: columns of a fragment may be read together.
class Together final : public Source {
 public:
  explicit Together(std::shared_ptr<Source> inner)
      : Source(inner->columns(), inner->fragments()), inner_(std::move(inner)) {}
  OwnedArray read(Chunk chunk) override {
    ++alone;
    if (before) before(chunk);
    return inner_->read(chunk);
  }
  std::vector<OwnedArray> read_columns(std::uint32_t fragment, std::span<const std::uint32_t> columns) override {
    ++calls;
    most = std::max(most.load(), columns.size());
    for (const std::uint32_t column : columns) {
      if (before) before({.fragment = fragment, .column = column});
    }
    return inner_->read_columns(fragment, columns);
  }
  std::vector<FileRange> ranges(Chunk chunk) const override { return inner_->ranges(chunk); }
  std::size_t read_bytes(Chunk /*chunk*/) const override { return kReadBytes; }

  static constexpr std::size_t kReadBytes = 16 * kKiB;
  std::atomic<int> alone{0};
  std::atomic<int> calls{0};
  std::atomic<std::size_t> most{0};
  std::function<void(Chunk)> before;

 private:
  std::shared_ptr<Source> inner_;
};

class Fetching : public DeviceTest {
 protected:
  static Levels levels(LevelOptions options = {}) {
    if (options.device_bytes == 0) options.device_bytes = 64 * kMiB;
    if (options.cpu_bytes == 0) options.cpu_bytes = 64 * kMiB;
    options.slab_bytes = std::min(options.slab_bytes, kMiB);
    return Levels(device(), options);
  }

  /// A chunk of a device, copied to host memory.
  struct OnHost {
    ColumnView view;
    std::vector<std::byte> values = {};
    std::vector<std::byte> validity = {};
  };
  static OnHost to_host(const ColumnView& view) {
    OnHost copy{.view = view};
    const std::int64_t positions = view.offset + view.length;
    copy.values.resize(static_cast<std::size_t>(values_bytes(view.type, positions)));
    if (view.validity != nullptr) copy.validity.resize(static_cast<std::size_t>(positions + 7) / 8);
    const Stream stream(device());
    EXPECT_OK(stream.copy(copy.values.data(), view.values, copy.values.size()));
    EXPECT_OK(stream.copy(copy.validity.data(), view.validity, copy.validity.size()));
    EXPECT_OK(stream.wait());
    copy.view.values = copy.values.data();
    if (view.validity != nullptr) copy.view.validity = reinterpret_cast<const std::uint8_t*>(copy.validity.data());
    return copy;
  }

  static void expect_all(const Fetch& fetch, std::int64_t first = 0) {
    const Source& source = *fetch.source();
    for (std::size_t f = 0; f < fetch.request().fragments.size(); ++f) {
      for (std::size_t c = 0; c < fetch.request().columns.size(); ++c) {
        const std::uint32_t column = fetch.request().columns[c];
        const OnHost copy = to_host(fetch.view(c, f));
        ASSERT_EQ(copy.view.length, source.fragments()[fetch.request().fragments[f]].rows);
        for (std::int64_t row = 0; row < copy.view.length; ++row) {
          ASSERT_EQ(value_at(source, column, copy.view, row), value_of(column, first + row))
              << "column " << column << " fragment " << f << " row " << row;
        }
      }
    }
  }
};

TEST_P(Fetching, BringsEveryValue) {
  for (const HostKind host : {HostKind::pinned, HostKind::pageable}) {
    for (const FetchMode mode : {FetchMode::async, FetchMode::sync}) {
      for (const std::uint32_t threads : {1U, 4U}) {
        FetchRequest request = all_columns();
        request.options.mode = mode;
        request.options.threads = threads;
        Fetch fetch(levels({.host = host}), table_of({.rows = 777, .fragments = 9}), request);
        fetch.wait();
        expect_all(fetch);
      }
    }
  }
}

TEST_P(Fetching, BringsSlices) {
  for (const HostKind host : {HostKind::pinned, HostKind::pageable}) {
    for (const std::int64_t first : {1, 8, 21}) {
      Fetch fetch(levels({.host = host}), table_of({.rows = 300, .fragments = 2, .first = first}), all_columns());
      fetch.wait();
      expect_all(fetch, first);
    }
  }
}

TEST_P(Fetching, BringsFragmentsWithoutRows) {
  Fetch fetch(levels(), table_of({.rows = 0, .fragments = 3}), all_columns());
  fetch.wait();
  expect_all(fetch);
  Fetch nothing(levels(), table_of({.fragments = 0}), all_columns());
  nothing.wait();
  EXPECT_EQ(nothing.progress().chunks, 0U);
}

TEST_P(Fetching, BringsOnlyWhatIsAskedFor) {
  const auto source = std::make_shared<Watched>(table_of({.fragments = 8}));
  Fetch fetch(levels(), source, {.columns = {4, 0}, .fragments = {7, 2}});
  fetch.wait();
  EXPECT_EQ(source->reads, 4);
  expect_all(fetch);
}

TEST_P(Fetching, ColumnsOfAFragmentAreReadTogether) {
  for (const HostKind host : {HostKind::pinned, HostKind::pageable}) {
    for (const Level to : {Level::cpu, Level::device}) {
      const auto source = std::make_shared<Together>(table_of({.rows = 500, .fragments = 32}));
      const Levels shared = levels({.host = host});
      FetchRequest request = all_columns();
      request.to = to;
      request.options.timeline_spans = 1000;
      Fetch fetch(shared, source, request);
      fetch.wait();
      expect_all(fetch);
      EXPECT_EQ(source->calls, 32);
      EXPECT_EQ(source->alone, 0);
      EXPECT_EQ(source->most, kTableColumns);
      const auto progress = fetch.progress();
      EXPECT_EQ(progress.chunks_done, 32 * kTableColumns);
      EXPECT_EQ(progress.levels[static_cast<std::size_t>(Level::cpu)].chunks, 32 * kTableColumns);
      EXPECT_EQ(progress.levels[static_cast<std::size_t>(Level::cpu)].hits, 0U);
      const auto timeline = fetch.timeline();
      EXPECT_EQ(std::ranges::count(timeline.spans, Step::decode, &StepSpan::step), 32 * kTableColumns);
    }
  }
}

/// One call per thread would leave others without work, and a thread that waits for each copy reads each chunk.
TEST_P(Fetching, ColumnsAreReadApartWhereThereAreFewFragments) {
  FetchRequest request = all_columns();
  const auto few = std::make_shared<Together>(table_of({.fragments = 2}));
  Fetch fetch(levels(), few, request);
  fetch.wait();
  EXPECT_EQ(few->alone, 2 * static_cast<int>(kTableColumns));
  const auto many = std::make_shared<Together>(table_of({.fragments = 32}));
  request.options.mode = FetchMode::sync;
  Fetch sync(levels(), many, request);
  sync.wait();
  EXPECT_EQ(many->calls, 0);
}

TEST_P(Fetching, OfColumnsReadTogetherTheWrongOneIsNamed) {
  const auto source = std::make_shared<Together>(table_of({.fragments = 32}));
  source->before = [](Chunk chunk) {
    if (chunk == Chunk{.fragment = 20, .column = 3}) throw DataError("it is damaged");
  };
  const Levels shared = levels();
  Fetch fetch(shared, source, all_columns());
  EXPECT_THAT([&] { fetch.wait(); },
              ::testing::ThrowsMessage<DataError>(HasSubstr("row group 20, column 'price': it is damaged")));
  EXPECT_EQ(shared.statistics(Level::cpu).pinned, 0U);
  EXPECT_EQ(shared.statistics(Level::device).pinned, 0U);
  source->before = nullptr;
  Fetch again(shared, source, all_columns());
  again.wait();
  expect_all(again);
}

TEST_P(Fetching, WhereThereIsNoRoomForColumnsTogetherTheyAreReadApart) {
  for (const HostKind host : {HostKind::pinned, HostKind::pageable}) {
    const auto source = std::make_shared<Together>(table_of({.rows = 200, .fragments = 40}));
    const Levels shared = levels({.cpu_bytes = 4 * Together::kReadBytes, .host = host, .slab_bytes = 8 * kKiB});
    Fetch fetch(shared, source, all_columns());
    fetch.wait();
    expect_all(fetch);
    EXPECT_LE(shared.statistics(Level::cpu).most_bytes, 4 * Together::kReadBytes);
    EXPECT_GT(source->alone, 0);
  }
}

TEST_P(Fetching, FetchesThatMeetReadEachChunkOnce) {
  for (int round = 0; round < 10; ++round) {
    const auto source = std::make_shared<Together>(table_of({.rows = 100, .fragments = 32}));
    std::array<std::atomic<int>, 32 * kTableColumns> reads{};
    source->before = [&](Chunk chunk) { ++reads[chunk.fragment * kTableColumns + chunk.column]; };
    const Levels shared = levels();
    Fetch first(shared, source, all_columns());
    FetchRequest other = all_columns();
    std::ranges::reverse(other.columns);
    Fetch second(shared, source, other);
    Fetch third(shared, source, {.columns = {1, 4}, .to = Level::cpu, .options = {.threads = 3}});
    first.wait();
    second.wait();
    third.wait();
    expect_all(first);
    expect_all(second);
    EXPECT_TRUE(std::ranges::all_of(reads, [](const auto& count) { return count == 1; }));
  }
}

TEST_P(Fetching, ASecondFetchFindsEverythingOnTheDevice) {
  const Levels shared = levels();
  const auto source = std::make_shared<Watched>(table_of({}));
  Fetch first(shared, source, all_columns());
  first.wait();
  const int reads = source->reads;
  Fetch second(shared, source, all_columns());
  second.wait();
  EXPECT_EQ(source->reads, reads);
  EXPECT_EQ(second.progress().levels[2].hits, 20U);
  EXPECT_EQ(second.progress().levels[2].bytes, 0U);
  EXPECT_EQ(first.view(0, 0).values, second.view(0, 0).values);
  expect_all(second);
}

TEST_P(Fetching, FetchesAtOnceShareTheWork) {
  const Levels shared = levels();
  const auto source = std::make_shared<Watched>(table_of({.fragments = 16}));
  std::vector<Fetch> fetches;
  for (int i = 0; i < 4; ++i) fetches.emplace_back(shared, source, all_columns());
  for (Fetch& fetch : fetches) fetch.wait();
  EXPECT_EQ(source->reads, 16 * 5);
  for (const Fetch& fetch : fetches) expect_all(fetch);
}

TEST_P(Fetching, StopsAtTheCpuLevelWhereThatIsAskedFor) {
  const Levels shared = levels();
  FetchRequest request = all_columns();
  request.to = Level::cpu;
  const auto source = table_of({});
  Fetch fetch(shared, source, request);
  fetch.wait();
  EXPECT_EQ(shared.statistics(Level::device).chunks, 0U);
  for (std::uint32_t c = 0; c < kTableColumns; ++c) {
    for (std::int64_t row = 0; row < 1000; ++row) {
      ASSERT_EQ(value_at(*source, c, fetch.view(c, 3), row), value_of(c, row));
    }
  }
}

TEST_P(Fetching, ABarrierHoldsBackTheKernelsStream) {
  Fetch fetch(levels(), table_of({.rows = 5000}), all_columns());
  const Stream consumer(device());
  fetch.barrier(consumer);
  const Buffer copy(device(), MemoryKind::pinned, 5000 * 4);
  ASSERT_OK(consumer.copy(copy.data(), fetch.view(0, 1).values, copy.bytes()));
  ASSERT_OK(consumer.wait());
  for (std::int64_t row = 0; row < 5000; ++row) {
    ASSERT_EQ(copy.as<std::int32_t>()[row], value_of(0, row).value_or(copy.as<std::int32_t>()[row]));
  }
  fetch.wait();
}

TEST_P(Fetching, StaysWithinItsBudgets) {
  // The CPU level has room for a few chunks, the device for three quarters of the table: slabs that hold small chunks
  // have no room for large ones.
  const Levels shared = levels({.cpu_bytes = 256 * kKiB, .device_bytes = 6 * kMiB, .slab_bytes = 64 * kKiB});
  const auto source = table_of({.rows = 8192, .fragments = 48});
  FetchRequest request = all_columns();
  for (int round = 0; round < 3; ++round) {
    for (std::uint32_t first = 0; first < 48; first += 12) {
      request.fragments.resize(12);
      std::iota(request.fragments.begin(), request.fragments.end(), first);
      Fetch fetch(shared, source, request);
      fetch.wait();
      expect_all(fetch);
    }
  }
  for (const Level level : {Level::cpu, Level::device}) {
    const auto statistics = shared.statistics(level);
    EXPECT_LE(statistics.most_bytes, statistics.budget_bytes);
    EXPECT_GT(statistics.evictions, 0U);
    EXPECT_EQ(statistics.pinned, 0U);
  }
}

TEST_P(Fetching, NothingIsLeftAfterTheEnd) {
  Levels shared = levels();
  const auto source = table_of({});
  {
    Fetch fetch(shared, source, all_columns());
    fetch.wait();
  }
  source->close();  // dictionaries stay while it is open
  shared.forget(source->id());
  for (const Level level : {Level::disk, Level::cpu, Level::device}) {
    EXPECT_EQ(shared.statistics(level).used_bytes, 0U);
    EXPECT_EQ(shared.statistics(level).chunks, 0U);
  }
}

TEST_P(Fetching, ClearedLevelsKeepTheirMemoryUntilTheyAreTrimmed) {
  Levels shared = levels();
  const auto source = table_of({});
  Fetch(shared, source, all_columns()).wait();
  const std::size_t used = shared.statistics(Level::device).used_bytes;
  EXPECT_GT(used, 0U);
  shared.clear(Level::device);
  shared.clear(Level::cpu);
  EXPECT_EQ(shared.statistics(Level::device).chunks, 0U);
  EXPECT_EQ(shared.statistics(Level::device).used_bytes, used);
  shared.trim();
  EXPECT_EQ(shared.statistics(Level::device).used_bytes, 0U);
  EXPECT_EQ(shared.statistics(Level::cpu).used_bytes, source->dictionary(4)->bytes());
  source->close();
  EXPECT_EQ(shared.statistics(Level::cpu).used_bytes, 0U);
}

TEST_P(Fetching, TheValidityOfStringsIsAColumnOfBooleans) {
  const auto source = table_of({.rows = 100, .fragments = 2, .first = 13});
  Fetch fetch(levels(), source, {.columns = {source->validity_of(4)}, .to = Level::cpu});
  fetch.wait();
  EXPECT_EQ(source->dictionary(4)->size(), 0U);
  for (std::size_t fragment = 0; fragment < 2; ++fragment) {
    const ColumnView& view = fetch.view(0, fragment);
    ASSERT_EQ(view.type.id, Type::boolean);
    for (std::int64_t row = 0; row < view.length; ++row) {
      EXPECT_EQ(value_at(view, row).has_value(), value_of(4, 13 + row).has_value()) << row;
    }
  }
}

TEST_P(Fetching, AClosedSourceIsRefusedAndWhatIsHeldStays) {
  Levels shared = levels();
  const auto source = table_of({});
  {
    Fetch fetch(shared, source, all_columns());
    fetch.wait();
    source->close();
    shared.forget(source->id());
    EXPECT_THROW(Fetch(shared, source, all_columns()), UsageError);
    EXPECT_EQ(fetch.dictionary(4)->size(), 5U);
    EXPECT_EQ(fetch.dictionary(0), nullptr);
    EXPECT_GT(shared.statistics(Level::device).used_bytes, 0U);
  }
  for (const Level level : {Level::disk, Level::cpu, Level::device}) {
    EXPECT_EQ(shared.statistics(level).used_bytes, 0U);
  }
}

TEST_P(Fetching, AChunkThatFitsNoBudgetIsRefused) {
  const auto refused = [](const LevelOptions& options) -> std::string {
    Fetch fetch(levels(options), table_of({.rows = 100'000, .fragments = 1}), all_columns());
    try {
      fetch.wait();
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(refused({.cpu_bytes = 100 * kKiB}), HasSubstr("row group 0, column"));
  EXPECT_THAT(refused({.cpu_bytes = 100 * kKiB}), HasSubstr("the cpu level's whole budget of 100 KiB"));
  EXPECT_THAT(refused({.device_bytes = 100 * kKiB}), HasSubstr("the device level's whole budget"));
}

TEST_P(Fetching, ColumnsThatDoNotFitTogetherAreRefusedAndLeaveRoom) {
  const Levels shared = levels({.device_bytes = 1 * kMiB});
  const auto source = table_of({.rows = 8192, .fragments = 48});
  {
    Fetch fetch(shared, source, all_columns());
    try {
      fetch.wait();
      FAIL() << "more than the budget fitted";
    } catch (const DeviceError& error) {
      EXPECT_EQ(error.code(), Errc::out_of_memory);
      EXPECT_THAT(error.what(), HasSubstr("stream them"));
    }
  }
  EXPECT_EQ(shared.statistics(Level::device).pinned, 0U);
  FetchRequest request = all_columns();
  request.fragments = {40, 41};
  Fetch fetch(shared, source, request);
  fetch.wait();
  expect_all(fetch);
}

TEST_P(Fetching, AFailureStopsTheFetchAndLeavesTheCachesWhole) {
  const Levels shared = levels();
  const auto source = std::make_shared<Watched>(table_of({.fragments = 64}));
  source->before = [](Chunk chunk) {
    if (chunk == Chunk{.fragment = 5, .column = 3}) throw DataError("this page is corrupt");
    // The failing thread needs time to stop the others, however busy the machine is.
    if (chunk.fragment > 5) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  };
  {
    Fetch fetch(shared, source, all_columns());
    try {
      fetch.wait();
      FAIL() << "a corrupt page was read";
    } catch (const DataError& error) {
      EXPECT_STREQ(error.what(), "row group 5, column 'price': this page is corrupt");
    }
    EXPECT_THROW(fetch.barrier(Stream(device())), DataError);
  }
  EXPECT_LT(source->reads, 64 * 5);
  EXPECT_EQ(shared.statistics(Level::cpu).pinned, 0U);
  EXPECT_EQ(shared.statistics(Level::device).pinned, 0U);
  source->before = {};
  Fetch again(shared, source, all_columns());
  again.wait();
  expect_all(again);
}

TEST_P(Fetching, AWaiterMakesWhatAnotherFetchFailedToMake) {
  const Levels shared = levels();
  const auto source = std::make_shared<Watched>(table_of({.fragments = 1}));
  std::latch reading(1);
  std::latch fail(1);
  source->before = [&](Chunk) {
    if (source->reads > 1) return;
    reading.count_down();
    fail.wait();
    throw DataError("once");
  };
  Fetch first(shared, source, {.columns = {0}});
  reading.wait();
  Fetch second(shared, source, {.columns = {0}});
  fail.count_down();
  EXPECT_THROW(first.wait(), DataError);
  second.wait();
  expect_all(second);
}

TEST_P(Fetching, EndsEarlyWhenCancelled) {
  const Levels shared = levels();
  const auto source = std::make_shared<Watched>(table_of({.fragments = 64}));
  std::latch reading(1);
  std::latch go(1);
  std::atomic_flag has_read;
  source->before = [&](Chunk) {
    if (!has_read.test_and_set()) reading.count_down();
    go.wait();
  };
  Fetch fetch(shared, source, all_columns());
  reading.wait();
  fetch.cancel();
  go.count_down();
  try {
    fetch.wait();
    FAIL() << "a cancelled fetch completed";
  } catch (const Exception& error) {
    EXPECT_EQ(error.code(), Errc::cancelled);
  }
  EXPECT_LE(source->reads, 4);
  EXPECT_EQ(shared.statistics(Level::device).pinned, 0U);
}

TEST_P(Fetching, ADestroyedFetchEndsFirst) {
  const Levels shared = levels();
  const auto source = table_of({.rows = 5000, .fragments = 64});
  for (int i = 0; i < 20; ++i) Fetch(shared, source, all_columns());
  EXPECT_EQ(shared.statistics(Level::device).pinned, 0U);
  EXPECT_EQ(shared.statistics(Level::cpu).pinned, 0U);
}

TEST_P(Fetching, CountsWhatCameThroughEachLevel) {
  const auto source = table_of({.rows = 1024, .fragments = 4});
  Fetch fetch(levels(), source, {.columns = {1}});
  fetch.wait();
  const FetchProgress progress = fetch.progress();
  EXPECT_EQ(progress.chunks, 4U);
  EXPECT_EQ(progress.chunks_done, 4U);
  EXPECT_EQ(progress.levels[0].bytes, 0U);  // nothing is stored in a file
  EXPECT_EQ(progress.levels[1].bytes, 4U * 1024 * 8);
  EXPECT_EQ(progress.levels[2].bytes, 4U * 1024 * 8);
  EXPECT_GT(progress.levels[2].busy, Duration{});
  EXPECT_GT(progress.elapsed, Duration{});
  EXPECT_EQ(progress.elapsed, fetch.progress().elapsed);
}

TEST_P(Fetching, ItsTimelineHasEveryStepOfEveryChunk) {
  const auto source = table_of({.rows = 20'000, .fragments = 6});
  for (const HostKind host : {HostKind::pinned, HostKind::pageable}) {
    FetchRequest request = all_columns();
    request.options.timeline_spans = 1000;
    const Levels caches = levels({.host = host});
    const Time before = SteadyClock::now();
    Fetch fetch(caches, source, request);
    fetch.wait();
    const FetchTimeline timeline = fetch.timeline();
    const Time after = SteadyClock::now();
    EXPECT_EQ(timeline.dropped, 0);
    ASSERT_EQ(timeline.spans.size(), 6 * kTableColumns * 2);  // nothing comes from a file
    EXPECT_TRUE(std::ranges::is_sorted(timeline.spans, {}, &StepSpan::begin));
    // The device's clock is set from the host's once, and differs from it by the time that took.
    constexpr Duration apart = std::chrono::seconds(10);
    for (std::uint32_t fragment = 0; fragment < 6; ++fragment) {
      for (const std::uint32_t column : kAll) {
        const auto of = [&](Step step) {
          return std::ranges::find_if(timeline.spans, [&](const StepSpan& span) {
            return span.step == step && span.chunk == Chunk{.fragment = fragment, .column = column};
          });
        };
        const auto decode = of(Step::decode);
        const auto transfer = of(Step::transfer);
        ASSERT_TRUE(decode != timeline.spans.end() && transfer != timeline.spans.end());
        EXPECT_LE(before, decode->begin);
        EXPECT_LE(decode->begin, decode->end);
        EXPECT_LE(decode->end, transfer->end + apart);
        EXPECT_LE(transfer->begin, transfer->end);
        EXPECT_LE(transfer->end, after + apart);
        EXPECT_LT(decode->thread, 4);
        EXPECT_EQ(decode->thread, transfer->thread);
      }
    }
  }
}

TEST_P(Fetching, ATimelineIsBoundedAndOffUnlessAskedFor) {
  const auto source = table_of({.rows = 100, .fragments = 4});
  FetchRequest request = all_columns();
  request.options.timeline_spans = 7;
  const Levels caches = levels();
  Fetch recorded(caches, source, request);
  recorded.wait();
  EXPECT_EQ(recorded.timeline().spans.size(), 7);
  EXPECT_EQ(recorded.timeline().dropped, 4 * kTableColumns * 2 - 7);
  Fetch again(caches, table_of({.rows = 100, .fragments = 4}), all_columns());
  again.wait();
  EXPECT_TRUE(again.timeline().spans.empty());
  EXPECT_EQ(again.timeline().dropped, 0);
}

TEST_P(Fetching, RequestsThatCannotBeAreRefused) {
  const auto source = table_of({});
  const auto refused = [&](const FetchRequest& request) { EXPECT_THROW(Fetch(levels(), source, request), UsageError); };
  refused({.columns = {}});
  refused({.columns = {5}});
  refused({.columns = {0, 0}});
  refused({.columns = {0}, .fragments = {4}});
  refused({.columns = {0}, .to = Level::disk});
  refused({.columns = {0}, .options = {.threads = 1000}});
  refused({.columns = {0}, .options = {.flush_bytes = 0}});
}

TEST_P(Fetching, AnArrayThatIsNotAsItsSourceSaidIsRefused) {
  const auto inner = table_of({.rows = 100, .fragments = 1});
  const auto said = [&](Column column, std::int64_t rows) {
    return std::make_shared<ReaderSource>(
        std::vector<Column>{std::move(column)}, std::vector<Fragment>{{.rows = rows}},
        std::vector<ReaderSource::ChunkPlace>(1),
        [&](std::uint32_t, std::span<const std::uint32_t>) { return inner->read_columns(0, std::array{0U}); });
  };
  const auto refused = [&](const std::shared_ptr<Source>& source) {
    Fetch fetch(levels(), source, {.columns = {0}});
    EXPECT_THROW(fetch.wait(), DataError);
  };
  refused(said({.name = "a", .type = {.id = Type::int32}}, 99));
  refused(said({.name = "a", .type = {.id = Type::int32}, .nullable = false}, 100));
  refused(said({.name = "a", .type = {.id = Type::dictionary}}, 100));
}

HEADRACE_ON_EVERY_DEVICE(Fetching);

TEST(FetchingFaults, AFaultOfTheDeviceFailsTheFetchAndAbandonsItsChunks) {
  for (int calls = 0; calls < 60; calls += 3) {
    FaultyDevice faulty;
    const Levels shared(faulty.device(), {.cpu_bytes = kMiB, .device_bytes = kMiB, .slab_bytes = 64 * kKiB});
    faulty.fail_after(calls);
    try {
      Fetch fetch(shared, table_of({.rows = 100, .fragments = 8}), all_columns());
      fetch.wait();
    } catch (const Exception&) {
      // It may also have ended before the fault.
    }
    EXPECT_EQ(shared.statistics(Level::cpu).pinned, 0U);
    EXPECT_EQ(shared.statistics(Level::device).pinned, 0U);
  }
}

}  // namespace
}  // namespace headrace::testing
