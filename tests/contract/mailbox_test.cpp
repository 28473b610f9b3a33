#include "headrace/device/detail/mailbox.hpp"

#include <array>
#include <future>
#include <optional>
#include <span>
#include <vector>

#include "headrace/base/error.hpp"
#include "headrace/device/graph.hpp"
#include "tests/contract/devices.hpp"
#include "tests/contract/kernels.hpp"

namespace headrace::testing {
namespace {

class MailboxTest : public DeviceTest {};
HEADRACE_ON_EVERY_DEVICE(MailboxTest);

constexpr std::uint32_t kWords = 64;
constexpr std::size_t kBytes = kWords * sizeof(std::uint32_t);

/// An echo kernel that is resident while this exists. The stream is destroyed after the stop.
class Echo {
 public:
  Echo(Device device, std::uint32_t boxes) : stream_(device), boxes_(device, boxes, kBytes, kBytes) {
    started_ = launch_resident(stream_, echo_kernel(), {.blocks = boxes, .threads = 32}, boxes_.view(), kWords);
  }
  Echo(const Echo&) = delete;
  Echo& operator=(const Echo&) = delete;
  ~Echo() {
    boxes_.stop();
    EXPECT_OK(stream_.wait());
  }
  [[nodiscard]] Status started() const { return started_; }
  [[nodiscard]] Mailbox& boxes() { return boxes_; }
  [[nodiscard]] StreamRef stream() const { return stream_; }

