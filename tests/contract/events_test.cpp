#include "tests/contract/devices.hpp"

namespace headrace::testing {
namespace {

class EventTest : public DeviceTest {};
HEADRACE_ON_EVERY_DEVICE(EventTest);

TEST_P(EventTest, NeverRecordedIsReady) {
  Event event(device());
  Stream stream(device());
  EXPECT_TRUE(*event.ready());
  EXPECT_OK(event.wait());
  EXPECT_OK(stream.wait_for(event));
  EXPECT_OK(stream.wait());
}

TEST_P(EventTest, HappensWhenTheWorkBeforeItIsDone) {
  Stream stream(device());
  Event event(device());
  Gate gate;
  ASSERT_OK(gate.enqueue(stream));
  ASSERT_OK(stream.record(event));
  EXPECT_FALSE(*event.ready());
  gate.open();
  ASSERT_OK(event.wait());
  EXPECT_TRUE(*event.ready());
}

TEST_P(EventTest, DoesNotWaitForLaterWork) {
  Stream stream(device());
  Event event(device());
  Gate gate;
  ASSERT_OK(stream.record(event));
  ASSERT_OK(gate.enqueue(stream));
  ASSERT_OK(event.wait());
  EXPECT_FALSE(*stream.ready());
}

TEST_P(EventTest, StreamsWaitForEachOther) {
  const auto bytes = random_bytes(64 * 1024 + 1, 4);
  const Buffer source = pinned(device(), bytes);
  Buffer middle(device(), MemoryKind::device, bytes.size());
  Buffer back(device(), MemoryKind::pinned, bytes.size());
  Stream writer(device());
  Stream reader(device());
  Event written(device());
  Event read(device());
  Gate gate;
  ASSERT_OK(gate.enqueue(writer));
  ASSERT_OK(writer.copy(middle.data(), source.data(), bytes.size()));
  ASSERT_OK(writer.record(written));
  ASSERT_OK(reader.wait_for(written));
  ASSERT_OK(reader.copy(back.data(), middle.data(), bytes.size()));
  ASSERT_OK(reader.record(read));
  ASSERT_OK(writer.wait_for(read));
  ASSERT_OK(writer.fill(middle.data(), 0, bytes.size()));  // only after it has been read
  EXPECT_FALSE(*reader.ready());
  gate.open();
  ASSERT_OK(writer.wait());
  ASSERT_OK(reader.wait());
  EXPECT_EQ(content(back), bytes);
}

TEST_P(EventTest, WaitingIsForTheRecordAtTheTimeOfTheCall) {
  Stream held(device());
  Stream free(device());
  Stream waiter(device());
  Event event(device());
  Gate gate;
  ASSERT_OK(gate.enqueue(held));
  ASSERT_OK(held.record(event));
  ASSERT_OK(waiter.wait_for(event));
  ASSERT_OK(free.record(event));  // again, on an idle stream
  ASSERT_OK(event.wait());
  EXPECT_TRUE(*event.ready());
  EXPECT_FALSE(*waiter.ready()) << "it waits for the first record";
  gate.open();
  ASSERT_OK(waiter.wait());
}

TEST_P(EventTest, LaterRecordDoesNotHoldBackAnEarlierWait) {
  Stream first(device());
  Stream held(device());
  Stream waiter(device());
  Event event(device());
  Gate gate;
  ASSERT_OK(first.record(event));
  ASSERT_OK(waiter.wait_for(event));
  ASSERT_OK(gate.enqueue(held));
  ASSERT_OK(held.record(event));
  ASSERT_OK(waiter.wait());
  EXPECT_FALSE(*event.ready());
}

TEST_P(EventTest, MayGoWhileItsRecordIsPending) {
  Stream held(device());
  Stream waiter(device());
  Gate gate;
  ASSERT_OK(gate.enqueue(held));
  {
    Event event(device(), EventTiming::on);
    ASSERT_OK(held.record(event));
    ASSERT_OK(waiter.wait_for(event));
  }
  EXPECT_FALSE(*waiter.ready());
  gate.open();
  EXPECT_OK(waiter.wait());
}

TEST_P(EventTest, OutlivesItsStream) {
  Event event(device());
  {
    Stream stream(device());
    Buffer buffer(device(), MemoryKind::device, 1000);
    ASSERT_OK(stream.fill(buffer.data(), 1, buffer.bytes()));
    ASSERT_OK(stream.record(event));
    ASSERT_OK(stream.wait());
  }
  EXPECT_TRUE(*event.ready());
  EXPECT_OK(event.wait());
}

TEST_P(EventTest, ReRecordedManyTimes) {
  Stream stream(device());
  Event event(device());
  Buffer buffer(device(), MemoryKind::device, 64);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_OK(stream.fill(buffer.data(), static_cast<unsigned char>(i), buffer.bytes()));
    ASSERT_OK(stream.record(event));
    if (i % 10 == 0) {
      ASSERT_OK(event.wait());
      EXPECT_TRUE(*event.ready());
    }
  }
  EXPECT_OK(stream.wait());
}

TEST_P(EventTest, TimesTheWorkBetween) {
  using namespace std::chrono_literals;
  Stream stream(device());
  Event start(device(), EventTiming::on);
  Event end(device(), EventTiming::on);
  Gate gate;
  const Time before = SteadyClock::now();
  ASSERT_OK(stream.record(start));
  ASSERT_OK(gate.enqueue(stream));
  ASSERT_OK(stream.record(end));
  gate.wait_entered();
  const Time entered = SteadyClock::now();
  EXPECT_TRUE(failed_with(end.since(start), Errc::invalid_argument)) << "the event has not happened";
  ASSERT_TRUE(eventually([&] { return SteadyClock::now() - entered > 3ms; }));
  gate.open();
  ASSERT_OK(stream.wait());
  const auto elapsed = end.since(start);
  ASSERT_OK(elapsed);
  EXPECT_GE(*elapsed, 2900us);  // a device clock may have a resolution of a microsecond or so
  EXPECT_LE(*elapsed, SteadyClock::now() - before + 1ms);
  const auto backwards = start.since(end);
  ASSERT_OK(backwards);
  EXPECT_LE(*backwards, 0ns);
}

TEST_P(EventTest, TimingNeedsTimedRecordedEvents) {
  Stream stream(device());
  Event untimed(device());
  Event timed(device(), EventTiming::on);
  Event never(device(), EventTiming::on);
  ASSERT_OK(stream.record(untimed));
  ASSERT_OK(stream.record(timed));
  ASSERT_OK(stream.wait());
  EXPECT_TRUE(failed_with(timed.since(untimed), Errc::invalid_argument));
  EXPECT_TRUE(failed_with(untimed.since(timed), Errc::invalid_argument));
  EXPECT_TRUE(failed_with(timed.since(never), Errc::invalid_argument));
  EXPECT_OK(timed.since(timed));
}

TEST_P(EventTest, CreateAndMove) {
  auto created = Event::create(device());
  ASSERT_OK(created);
  Event event = *std::move(created);
  Stream stream(device());
  ASSERT_OK(stream.record(event));
  event = Event(device());
  EXPECT_TRUE(*event.ready());
  EXPECT_OK(stream.wait());
}

}  // namespace
}  // namespace headrace::testing
