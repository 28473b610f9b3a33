#include <algorithm>
#include <new>

#include "ingest/builder/builder_state.hpp"
#include "ingest/builder/convert_parts.hpp"

/// Turns pieces into parts of the gathering burst.
namespace headrace::ingest {

Status Builder::State::place(std::span<const Piece> pieces, std::uint64_t ring_end) noexcept {
  while (!pieces.empty()) {
    const Piece& piece = pieces.front();
    std::size_t count = place_in_target(pieces);
    if (count == 0) {
      if (const Status placed = place_one(piece); !placed) return placed;
      count = 1;
    }
    counters.pieces += count;
    counters.bytes += count * piece.length;
    pieces = pieces.subspan(count);
    if (gathered_bytes_ >= options.flush_bytes) {
      if (const Status submitted = submit(ring_end_); !submitted) return submitted;
    }
  }
  ring_end_ = ring_end;
  const bool waited_for = !full_.empty();  // a frame only needs its copies
  return waited_for || current_ - oldest_ < options.prompt_count ? submit(ring_end_) : Status{};
}

/// Checks the space of a whole piece first: a piece is placed whole or not at all.
bool Builder::State::has_space(FrameRing& frames, std::uint64_t offset, std::uint64_t end) const noexcept {
  const std::size_t frame_bytes = frames.options().frame_bytes;
  for (std::uint64_t number = offset / frame_bytes; number * frame_bytes < end; ++number) {
    const FrameRing::Place* const place = frames.fillable(number);
    const std::uint64_t start = number * frame_bytes;
    const std::size_t here = std::min(end, start + frame_bytes) - std::max(offset, start);
    if (place == nullptr || here > place->length - place->placed ||
        std::min(end, start + frame_bytes) - start > place->length) {
      return false;
    }
  }
  return true;
}

Status Builder::State::note(std::uint32_t stream, std::uint64_t offset, std::uint32_t length) noexcept {
  FrameRing* const frames = frames_of(stream);
  if (frames == nullptr || offset > ~std::uint64_t{0} - length || frames->options().conversion != Conversion::none ||
      !has_space(*frames, offset, offset + length)) {
    return Errc::invalid_argument;
  }
  const std::size_t frame_bytes = frames->options().frame_bytes;
  for (const std::uint64_t end = offset + length; offset < end;) {
    const std::uint64_t here = std::min(end, offset / frame_bytes * frame_bytes + frame_bytes) - offset;
    FrameRing::Place& place = frames->place_of(offset / frame_bytes);
    place.state.store(FrameState::filling, std::memory_order_release);
    place.placed += here;
    if (const Status noted = note_if_full(*frames, place); !noted) return noted;
    offset += here;
  }
  ++counters.pieces;
  counters.bytes += length;
  return full_.empty() ? Status{} : submit(ring_end_);
}

Status Builder::State::place_one(const Piece& piece) noexcept {
  if (piece.length == 0) return {};
  FrameRing* const frames = frames_of(piece.stream);
  if (frames == nullptr || piece.ring_offset > ring_bytes_ || piece.length > ring_bytes_ - piece.ring_offset ||
      piece.stream_offset > ~std::uint64_t{0} - piece.length) {
    return Errc::invalid_argument;
  }
  const std::size_t frame_bytes = frames->options().frame_bytes;
  if (!has_space(*frames, piece.stream_offset, piece.stream_offset + piece.length)) return Errc::invalid_argument;
  for (Piece left = piece; left.length > 0;) {
    const std::uint64_t start = left.stream_offset / frame_bytes * frame_bytes;
    Piece now = left;
    now.length =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(left.length, start + frame_bytes - left.stream_offset));
    if (const Status gathered = gather(*frames, frames->place_of(start / frame_bytes), now); !gathered) return gathered;
    left.ring_offset += now.length;
    left.stream_offset += now.length;
    left.length -= now.length;
  }
  return {};
}