 private:
  Stream stream_;
  Mailbox boxes_;
  Status started_;
};

void post(Mailbox& mailbox, std::uint32_t box, std::uint32_t seed) {
  auto* words = reinterpret_cast<std::uint32_t*>(mailbox.request(box));
  for (std::uint32_t i = 0; i < kWords; ++i) words[i] = seed * 1000 + i;
  mailbox.post(box);
}

[[nodiscard]] bool answered(const Mailbox& mailbox, std::uint32_t box, std::uint32_t seed) {
  const auto* words = reinterpret_cast<const std::uint32_t*>(mailbox.answer(box));
  for (std::uint32_t i = 0; i < kWords; ++i) {
    if (words[i] != seed * 1000 + i + 1) return false;
  }
  return true;
}

TEST_P(MailboxTest, SeveralBoxesEcho) {
  constexpr std::uint32_t kBoxes = 4;
  constexpr std::uint32_t kRounds = 50;
  Echo echo(device(), kBoxes);
  ASSERT_OK(echo.started());
  Mailbox& boxes = echo.boxes();
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    for (std::uint32_t box = 0; box < kBoxes; ++box) {
      ASSERT_TRUE(boxes.ready(box));
      post(boxes, box, round * kBoxes + box);
    }
    for (std::uint32_t box = 0; box < kBoxes; ++box) {
      ASSERT_TRUE(eventually([&] { return boxes.ready(box); }));
      EXPECT_TRUE(answered(boxes, box, round * kBoxes + box));
    }
  }
}

TEST_P(MailboxTest, OneHostThreadABox) {
  constexpr std::uint32_t kBoxes = 3;
  Echo echo(device(), kBoxes);
  ASSERT_OK(echo.started());
  std::vector<std::thread> threads;
  for (std::uint32_t box = 0; box < kBoxes; ++box) {
    threads.emplace_back([&, box] {
      for (std::uint32_t round = 0; round < 100; ++round) {
        post(echo.boxes(), box, round * 7 + box);
        ASSERT_TRUE(eventually([&] { return echo.boxes().ready(box); }));
        EXPECT_TRUE(answered(echo.boxes(), box, round * 7 + box));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(MailboxTest, StopsWithin100Milliseconds) {
  Duration best = Duration::max();
  for (int attempt = 0; attempt < 5 && best > std::chrono::milliseconds(100); ++attempt) {  // on a busy machine
    Echo echo(device(), 4);
    ASSERT_OK(echo.started());
    post(echo.boxes(), 0, 1);
    ASSERT_TRUE(eventually([&] { return echo.boxes().ready(0); }));
    EXPECT_FALSE(*echo.stream().ready()) << "it stays until it is told to stop";
    const Time stopped = SteadyClock::now();
    echo.boxes().stop();
    ASSERT_OK(echo.stream().wait());
    best = std::min(best, SteadyClock::now() - stopped);
  }
  EXPECT_LE(best, std::chrono::milliseconds(100));
}

TEST_P(MailboxTest, HeartbeatGrowsWhileTheKernelPolls) {
  Echo echo(device(), 2);
  ASSERT_OK(echo.started());
  for (std::uint32_t box = 0; box < 2; ++box) {
    const std::uint32_t before = echo.boxes().heartbeat(box);
    EXPECT_TRUE(eventually([&] { return echo.boxes().heartbeat(box) > before + 1; }));
  }
}

TEST_P(MailboxTest, StreamGoesOnAfterTheKernel) {
  Buffer data(device(), MemoryKind::mapped, 256);
  Stream after(device());
  Event ended(device());
  Mailbox boxes(device(), 1, kBytes, kBytes);
  Stream stream(device());
  ASSERT_OK(launch_resident(stream, echo_kernel(), {.blocks = 1, .threads = 32}, boxes.view(), kWords));
  ASSERT_OK(stream.fill(data.data(), 0x5A, data.bytes()));
  ASSERT_OK(stream.record(ended));
  ASSERT_OK(after.wait_for(ended));
  EXPECT_FALSE(*after.ready());
  boxes.stop();
  ASSERT_OK(after.wait());
  EXPECT_EQ(data.data()[255], std::byte{0x5A});
}

TEST_P(MailboxTest, MoreBlocksThanFitAreRefused) {
  Stream stream(device());
  const std::uint32_t most = device().resident_blocks_max(echo_kernel(), 32);
  ASSERT_GE(most, 1U);
  Mailbox boxes(device(), most + 1, kBytes, kBytes);
  const Status refused =
      launch_resident(stream, echo_kernel(), {.blocks = most + 1, .threads = 32}, boxes.view(), kWords);
  EXPECT_TRUE(failed_with(refused, Errc::not_supported));
  EXPECT_EQ(refused.error().native, static_cast<int>(most));
  EXPECT_TRUE(*stream.ready());
}

/// Resources that a stream and a graph have used for long lists of copies, ready to be freed.
struct UsedLists {
  explicit UsedLists(Device device)
      : from(device, MemoryKind::pinned, kExtent), to(device, MemoryKind::device, kExtent), stream(device) {
    std::vector<Copy> odd;  // of many lengths, and more than are passed as kernel arguments
    std::vector<Copy> rows;
    for (std::size_t i = 0; i < kCount; ++i) odd.push_back({to.data() + 64 * i, from.data() + 64 * i, 1 + i % 60});
    for (std::size_t i = 0; i < kCount; ++i) rows.push_back({to.data() + 64 * i, from.data() + 64 * i, 32});
    EXPECT_OK(stream->copy_many(odd));
    EXPECT_OK(stream->copy_many(rows));
    graph.emplace(device, std::array<GraphNode, 1>{GraphCopies{std::span(odd).first(10), 20}});
    EXPECT_OK(graph->launch(*stream));
    EXPECT_OK(stream->wait());
  }
  void end() {
    graph.reset();
    stream.reset();
  }

  static constexpr std::size_t kCount = 1000;
  static constexpr std::size_t kExtent = 64 * kCount;
  Buffer from;
  Buffer to;
  std::optional<Stream> stream;
  std::optional<Graph> graph;
};

TEST_P(MailboxTest, StreamsAndGraphsWithListsOfCopiesEndBesideIt) {
  UsedLists lists(device());
  Echo echo(device(), 1);
  ASSERT_OK(echo.started());
  auto ended = std::async(std::launch::async, [&] { lists.end(); });
  if (ended.wait_for(std::chrono::seconds(30)) != std::future_status::ready) {
    echo.boxes().stop();  // so that work that waits for the kernel can continue
    ADD_FAILURE() << "the end of a stream or graph waits for a kernel that stays";
  }
  ended.get();
  post(echo.boxes(), 0, 3);
  EXPECT_TRUE(eventually([&] { return echo.boxes().ready(0); }));
  EXPECT_TRUE(answered(echo.boxes(), 0, 3));
}

TEST_P(MailboxTest, NoBoxesAreRefused) { EXPECT_THROW(Mailbox(device(), 0, 1, 1), UsageError); }

TEST_P(MailboxTest, SequenceSkipsTheWordThatMeansStopped) {
  Mailbox boxes(device(), 1, 0, 0);
  EXPECT_TRUE(boxes.ready(0));
  EXPECT_EQ(boxes.post(0), 1U);
  EXPECT_FALSE(boxes.ready(0));
  const_cast<std::uint32_t&>(*boxes.view().posted) = MailboxView::kStopped - 1;  // 2^32 posts later
  EXPECT_EQ(boxes.post(0), 0U);
}

}  // namespace
}  // namespace headrace::testing
