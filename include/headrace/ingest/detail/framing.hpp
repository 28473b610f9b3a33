#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/device/group.hpp"
#include "headrace/ingest/detail/piece.hpp"
#include "headrace/ingest/detail/wire.hpp"

/// How a stream of bytes is cut into frames and messages.
namespace headrace::ingest {

/// Frames of one size, one after the other from the stream's first byte.
struct FixedFrames {
  std::uint64_t frame_bytes = 1;  ///< 1 or more.

  [[nodiscard]] HEADRACE_HD std::uint64_t frame_of(std::uint64_t stream_offset) const {
    return stream_offset / frame_bytes;
  }
  [[nodiscard]] HEADRACE_HD std::uint64_t begin(std::uint64_t frame) const { return frame * frame_bytes; }
  /// The limit of a stream of which all frames before `frame` may be written.
  [[nodiscard]] HEADRACE_HD std::uint64_t limit(std::uint64_t frame) const { return begin(frame); }

  /// The part of `piece` that lies in the frame of its first byte; `piece` becomes the rest. Requires piece.length > 0.
  [[nodiscard]] HEADRACE_HD Piece cut(Piece& piece) const {
    const std::uint64_t left = frame_bytes - piece.stream_offset % frame_bytes;
    Piece part = piece;
    part.length = static_cast<std::uint32_t>(lesser(piece.length, left));
    piece.ring_offset += part.length;
    piece.stream_offset += part.length;
    piece.length -= part.length;
    return part;
  }
};

/// The length prefix of messages.
struct LengthPrefix {
  std::uint32_t offset = 0;          ///< Where the length field begins, from the message's first byte.
  std::uint32_t width = 4;           ///< Bytes of the length field, 1 to 8.
  std::uint32_t header_bytes = 4;    ///< Bytes before the body; offset + width or more, at most kHeaderMax.
  bool big_endian = true;            ///< The most significant byte first.
  bool counts_header = false;        ///< The length counts the header, too.
  std::uint64_t body_max = 1 << 30;  ///< A longer body is an error.

  static constexpr std::uint32_t kHeaderMax = 64;
};

/// Throws UsageError that names the value out of range.
void check(const LengthPrefix& prefix);

/// One message of a stream: a header, directly followed by a body.
struct Message {
  std::uint64_t begin = 0;  ///< Where its header begins in the stream.
  std::uint64_t body = 0;   ///< Where its body begins in the stream.
  std::uint64_t body_bytes = 0;
};

/// Cuts a stream into messages with a length prefix. The caller passes the stream's bytes in order, in parts of any
/// size; bodies are not read. Requires: check(prefix) has passed.
class MessageFraming {
 public:
  HEADRACE_HD explicit MessageFraming(const LengthPrefix& prefix) : prefix_(prefix) {}

  /// Where the next part must begin in the stream. Bytes below it belong to the previous body and may be skipped.
  [[nodiscard]] HEADRACE_HD std::uint64_t wanted() const { return begin_ + header_filled_; }
  /// True once a message was longer than body_max, or gave a length that counts the header and is shorter. No message
  /// follows, because the beginning of the next one is not known.
  [[nodiscard]] HEADRACE_HD bool failed() const { return failed_; }
  /// Where the message that failed, or else the next message, begins in the stream.
  [[nodiscard]] HEADRACE_HD std::uint64_t begin() const { return begin_; }
  /// The length that the failed message gave.
  [[nodiscard]] HEADRACE_HD std::uint64_t failed_length() const { return failed_length_; }

  /// Reads a part of the stream: `length` bytes at `bytes`, from stream offset `offset` on. Returns true and sets
  /// `message` if the next message's header ends in this part; call it with the same part until it returns false.
  /// Requires: offset <= wanted(). A part that ends before wanted() changes nothing.
  [[nodiscard]] HEADRACE_HD bool next(const std::byte* bytes, std::uint64_t offset, std::uint64_t length,
                                      Message& message) {
    while (!failed_ && wanted() - offset < length && header_filled_ < prefix_.header_bytes) {
      const std::byte byte = bytes[wanted() - offset];
      header_[header_filled_++] = byte;
    }
    if (failed_ || header_filled_ < prefix_.header_bytes) return false;
    std::uint64_t body = load_number(header_ + prefix_.offset, prefix_.width, prefix_.big_endian);
    const std::uint64_t less = prefix_.counts_header ? prefix_.header_bytes : 0;
    if (body < less || body - less > prefix_.body_max) {
      failed_ = true;
      failed_length_ = body;
      return false;
    }
    body -= less;
    message = {begin_, begin_ + prefix_.header_bytes, body};
    begin_ = message.body + body;
    header_filled_ = 0;
    return true;
  }

 private:
  LengthPrefix prefix_;
  std::uint64_t begin_ = 0;
  std::uint64_t failed_length_ = 0;
  std::uint32_t header_filled_ = 0;
  bool failed_ = false;
  std::byte header_[LengthPrefix::kHeaderMax] = {};
};

}  // namespace headrace::ingest
