#include <numeric>

#include "headrace/base/error.hpp"
#include "headrace/ingest/messages.hpp"
#include "receiver_support.hpp"

namespace headrace::testing {

using ingest::Builder;
using ingest::FramedMessage;
using ingest::FrameRing;
using ingest::HeldFrame;
using ingest::LengthPrefix;
using ingest::MessageReader;
using ingest::Piece;

/// A stream in a ring, which is given to frames as they become free.
class IngestMessages : public DeviceTest {
 protected:
  static constexpr std::size_t kFrameBytes = 1000;
  static constexpr std::uint32_t kFrames = 3;

  /// Bodies of these lengths, each preceded by its length in 4 bytes, big-endian.
  static Bytes messages_of(const std::vector<std::uint32_t>& lengths) {
    const Bytes body = stream_of(1, std::accumulate(lengths.begin(), lengths.end(), std::size_t{0}));
    Bytes all;
    auto from = body.begin();
    for (const std::uint32_t length : lengths) {
      for (int shift = 24; shift >= 0; shift -= 8) all.push_back(static_cast<std::byte>(length >> shift));
      all.insert(all.end(), from, from + length);
      from += length;
    }
    return all;
  }

  void send(const Bytes& stream) {
    ring_ = Buffer(device(), MemoryKind::mapped, (stream.size() + 15) / 16 * 16);
    std::copy(stream.begin(), stream.end(), ring_.data());
    frames_ =
        std::make_shared<FrameRing>(device(), ingest::FrameOptions{.frame_bytes = kFrameBytes, .frame_count = kFrames});
    builder_.emplace(device(), ring_);
    builder_->attach(0, *frames_);
    sent_ = 0;
    bytes_ = stream.size();
  }

  /// The next frame; null if there is none, or no space for it.
  std::shared_ptr<HeldFrame> next_frame() {
    lease_.reset();
    const std::uint64_t end = std::min(frames_->reserved_end(), bytes_);
    if (sent_ < end) {
      const Piece piece{
          .ring_offset = sent_, .stream_offset = sent_, .length = static_cast<std::uint32_t>(end - sent_)};
      EXPECT_OK(builder_->place({&piece, 1}, 0));
      sent_ = end;
      if (sent_ == bytes_) {
        EXPECT_OK(builder_->finish(0, bytes_));
      }
    }
    EXPECT_OK(builder_->wait());
    const auto frame = *frames_->try_take();
    if (!frame) return nullptr;
    lease_ = std::make_shared<const ingest::FrameLease>(frames_, frame->number);
    return std::make_shared<HeldFrame>(lease_, *frame);
  }

  static Bytes body_of(const FramedMessage& message) {
    Bytes all;
    for (const ingest::MessagePart& part : message.body) {
      const Bytes frame = content(device(), part.frame->frame());
      const auto from = frame.begin() + static_cast<std::ptrdiff_t>(part.offset);
      all.insert(all.end(), from, from + static_cast<std::ptrdiff_t>(part.bytes));
    }
    return all;
  }

