#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

#include "devices.hpp"
#include "headrace/device/stream.hpp"
#include "headrace/fetch/fetch.hpp"
#include "tests/fetch_tables.hpp"

/// Chunks in pageable memory: all threads of a fetch share one way to the device.
namespace headrace::testing {
namespace {

using namespace fetch;

/// A source over another one that makes its arrays on reading, so that they take room on the CPU level.
class Made final : public Source {
 public:
  explicit Made(std::shared_ptr<Source> inner)
      : Source(inner->columns(), inner->fragments()), inner_(std::move(inner)) {}
  OwnedArray read(Chunk chunk) override { return inner_->read(chunk); }
  std::vector<FileRange> ranges(Chunk chunk) const override { return inner_->ranges(chunk); }
  std::size_t read_bytes(Chunk /*chunk*/) const override { return 32 * kKiB; }

 private:
  std::shared_ptr<Source> inner_;
};

class StagedFetch : public DeviceTest {
 protected:
  static constexpr std::uint32_t kFragments = 24;

  static Levels levels(std::size_t cpu_bytes, std::size_t slab_bytes = kMiB) {
    return Levels(
        device(),
        {.cpu_bytes = cpu_bytes, .device_bytes = 64 * kMiB, .host = HostKind::pageable, .slab_bytes = slab_bytes});
  }
  static FetchRequest all_columns(std::uint32_t threads, std::size_t flush_bytes) {
    return {.columns = {0, 1, 2, 3, 4}, .options = {.threads = threads, .flush_bytes = flush_bytes}};
  }
  static std::vector<std::byte> to_host(const void* from, std::size_t bytes) {
    std::vector<std::byte> copy(bytes);
    const Stream stream(device());
    EXPECT_OK(stream.copy(copy.data(), from, bytes));
    EXPECT_OK(stream.wait());
    return copy;
  }
  static void expect_doubles(const Fetch& fetch) {
    for (std::size_t f = 0; f < fetch.request().fragments.size(); ++f) {
      const ColumnView& view = fetch.view(1, f);
      const auto bytes = to_host(view.values, static_cast<std::size_t>(view.length) * sizeof(double));
      for (std::int64_t row = 0; row < view.length; ++row) {
        ASSERT_EQ(reinterpret_cast<const double*>(bytes.data())[row], static_cast<double>(row) / 3);
      }
    }
  }
};

TEST_P(StagedFetch, ChunksLieOneBehindTheOtherWithZerosBetween) {
  constexpr std::size_t kAlignment = 256;
  Levels shared = levels(64 * kMiB);
  {
    Fetch before(shared, table_of({.rows = 1000, .fragments = 5}), all_columns(4, kMiB));  // leaves no zeros behind
    before.wait();
  }
  shared.clear(Level::device);
  Fetch fetch(shared, table_of({.rows = 777, .fragments = 5}), all_columns(4, kMiB));
  fetch.wait();
  struct Part {
    const std::byte* at;
    std::size_t bytes;
  };
  std::vector<Part> parts;
  for (std::size_t f = 0; f < 5; ++f) {
    for (std::size_t c = 0; c < kTableColumns; ++c) {
      const ColumnView& view = fetch.view(c, f);
      const std::int64_t positions = view.offset + view.length;
      parts.push_back(
          {static_cast<const std::byte*>(view.values), static_cast<std::size_t>(values_bytes(view.type, positions))});
      if (view.validity == nullptr) continue;
      parts.push_back({reinterpret_cast<const std::byte*>(view.validity), static_cast<std::size_t>(positions + 7) / 8});
    }
  }
  std::ranges::sort(parts, {}, &Part::at);
  const std::byte* const begin = parts.front().at;
  const auto all = to_host(begin, static_cast<std::size_t>(parts.back().at + parts.back().bytes - begin));
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    const std::size_t end = static_cast<std::size_t>(parts[i].at - begin) + parts[i].bytes;
    const std::size_t next = static_cast<std::size_t>(parts[i + 1].at - begin);
    ASSERT_EQ(next, (end + kAlignment - 1) / kAlignment * kAlignment);
    EXPECT_TRUE(std::all_of(all.begin() + static_cast<std::ptrdiff_t>(end),
                            all.begin() + static_cast<std::ptrdiff_t>(next),
                            [](std::byte byte) { return byte == std::byte{0}; }));
  }
}

TEST_P(StagedFetch, ThreadsThatWaitForRoomAreNotForgotten) {
  // Room for a few chunks: the thread that takes the last of it must not end before its copies.
  const auto source = std::make_shared<Made>(table_of({.rows = 4096, .fragments = kFragments}));
  for (int round = 0; round < 20; ++round) {
    Fetch fetch(levels(192 * kKiB, 64 * kKiB), source, all_columns(8, kMiB));
    fetch.wait();
    expect_doubles(fetch);
  }
}

TEST_P(StagedFetch, FetchesOfTheSameChunksAtOnce) {
  const auto source = std::make_shared<Made>(table_of({.rows = 4096, .fragments = kFragments}));
  for (int round = 0; round < 5; ++round) {
    const Levels shared = levels(256 * kKiB, 64 * kKiB);
    std::vector<std::jthread> users;
    for (int user = 0; user < 3; ++user) {
      users.emplace_back([&] {
        Fetch fetch(shared, source, all_columns(4, 256 * kKiB));
        fetch.wait();
        expect_doubles(fetch);
      });
    }
  }
}

TEST_P(StagedFetch, ItsLaneIsUsedAgainWithOtherOptions) {
  const auto source = table_of({.rows = 777, .fragments = kFragments});
  Levels shared = levels(64 * kMiB);
  for (const std::uint32_t threads : {1U, 4U, 2U, 4U}) {
    for (const FetchMode mode : {FetchMode::sync, FetchMode::async}) {
      shared.clear(Level::device);
      shared.clear(Level::cpu);
      FetchRequest request = all_columns(threads, kMiB);
      request.options.mode = mode;
      request.options.timeline_spans = threads == 2 ? 1000 : 0;
      Fetch fetch(shared, source, request);
      fetch.wait();
      expect_doubles(fetch);
    }
  }
}

HEADRACE_ON_EVERY_DEVICE(StagedFetch);

}  // namespace
}  // namespace headrace::testing
