#include "ingest/builder/build_stream.hpp"

#include "frame_support.hpp"

/// How the builder learns that its bursts have been copied.
namespace headrace::testing {

using ingest::Builder;
using ingest::BuildStream;
using ingest::FrameRing;

class IngestBuildStream : public DeviceTest {
 protected:
  /// More looks than it takes until the stream is asked.
  static constexpr int kManyLooks = 5000;
};
HEADRACE_ON_EVERY_DEVICE(IngestBuildStream);

TEST_P(IngestBuildStream, ABurstIsDoneOnceItsLastKernelHasSaidSo) {
  BuildStream copies(device(), 2);
  Gate gate;
  EXPECT_TRUE(*copies.done(0)) << "nothing has been enqueued";
  ASSERT_OK(copies.close(1, 0));
  ASSERT_OK(copies.wait(1));
  ASSERT_OK(gate.enqueue(copies.stream()));
  ASSERT_OK(copies.close(2, 0));
  gate.wait_entered();
  for (int look = 0; look < kManyLooks; ++look) ASSERT_FALSE(*copies.done(2));
  EXPECT_TRUE(*copies.done(1));
  gate.open();
  ASSERT_OK(copies.wait(2));
  EXPECT_TRUE(*copies.done(2));
}

TEST_P(IngestBuildStream, ABurstIsDoneWithTheOneAfterIt) {
  BuildStream copies(device(), 4);
  for (std::uint64_t number = 1; number <= 3; ++number) ASSERT_OK(copies.close(number, 0));
  ASSERT_OK(copies.wait(3));
  for (std::uint64_t number = 1; number <= 3; ++number) EXPECT_TRUE(*copies.done(number));
}

TEST_P(IngestBuildStream, AStreamWithNothingLeftToDoSpeaksForKernelsThatSaidNothing) {
  BuildStream copies(device(), 2);
  ASSERT_OK(copies.close(1, 3));  // by kernels that were never launched
  bool done = false;
  for (int look = 0; look < kManyLooks && !done; ++look) done = *copies.done(1);
  EXPECT_TRUE(done);
  ASSERT_OK(copies.close(2, 1));
  ASSERT_OK(copies.wait(2));
}

TEST_P(IngestBuildStream, FramesOutliveTheirBuilder) {
  auto traffic = make_traffic(device(), MemoryKind::device, random_lengths(40, 1000, 7), 1024, 7);
  FrameRing frames(device(), {.frame_bytes = 1000, .frame_count = 64});
  {
    Builder builder(device(), traffic.ring);
    builder.attach(0, frames);
    ASSERT_OK(builder.place(traffic.pieces, 1));
    ASSERT_OK(builder.finish(0, traffic.stream.size()));
  }
  EXPECT_TRUE(drained(frames) == traffic.stream);
}

// Events are recorded once the first frame has been taken on a stream.
TEST_P(IngestBuildStream, TheHostAndAStreamTakeFramesInTurns) {
  auto traffic = make_traffic(device(), MemoryKind::device, random_lengths(300, 1000, 9), 1024, 7);
  FrameRing frames(device(), {.frame_bytes = 2000, .frame_count = 4});
  Builder builder(device(), traffic.ring, {.prompt_count = 2});
  builder.attach(0, frames);
  const Stream consumer(device());
  const Buffer all(device(), MemoryKind::pinned, traffic.stream.size());
  const auto take = [&](bool by_stream) {
    const auto frame = by_stream ? *frames.try_take(consumer) : *frames.try_take();
    if (!frame) return;
    ASSERT_OK(consumer.copy(all.data() + frame->stream_offset, frame->data, frame->bytes));
    ASSERT_OK(frames.release(frame->number, consumer));
  };
  for (std::size_t i = 0; i < traffic.pieces.size(); ++i) {
    const auto& piece = traffic.pieces[i];
    while (piece.stream_offset + piece.length > frames.reserved_end()) {
      take(i % 3 != 0);
      ASSERT_OK(frames.poll());
    }
    ASSERT_OK(builder.place({&piece, 1}, i + 1));
    take(i % 3 != 0);
  }
  ASSERT_OK(builder.finish(0, traffic.stream.size()));
  while (!frames.drained()) take(frames.counters().frames % 2 == 0);
  ASSERT_OK(consumer.wait());
  EXPECT_TRUE(testing::content(all) == traffic.stream);
}

}  // namespace headrace::testing
