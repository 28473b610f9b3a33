#include "headrace/device/graph.hpp"

#include "headrace/base/error.hpp"
#include "tests/contract/devices.hpp"
#include "tests/contract/kernels.hpp"

namespace headrace::testing {
namespace {

constexpr std::uint32_t kCount = 300;
constexpr std::size_t kBytes = kCount * sizeof(std::uint32_t);

class GraphTest : public DeviceTest {};
HEADRACE_ON_EVERY_DEVICE(GraphTest);

/// The arguments of add_kernel(), with their addresses.
struct AddArguments {
  std::uint32_t* words;
  std::uint32_t count = kCount;
  std::uint32_t by = 1;
  std::array<void*, 3> addresses{};

  [[nodiscard]] GraphLaunch launch() {
    addresses = {static_cast<void*>(&words), &count, &by};
    return {add_kernel(), {.blocks = 2, .threads = 64}, addresses};
  }
};

/// Copy in, add, copy out, over the chain's own memory.
struct Chain {
  explicit Chain(Device device)
      : in(device, MemoryKind::pinned, kBytes),
        out(device, MemoryKind::pinned, kBytes),
        data(device, MemoryKind::device, kBytes),
        copy_in{data.data(), in.data(), kBytes},
        copy_out{out.data(), data.data(), kBytes},
        add{.words = data.as<std::uint32_t>()},
        graph(device, std::array<GraphNode, 3>{GraphCopies{{&copy_in, 1}}, add.launch(), GraphCopies{{&copy_out, 1}}}) {
  }

  void fill(std::uint32_t first) const {
    for (std::uint32_t i = 0; i < kCount; ++i) in.as<std::uint32_t>()[i] = first + i;
  }

