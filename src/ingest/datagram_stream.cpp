#include "ingest/datagram_stream.hpp"

#include <algorithm>

namespace headrace::ingest {

DatagramStream::DatagramStream(const Flow& from, const DatagramConfig& config, std::uint32_t frame_count,
                               std::uint32_t stream)
    : sender(from),
      number(stream),
      config_(config),
      presence_frames_(frame_count + config.window_frames + 1),
      frame_count_(frame_count),
      memory_(Device::parse("cpu"), MemoryKind::pageable, datagram_state_bytes(config, presence_frames_)) {
  begin_anew(stream);
}

void DatagramStream::begin_anew(std::uint32_t stream) {
  number = stream;
  place.reset();
  view_ = make_datagram_state(memory_.data(), config_, presence_frames_);
  view_.shared->frame_limit = frame_count_;
}

std::optional<std::uint64_t> DatagramStream::oldest_position() const noexcept {
  std::optional<std::uint64_t> oldest;
  if (view_.shared->suspect.valid) oldest = suspect_position;
  if (!waiting.empty()) oldest = std::min(oldest.value_or(waiting.front().position), waiting.front().position);
  return oldest;
}

}  // namespace headrace::ingest
