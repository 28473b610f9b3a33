#include "headrace/ingest/messages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/error.hpp"

namespace headrace::ingest {

namespace {

constexpr std::size_t kCopyBytes = 16 * kKiB;

std::uint64_t end_of(const Frame& frame) noexcept { return frame.stream_offset + frame.bytes; }

/// Lowers the limit to what frames have room for: a message may begin anywhere in the first one.
LengthPrefix checked(LengthPrefix prefix, const FrameOptions& frames) {
  check(prefix);
  if (frames.conversion != Conversion::none) {
    throw UsageError("message boundaries cannot be found in converted frames");
  }
  const std::uint64_t room = std::uint64_t{frames.frame_bytes} * (frames.frame_count - 1);
  if (room < prefix.header_bytes) {
    throw UsageError(
        fmt::format("the frames have room for messages of {} bytes, which is less than a header of {} bytes", room,
                    prefix.header_bytes));
  }
  prefix.body_max = std::min(prefix.body_max, room - prefix.header_bytes);
  return prefix;
}

}  // namespace

MessageReader::MessageReader(const LengthPrefix& prefix, const FrameRing& frames)
    : device_(frames.device()),
      prefix_(checked(prefix, frames.options())),
      framing_(prefix_),
      readable_(device_.properties().host_memory || host_accessible(frames.options().kind)) {
  if (readable_) return;
  stream_.emplace(device_);
  copied_ = Buffer(device_, MemoryKind::pinned, kCopyBytes);
}

void MessageReader::add(std::shared_ptr<HeldFrame> frame) {
  const Frame& added = frame->frame();
  if (added.stream_offset > end_) {
    throw UsageError(
        fmt::format("messages have been read up to byte {}, but the frame begins at byte {}; add frames without gaps",
                    end_, added.stream_offset));
  }
  if (added.missing_bytes != 0) {
    throw DataError(fmt::format("frame {} lacks {} bytes, so message boundaries cannot be found", added.number,
                                added.missing_bytes));
  }
  if (end_of(added) <= end_) return;
  while (!frames_.empty() && frames_.back()->frame().stream_offset >= added.stream_offset) frames_.pop_back();
  end_ = end_of(added);
  frames_.push_back(std::move(frame));
}

/// Bytes of the stream from `offset` on, as many as lie together and the host can read. Requires: offset < end_.
std::span<const std::byte> MessageReader::window(std::uint64_t offset) {
  const auto holds = [&](const auto& held) { return offset < end_of(held->frame()); };
  const Frame& frame = (*std::find_if(frames_.begin(), frames_.end(), holds))->frame();
  const std::byte* const from = frame.data + (offset - frame.stream_offset);
  const auto left = static_cast<std::size_t>(end_of(frame) - offset);
  if (readable_) return {from, left};
  if (offset < copied_offset_ || offset >= copied_offset_ + copied_bytes_) {
    copied_bytes_ = 0;
    const std::size_t bytes = std::min(left, kCopyBytes);
    stream_->copy(copied_.data(), from, bytes).or_throw("reading the headers of messages");
    stream_->wait().or_throw("reading the headers of messages");
    copied_offset_ = offset;
    copied_bytes_ = bytes;
  }
  const auto begin = static_cast<std::size_t>(offset - copied_offset_);
  return {copied_.data() + begin, copied_bytes_ - begin};
}

std::optional<FramedMessage> MessageReader::next() {
  while (!found_ && !framing_.failed() && framing_.wanted() < end_) {
    const std::uint64_t offset = framing_.wanted();
    const auto bytes = window(offset);
    Message message;
    if (framing_.next(bytes.data(), offset, bytes.size(), message)) found_ = message;
  }
  if (found_) {
    if (found_->body + found_->body_bytes > end_) return {};
    return take();
  }
  if (framing_.failed()) {
    throw DataError(
        fmt::format("the message at byte {} gives its length as {} bytes, which exceeds the limit of {} or is "
                    "less than its header",
                    framing_.begin(), framing_.failed_length(), prefix_.body_max));
  }
  drop_frames(framing_.wanted());  // the header's first bytes are kept by themselves
  return {};
}

FramedMessage MessageReader::take() {
  FramedMessage made{.message = *found_, .body = {}};
  const std::uint64_t end = found_->body + found_->body_bytes;
  std::uint64_t from = found_->body;
  for (const auto& held : frames_) {
    const Frame& frame = held->frame();
    const std::uint64_t to = std::min(end, end_of(frame));
    if (from >= to) continue;
    made.body.push_back({.frame = held,
                         .offset = static_cast<std::size_t>(from - frame.stream_offset),
                         .bytes = static_cast<std::size_t>(to - from)});
    from = to;
  }
  found_.reset();
  taken_ = end;
  drop_frames(end);
  return made;
}

void MessageReader::drop_frames(std::uint64_t before) {
  while (!frames_.empty() && end_of(frames_.front()->frame()) <= before) frames_.pop_front();
}

}  // namespace headrace::ingest