  Buffer in;
  Buffer out;
  Buffer data;
  Copy copy_in;
  Copy copy_out;
  AddArguments add;
  Graph graph;
};

void expect_words(const Buffer& buffer, std::uint32_t first) {
  for (std::uint32_t i = 0; i < kCount; ++i) ASSERT_EQ(buffer.as<std::uint32_t>()[i], first + i) << i;
}

TEST_P(GraphTest, RunsItsStepsInOrderEveryTime) {
  Chain chain(device());
  Stream stream(device());
  EXPECT_EQ(chain.graph.node_count(), 3U);
  for (std::uint32_t round = 1; round < 5; ++round) {
    chain.fill(1000 * round);
    ASSERT_OK(chain.graph.launch(stream));
    ASSERT_OK(stream.wait());
    ASSERT_NO_FATAL_FAILURE(expect_words(chain.out, 1000 * round + 1));
  }
}

TEST_P(GraphTest, StepsAreChangedInPlace) {
  Chain chain(device());
  Stream stream(device());
  const Buffer other_in(device(), MemoryKind::pinned, kBytes);
  const Buffer other_out(device(), MemoryKind::pinned, kBytes);
  chain.fill(50);
  std::memcpy(other_in.data(), chain.in.data(), kBytes);
  std::memset(chain.in.data(), 0, kBytes);
  const Copy in{chain.data.data(), other_in.data(), kBytes};
  const Copy out{other_out.data(), chain.data.data(), kBytes};
  chain.add.by = 7;
  ASSERT_OK(chain.graph.update(0, GraphCopies{{&in, 1}}));
  ASSERT_OK(chain.graph.update(1, chain.add.launch()));
  ASSERT_OK(chain.graph.update(2, GraphCopies{{&out, 1}}));
  chain.add.by = 9;  // the arguments have been copied
  ASSERT_OK(chain.graph.launch(stream));
  ASSERT_OK(stream.wait());
  ASSERT_NO_FATAL_FAILURE(expect_words(other_out, 57));
}

TEST_P(GraphTest, AKernelStepMayBecomeAnotherKernelOrShape) {
  constexpr std::uint32_t kItems = 5;
  Chain chain(device());
  Stream stream(device());
  std::memset(chain.in.data(), 0, kBytes);
  std::uint32_t* seen = chain.data.as<std::uint32_t>();
  std::uint32_t stride = 2;
  const std::array<void*, 2> arguments{static_cast<void*>(&seen), &stride};
  ASSERT_OK(chain.graph.update(1, GraphLaunch{items_kernel(), {.threads = 32, .items = kItems}, arguments}));
  ASSERT_OK(chain.graph.launch(stream));
  ASSERT_OK(stream.wait());
  for (std::uint32_t i = 0; i < kItems; ++i) {
    EXPECT_EQ(chain.out.as<std::uint32_t>()[2 * i], i + 1);
    EXPECT_EQ(chain.out.as<std::uint32_t>()[2 * i + 1], kItems);
  }
}

TEST_P(GraphTest, ListsOfCopiesGrowAndShrink) {
  constexpr std::size_t kPiece = 5000;  // more than one warp copies
  constexpr std::size_t kCapacity = 40;
  const Buffer from(device(), MemoryKind::pinned, kCapacity * kPiece);
  const Buffer place(device(), MemoryKind::device, kCapacity * kPiece);
  const Buffer to(device(), MemoryKind::pinned, kCapacity * kPiece);
  const auto bytes = random_bytes(from.bytes(), 3);
  std::memcpy(from.data(), bytes.data(), bytes.size());
  std::vector<Copy> in;
  std::vector<Copy> out;
  for (std::size_t i = 0; i < kCapacity; ++i) {
    // Gathered back to front, scattered front to back.
    in.push_back({place.data() + i * kPiece, from.data() + (kCapacity - 1 - i) * kPiece, kPiece});
    out.push_back({to.data() + (kCapacity - 1 - i) * kPiece, place.data() + i * kPiece, kPiece});
  }
  Stream stream(device());
  Graph graph(device(), std::array<GraphNode, 2>{GraphCopies{std::span(in).first(1), kCapacity},
                                                 GraphCopies{std::span(out).first(1), kCapacity}});
  for (const std::size_t count : {std::size_t{1}, std::size_t{2}, kCapacity, std::size_t{7}}) {
    std::memset(to.data(), 0, to.bytes());
    ASSERT_OK(graph.update(0, GraphCopies{std::span(in).first(count), kCapacity}));
    ASSERT_OK(graph.update(1, GraphCopies{std::span(out).first(count), kCapacity}));
    ASSERT_OK(graph.launch(stream));
    ASSERT_OK(stream.wait());
    const std::size_t untouched = (kCapacity - count) * kPiece;
    EXPECT_TRUE(std::all_of(to.data(), to.data() + untouched, [](std::byte byte) { return byte == std::byte{0}; }));
    EXPECT_EQ(std::memcmp(to.data() + untouched, from.data() + untouched, count * kPiece), 0);
  }
  in.push_back(in.front());
  EXPECT_TRUE(failed_with(graph.update(0, GraphCopies{in, in.size()}), Errc::invalid_argument));
}

TEST_P(GraphTest, EventsAmongTheStepsTakeTheTime) {
  const Event before(device(), EventTiming::on);
  const Event after(device(), EventTiming::on);
  Chain chain(device());
  Graph timed(device(), std::array<GraphNode, 3>{GraphRecord{before}, chain.add.launch(), GraphRecord{after}});
  Stream stream(device());
  for (int round = 0; round < 2; ++round) {
    ASSERT_OK(timed.launch(stream));
    ASSERT_OK(stream.wait());
    const auto between = after.since(before);
    ASSERT_OK(between);
    EXPECT_GT(between->count(), 0);
  }
  EXPECT_TRUE(failed_with(timed.update(0, GraphRecord{after}), Errc::invalid_argument));
}

TEST_P(GraphTest, LaunchesInFlightOutliveTheGraph) {
  std::optional<Chain> chain(std::in_place, device());
  chain->fill(10);
  Stream stream(device());
  Gate gate;
  ASSERT_OK(gate.enqueue(stream));
  ASSERT_OK(chain->graph.launch(stream));
  {
    const Graph gone = std::move(chain->graph);
  }
  gate.open();
  ASSERT_OK(stream.wait());
  ASSERT_NO_FATAL_FAILURE(expect_words(chain->out, 11));
}

TEST_P(GraphTest, OneGraphRunsOnSeveralStreams) {
  Chain chain(device());
  Stream first(device());
  Stream second(device());
  const Event done(device());
  chain.fill(0);
  ASSERT_OK(chain.graph.launch(first));
  ASSERT_OK(first.record(done));
  ASSERT_OK(second.wait_for(done));
  ASSERT_OK(chain.graph.launch(second));
  ASSERT_OK(second.wait());
  ASSERT_NO_FATAL_FAILURE(expect_words(chain.out, 1));
}

TEST_P(GraphTest, ChainsThatCanNeverRunAreRefused) {
  Chain chain(device());
  const auto refused = [&](const GraphNode& node) { EXPECT_THROW(Graph(device(), std::array{node}), UsageError); };
  EXPECT_THROW(Graph(device(), {}), UsageError);
  Copy none = chain.copy_in;
  none.from = nullptr;
  refused(GraphCopies{{&none, 1}});
  none = chain.copy_in;
  none.to = nullptr;
  refused(GraphCopies{{&none, 1}});
  none = chain.copy_in;
  none.bytes = 0;
  refused(GraphCopies{{&none, 1}});
  refused(GraphCopies{{}});
  refused(GraphCopies{{&chain.copy_in, 1}, 0});
  GraphLaunch launch = chain.add.launch();
  launch.arguments = launch.arguments.first(2);
  refused(launch);
  launch = chain.add.launch();
  launch.shape.items = 0;
  refused(launch);
  launch = chain.add.launch();
  chain.add.addresses[1] = nullptr;
  refused(launch);
}

TEST_P(GraphTest, UpdatesThatCanNeverRunChangeNothing) {
  Chain chain(device());
  Stream stream(device());
  const auto refused = [&](std::size_t node, const GraphNode& to) {
    EXPECT_TRUE(failed_with(chain.graph.update(node, to), Errc::invalid_argument));
  };
  refused(3, GraphCopies{{&chain.copy_in, 1}});
  refused(0, chain.add.launch());
  refused(1, GraphCopies{{&chain.copy_in, 1}});
  Copy none = chain.copy_in;
  none.from = nullptr;
  refused(0, GraphCopies{{&none, 1}});
  const std::array<Copy, 2> two{chain.copy_in, chain.copy_in};
  refused(0, GraphCopies{two, 2});
  GraphLaunch launch = chain.add.launch();
  launch.arguments = launch.arguments.first(1);
  refused(1, launch);
  Kernel nowhere = add_kernel();
  nowhere.entries = {};
  launch = chain.add.launch();
  launch.kernel = nowhere;
  EXPECT_TRUE(failed_with(chain.graph.update(1, launch), Errc::not_supported));
  EXPECT_THROW(Graph(device(), std::array<GraphNode, 1>{launch}), Exception);
  chain.fill(5);
  ASSERT_OK(chain.graph.launch(stream));
  ASSERT_OK(stream.wait());
  ASSERT_NO_FATAL_FAILURE(expect_words(chain.out, 6));
}

TEST_P(GraphTest, StreamsOfOtherDevicesAreRefused) {
  Chain chain(device());
  const Device other = Device::parse(on_cpu() ? "cpu:1" : "cpu");
  Stream stream(other);
  EXPECT_TRUE(failed_with(chain.graph.launch(stream), Errc::invalid_argument));
}

}  // namespace
}  // namespace headrace::testing
