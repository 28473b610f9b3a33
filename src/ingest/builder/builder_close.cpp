#include <algorithm>
#include <new>

#include "headrace/base/detail/bytes.hpp"
#include "ingest/builder/builder_state.hpp"
#include "ingest/builder/convert_parts.hpp"

/// The end of a frame that packets have not filled: bytes that no packet wrote become zero, and no others change.
namespace headrace::ingest {

namespace {

/// Runs of this length or more are filled by the device; shorter ones are copies of zeros among those of payloads.
constexpr std::size_t kFillMin = 64 * kKiB;

/// Calls `emit(begin, stop)` for each run of bytes of a frame that no packet wrote, in order, and returns the bytes of
/// packets that never came. A presence word whose packets all came, and are whole, is skipped at once.
template <class Emit>
std::size_t for_each_unwritten(const FrameEnd& end, Emit emit) {
  const std::size_t packets = (end.bytes + end.packet_bytes - 1) / end.packet_bytes;
  std::size_t begin = 0;
  std::size_t stop = 0;
  std::size_t missing = 0;
  for (std::size_t i = 0; i < packets; ++i) {
    const std::uint64_t word = i / 64 < end.presence.size() ? end.presence[i / 64] : 0;
    if (i % 64 == 0 && word == ~std::uint64_t{0} && end.lengths.empty() && packets - i > 64) {
      i += 63;
      continue;
    }
    const std::size_t from = i * end.packet_bytes;
    const std::size_t to = std::min<std::size_t>(from + end.packet_bytes, end.bytes);
    const bool came = (word >> (i % 64) & 1) != 0;
    const std::size_t brought = !came ? 0 : end.lengths.empty() ? end.packet_bytes : end.lengths[i];
    if (!came) missing += to - from;
    if (from + brought >= to) continue;
    if (from + brought != stop) {
      if (begin < stop) emit(begin, stop);
      begin = from + brought;
    }
    stop = to;
  }
  if (begin < stop) emit(begin, stop);
  return missing;
}

}  // namespace

Status Builder::State::close(std::uint32_t stream, std::uint64_t frame, const FrameEnd& end) noexcept {
  FrameRing* const frames = frames_of(stream);
  FrameRing::Place* const place = frames == nullptr ? nullptr : frames->fillable(frame);
  const std::size_t packets = end.packet_bytes == 0 ? 0 : (end.bytes + end.packet_bytes - 1) / end.packet_bytes;
  if (place == nullptr || place->placed == place->length || end.packet_bytes == 0 || end.bytes > place->length ||
      place->placed > end.bytes || (!end.lengths.empty() && end.lengths.size() < packets)) {
    return Errc::invalid_argument;
  }
  std::size_t unwritten = 0;
  place->missing = for_each_unwritten(end, [&](std::size_t begin, std::size_t stop) { unwritten += stop - begin; });
  if (end.bytes - unwritten != place->placed) return Errc::invalid_argument;
  target_ = {};
  place->length = end.bytes;
  if (const Status cleared = clear_unwritten(*frames, *place, end); !cleared) return cleared;
  full_.push_back({frames, place});
  return flush();
}

Status Builder::State::clear_unwritten(FrameRing& frames, FrameRing::Place& place, const FrameEnd& end) noexcept {
  Status status;
  for_each_unwritten(end, [&](std::size_t begin, std::size_t stop) {
    if (status) status = clear(frames, place, begin, stop);
  });
  if (!status) return status;
  const std::size_t packets = (end.bytes + end.packet_bytes - 1) / end.packet_bytes;
  try {
    if (place.missing != 0) {
      const std::size_t words = std::min<std::size_t>((packets + 63) / 64, end.presence.size());
      place.presence.assign(end.presence.begin(), end.presence.begin() + static_cast<std::ptrdiff_t>(words));
      place.presence.resize((packets + 63) / 64, 0);
    }
    if (!end.lengths.empty()) {
      place.lengths.resize(packets);
      for (std::size_t i = 0; i < packets; ++i) {
        const bool came = i / 64 < end.presence.size() && (end.presence[i / 64] >> (i % 64) & 1) != 0;
        place.lengths[i] = came ? end.lengths[i] : std::uint16_t{0};
      }
    }
  } catch (const std::bad_alloc&) {
    return Errc::out_of_memory;
  }
  return {};
}

/// Zeroes bytes [begin, stop) of the frame's part of the stream.
Status Builder::State::clear(FrameRing& frames, FrameRing::Place& place, std::size_t begin, std::size_t stop) noexcept {
  const Conversion conversion = frames.options().conversion;
  std::byte* const data = frames.data_of(place.number.load(std::memory_order_relaxed));
  if (conversion == Conversion::none && stop - begin >= kFillMin) {
    filled_ = true;
    return stream().fill(data + begin, 0, stop - begin);
  }
  for (; begin < stop; begin += std::min(stop - begin, kZeroRun)) {
    const std::size_t bytes = std::min(stop - begin, kZeroRun);
    const auto list = list_for(conversion, kOddPartsMax + bytes / (kPartBytes / 2));
    if (!list) return list.error();
    if (const Status noted = note_seam(frames, place, begin); !noted) return noted;
    if (conversion == Conversion::none) {
      (*list)->add({.to = data + begin,
                    .from = zeros_.data(),
                    .pitch = 0,
                    .bytes = static_cast<std::uint32_t>(bytes),
                    .count = 1});
    } else {
      for_each_converted_part(conversion, data, begin, zeros_.data(), bytes, kPartBytes,
                              [&](const Part& part) { (*list)->push(part); });
    }
    gathered_bytes_ += bytes;
  }
  return {};
}

}  // namespace headrace::ingest