/// The fast path for nearly all pieces: they are in the frame of the previous piece, do not fill it, and its list has
/// room. Places the first piece and those that continue it evenly. Returns how many; 0: the first needs place_one().
std::size_t Builder::State::place_in_target(std::span<const Piece> pieces) noexcept {
  const Target& target = target_;
  const Piece& piece = pieces.front();
  const std::uint64_t offset = piece.stream_offset - target.start;
  if (target.frames == nullptr || piece.stream != target.stream || piece.length == 0 ||
      target.place->placed + piece.length >= target.place->length || offset >= target.place->length ||
      piece.length > target.place->length - offset || piece.ring_offset > ring_bytes_ ||
      piece.length > ring_bytes_ - piece.ring_offset || target.list->room() < target.list->parts_max(piece.length) ||
      target.frames->options().conversion != Conversion::none) {
    return 0;
  }
  const std::size_t unfilled = target.place->length - target.place->placed - 1;
  const std::size_t unsubmitted =
      options.flush_bytes > gathered_bytes_ ? options.flush_bytes - gathered_bytes_ - 1 : 0;  // rounded up below
  const std::size_t most =
      std::min({std::size_t{unfilled / piece.length}, std::size_t{(target.place->length - offset) / piece.length},
                std::size_t{unsubmitted / piece.length + 1},
                std::size_t{target.list->room() / target.list->parts_max(piece.length)}});
  const EvenPieces run = even_pieces(pieces.first(std::min(pieces.size(), most)), ring_bytes_);
  push(run, offset);
  return run.count;
}

/// Adds pieces that are not converted to the target's list.
void Builder::State::push(const EvenPieces& run, std::size_t offset) noexcept {
  const std::size_t bytes = std::size_t{run.count} * run.first.length;
  target_.list->add({.to = target_.data + offset,
                     .from = ring_ + run.first.ring_offset,
                     .pitch = run.pitch,
                     .bytes = run.first.length,
                     .count = run.count});
  gathered_bytes_ += bytes;
  target_.place->placed += bytes;
  if (mirror_) mirror_->add(run);
}

/// Gathers a piece that lies within one frame.
Status Builder::State::gather(FrameRing& frames, FrameRing::Place& place, const Piece& piece) noexcept {
  const FrameOptions& of = frames.options();
  const std::uint64_t number = piece.stream_offset / of.frame_bytes;
  const std::size_t offset = piece.stream_offset % of.frame_bytes;
  const auto list = list_for(of.conversion, kOddPartsMax + piece.length / (kPartBytes / 2));
  if (!list) return list.error();
  if (const Status noted = note_seam(frames, place, offset); !noted) return noted;
  target_ = {&frames, &place, *list, frames.data_of(number), number * of.frame_bytes, piece.stream};
  place.state.store(FrameState::filling, std::memory_order_release);
  if (of.conversion == Conversion::none) {
    push({.first = piece}, offset);
  } else {
    for_each_converted_part(of.conversion, target_.data, offset, ring_ + piece.ring_offset, piece.length, kPartBytes,
                            [&](const Part& part) { (*list)->push(part); });
    gathered_bytes_ += piece.length;
    place.placed += piece.length;
    if (mirror_) mirror_->add({.first = piece});
  }
  return note_if_full(frames, place);
}

/// The list of the gathering burst for this conversion, with room for `parts` parts.
Result<PartList*> Builder::State::list_for(Conversion conversion, std::size_t parts) noexcept {
  const auto which =
      static_cast<std::size_t>(std::find(conversions_.begin(), conversions_.end(), conversion) - conversions_.begin());
  if (parts > options.list_parts) return Errc::invalid_argument;
  if (bursts_[current_ % bursts_.size()].lists[which].room() < parts) {
    if (const Status submitted = submit(ring_end_); !submitted) return submitted.error();
  }
  return &bursts_[current_ % bursts_.size()].lists[which];
}

/// A piece that begins within an item shares that item with the preceding piece, whichever comes first.
Status Builder::State::note_seam(FrameRing& frames, FrameRing::Place& place, std::uint64_t offset) noexcept {
  const Conversion conversion = frames.options().conversion;
  if (!to_float(conversion) || offset % item_bytes(conversion) == 0) return {};
  try {
    place.seams.push_back(static_cast<std::uint32_t>(offset / item_bytes(conversion)));
  } catch (const std::bad_alloc&) {
    return Errc::out_of_memory;
  }
  return {};
}

Status Builder::State::note_if_full(FrameRing& frames, FrameRing::Place& place) noexcept {
  if (place.placed < place.length) return {};
  full_.push_back({&frames, &place});  // there is room for every frame
  return {};
}

}  // namespace headrace::ingest