  Buffer ring_;
  std::shared_ptr<FrameRing> frames_;
  std::optional<Builder> builder_;
  std::shared_ptr<const ingest::FrameLease> lease_;  ///< The lease of the last frame, for parts of it.
  std::uint64_t sent_ = 0;
  std::uint64_t bytes_ = 0;
};
HEADRACE_ON_EVERY_DEVICE(IngestMessages);

TEST_P(IngestMessages, AreFoundWhereverFramesAreCut) {
  // Headers and bodies across frame ends, empty ones, and one of the maximum size.
  const std::vector<std::uint32_t> lengths{10, 0, 980, 1, 0, 995, 1500, 3, 0, 0, 2 * kFrameBytes - 4, 7, 500, 2, 1};
  send(messages_of(lengths));
  MessageReader reader({}, *frames_);
  Bytes bodies;
  std::vector<std::uint32_t> found;
  std::uint64_t begin = 0;
  while (auto frame = next_frame()) {
    reader.add(std::move(frame));
    while (const auto message = reader.next()) {
      EXPECT_EQ(message->message.begin, begin);
      const Bytes body = body_of(*message);
      ASSERT_EQ(body.size(), message->message.body_bytes);
      found.push_back(static_cast<std::uint32_t>(body.size()));
      bodies.insert(bodies.end(), body.begin(), body.end());
      begin += 4 + body.size();
    }
  }
  EXPECT_EQ(found, lengths);
  EXPECT_TRUE(bodies == stream_of(1, bodies.size()));
  EXPECT_EQ(reader.rest(), 0U);
  EXPECT_EQ(begin, bytes_) << "all frames arrived, so none was held too long";
}

// A message is given as soon as the parts of its frames contain it, and a frame delivers nothing twice.
TEST_P(IngestMessages, AreFoundInPartsOfFrames) {
  const std::vector<std::uint32_t> lengths{10, 0, 980, 1, 0, 995, 1500, 3, 0, 0, 2 * kFrameBytes - 4, 7, 500, 2, 1};
  for (const std::size_t step : {1U, 7U, 333U, 1000U}) {
    SCOPED_TRACE(step);
    const Bytes stream = messages_of(lengths);
    send(stream);
    MessageReader reader({}, *frames_);
    std::vector<Bytes> bodies;
    const auto take_all = [&] {
      while (const auto message = reader.next()) {
        EXPECT_LE(message->message.body + message->message.body_bytes, reader.end());
        bodies.push_back(body_of(*message));
      }
      EXPECT_GT(reader.needs(), reader.end());
    };
    while (auto frame = next_frame()) {
      const ingest::Frame whole = frame->frame();
      for (std::size_t end = step; end < whole.bytes; end += step) {
        ingest::Frame part = whole;  // the bytes since the last part, or with step 7 all bytes of the frame so far
        const std::size_t begin = step == 7 ? 0 : end - step;
        part.stream_offset += begin;
        part.data += begin;
        part.bytes = end - begin;
        reader.add(std::make_shared<HeldFrame>(lease_, part));
        take_all();
      }
      reader.add(std::move(frame));
      take_all();
    }
    ASSERT_EQ(bodies.size(), lengths.size());
    Bytes all;
    for (const Bytes& body : bodies) all.insert(all.end(), body.begin(), body.end());
    EXPECT_TRUE(all == stream_of(1, all.size()));
    EXPECT_EQ(reader.rest(), 0U);
  }
}

TEST_P(IngestMessages, ALengthOutOfBoundsIsSeenWithItsHeader) {
  Bytes stream = messages_of({5});
  stream.insert(stream.end(), 4, std::byte{0xFF});
  stream.resize(stream.size() + 100);
  send(stream);
  MessageReader reader({}, *frames_);
  const auto frame = next_frame();
  ingest::Frame part = frame->frame();
  part.bytes = 12;  // all of the first, and three bytes of the second's header
  reader.add(std::make_shared<HeldFrame>(lease_, part));
  EXPECT_TRUE(reader.next().has_value());
  EXPECT_FALSE(reader.next().has_value());
  EXPECT_EQ(reader.needs(), 13U);
  part.bytes = 13;
  reader.add(std::make_shared<HeldFrame>(lease_, part));
  EXPECT_THROW((void)reader.next(), DataError);
}

TEST_P(IngestMessages, AMessageBeyondTheLimitEndsTheStream) {
  for (const LengthPrefix& prefix : {LengthPrefix{.body_max = 100}, LengthPrefix{}}) {
    const std::uint32_t limit = prefix.body_max == 100 ? 100 : 2 * kFrameBytes - 4;
    send(messages_of({5, limit + 1}));
    MessageReader reader(prefix, *frames_);
    reader.add(next_frame());
    ASSERT_TRUE(reader.next().has_value());
    for (int again = 0; again < 2; ++again) {
      std::string why;
      try {
        static_cast<void>(reader.next());
      } catch (const DataError& error) {
        why = error.what();
      }
      EXPECT_THAT(why, ::testing::AllOf(::testing::HasSubstr("byte 9"), ::testing::HasSubstr(std::to_string(limit + 1)),
                                        ::testing::HasSubstr("limit of " + std::to_string(limit))));
    }
  }
}

TEST_P(IngestMessages, WhatIsLeftAtTheEndIsKnown) {
  Bytes stream = messages_of({5, 50});
  stream.pop_back();
  send(stream);
  MessageReader reader({}, *frames_);
  reader.add(next_frame());
  EXPECT_TRUE(reader.next().has_value());
  EXPECT_FALSE(reader.next().has_value());
  EXPECT_EQ(reader.rest(), 53U);
}

TEST_P(IngestMessages, RefusesWhatCannotBe) {
  send(messages_of({1500, 1500}));
  EXPECT_THROW(MessageReader({.width = 9}, *frames_), UsageError);
  const FrameRing tiny(device(), {.frame_bytes = 1, .frame_count = 2});
  EXPECT_THROW(MessageReader({}, tiny), UsageError);
  const FrameRing floats(device(), {.frame_bytes = 1000, .conversion = ingest::Conversion::int8_to_float});
  EXPECT_THROW(MessageReader({}, floats), UsageError);
  MessageReader reader({}, *frames_);
  const auto first = next_frame();
  EXPECT_THROW(reader.add(next_frame()), UsageError) << "the second frame";
}

}  // namespace headrace::testing
