#pragma once

// A MessageReader cuts the frames of a stream into messages that say their length, without copying their bodies.
//
//     auto print = [](const headrace::ingest::FrameRing& ring, std::shared_ptr<headrace::ingest::HeldFrame> frame) {
//       headrace::ingest::MessageReader reader({.width = 4, .header_bytes = 4}, ring);
//       reader.add(std::move(frame));
//       while (std::optional<headrace::ingest::FramedMessage> message = reader.next()) {
//         for (const auto& part : message->body) std::printf("%zu bytes\n", part.bytes);
//       }
//     };

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "headrace/device/buffer.hpp"
#include "headrace/device/stream.hpp"
#include "headrace/ingest/detail/framing.hpp"
#include "headrace/ingest/detail/held_frame.hpp"

namespace headrace::ingest {

/// Bytes of a message's body within one frame.
struct MessagePart {
  /// The frame; it is not reused while this is kept.
  std::shared_ptr<HeldFrame> frame;
  std::size_t offset = 0;  ///< From the frame's first byte.
  std::size_t bytes = 0;   ///< How many bytes.
};

/// A message, and where its body lies without a copy.
struct FramedMessage {
  Message message;                ///< Where it lies in the stream.
  std::vector<MessagePart> body;  ///< The parts of its body in order; none if it is empty.
};

/// Cuts the frames of one stream, and parts of them, into messages with a length prefix. It keeps the frames of an
/// incomplete message, so a message must fit into all frames of the ring but one. From frames that the host cannot read
/// it copies headers only, 16 KiB at a time. Used by one thread at a time.
class MessageReader {
 public:
  /// Throws UsageError for an invalid prefix, and for frames that are converted or too few for a header.
  MessageReader(const LengthPrefix& prefix, const FrameRing& frames);

  /// Adds the stream's next frame, or a part of one (Receiver::peek()). Bytes that an earlier part brought are skipped.
  /// Throws UsageError if bytes between are missing, DataError for a frame with gaps.
  void add(std::shared_ptr<HeldFrame> frame);
  /// The next message; empty until all of it has come. Throws DataError, now and at every later call, for a message
  /// longer than LengthPrefix::body_max or than the frames have room for.
  [[nodiscard]] std::optional<FramedMessage> next();
  /// Bytes of the stream that have been added.
  [[nodiscard]] std::uint64_t end() const noexcept { return end_; }
  /// The value of end() at which next() can make progress: return a message, or report that its length is out of
  /// bounds.
  [[nodiscard]] std::uint64_t needs() const noexcept {
    return found_ ? found_->body + found_->body_bytes : framing_.begin() + prefix_.header_bytes;
  }
  /// Bytes added after the last message that next() returned. Once the stream has ended, a value other than 0 means
  /// that it ended within a message.
  [[nodiscard]] std::uint64_t rest() const noexcept { return end_ - taken_; }

 private:
  [[nodiscard]] std::span<const std::byte> window(std::uint64_t offset);
  [[nodiscard]] FramedMessage take();
  void drop_frames(std::uint64_t before);

  Device device_;
  LengthPrefix prefix_;
  MessageFraming framing_;
  bool readable_;                                  ///< By the host.
  std::deque<std::shared_ptr<HeldFrame>> frames_;  ///< The frames of which something is still needed.
  std::optional<Message> found_;                   ///< The message whose header is known.
  std::uint64_t taken_ = 0;                        ///< Where the message after the last one begins.
  std::uint64_t end_ = 0;                          ///< The end of the last frame.
  std::optional<Stream> stream_;
  Buffer copied_;
  std::uint64_t copied_offset_ = 0;
  std::size_t copied_bytes_ = 0;
};

}  // namespace headrace::ingest
