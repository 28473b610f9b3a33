#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

#include "headrace/base/error.hpp"
#include "headrace/ingest/follow.hpp"
#include "ingest/deadline.hpp"
#include "ingest/intake.hpp"

namespace headrace::ingest {

namespace {

class FollowIntake final : public HostIntake {
 public:
  FollowIntake(const IntakeParts& parts, FollowSource& source) : HostIntake(parts), source_(source) {}

  /// None while events wait for space: those come first.
  [[nodiscard]] std::size_t room(std::size_t most) const override { return source_.followed().empty() ? most : 0; }

  void take(std::span<const Packet> /*packets*/, std::uint64_t /*before*/, std::uint64_t /*now*/) override {}

  void act(std::uint64_t /*now*/, bool /*drained*/) override {
    std::deque<Followed>& followed = source_.followed();
    while (!followed.empty() && deal_with(followed.front())) {
      ring_end_ = followed.front().ring_end;
      followed.pop_front();
    }
    place();
  }

  [[nodiscard]] std::uint64_t next_deadline() const override { return kNever; }

  void obey(StreamRequest request, std::uint64_t /*now*/) override {
    if (request.kind != StreamRequest::Kind::reset) return;  // the receiver refuses the others
    const auto found = open_.find(request.stream);
    if (found == open_.end()) return;
    cut(found->first, found->second);
    found->second.unwanted = true;
  }

  void end(std::uint64_t /*now*/) override {
    place();
    for (auto& [number, stream] : open_) {
      if (!stream.unwanted) cut(number, stream);
    }
    open_.clear();
    wait();
  }

  void count(ReceiverCounters& counters) const override {
    counters.follow = source_.follow_counters();
    counters.fragments = source_.fragment_counters();
  }

 private:
  /// A stream that has not ended.
  struct Open {
    Flow flow{};
    std::uint64_t end = 0;     ///< Stream offset up to which the builder has its bytes.
    std::uint64_t frames = 0;  ///< Frames that it had before it last rested.
    std::uint64_t used = 0;    ///< When the builder last got bytes of it, as a count of uses_.
    bool unwanted = false;     ///< The consumer has cut it.
  };

  /// False if it has to wait for space.
  [[nodiscard]] bool deal_with(Followed& next) {
    if (next.kind != Followed::Kind::bytes && next.kind != Followed::Kind::missing) {
      end_stream(next);
      return true;
    }
    const auto known = open_.find(next.stream);
    if (known != open_.end() && known->second.unwanted) return true;
    const auto place = place_of(next);
    return place && give(*place, open_.at(next.stream), next);
  }

  /// Gives the builder what there is space for. True if that is all.
  [[nodiscard]] bool give(std::uint32_t place, Open& stream, Followed& next) {
    const StreamTable::Stream& entry = parts_.streams.places()[place];
    const std::uint64_t offset = next.offset - entry.base;
    const std::uint64_t length = std::min(next.length, entry.frames->reserved_end() - offset);
    if (length == 0) return false;
    pieces_.push_back({.ring_offset = next.ring_offset,
                       .stream_offset = offset,
                       .length = static_cast<std::uint32_t>(length),
                       .stream = place});
    if (next.kind == Followed::Kind::missing) {
      parts_.streams.note_missing(place, {next.offset, next.offset + length});
    }
    stream.end = next.offset + length;
    stream.used = ++uses_;
    next.offset += length;
    next.ring_offset += length;
    next.length -= length;
    return next.length == 0;
  }

  /// The place of a stream, which gets frames if it has none; empty if it has to wait for them.
  [[nodiscard]] std::optional<std::uint32_t> place_of(const Followed& next) {
    if (const auto place = parts_.streams.find(next.stream)) {
      return parts_.streams.places()[*place].end ? std::nullopt : place;  // it rests, but has frames to be delivered
    }
    const auto known = open_.find(next.stream);
    const bool opened = known == open_.end()
                            ? parts_.streams.open(next.stream, 0, next.flow)
                            : parts_.streams.resume(next.stream, next.flow, next.offset, known->second.frames);
    if (opened) {
      if (known == open_.end()) open_[next.stream].flow = next.flow;
      return parts_.streams.find(next.stream);
    }
    make_place();
    return {};
  }

  /// Lets the least recently used stream rest, unless frames become free without that.
  void make_place() {
    if (parts_.streams.waits_for_consumer()) return;
    const Open* least = nullptr;
    std::uint32_t which = 0;
    const auto places = parts_.streams.places();
    for (std::uint32_t i = 0; i < places.size(); ++i) {
      if (!places[i].frames) continue;
      if (places[i].end) return;  // its frames become free soon
      const Open& stream = open_.at(places[i].number);
      if (least == nullptr || stream.used < least->used) {
        least = &stream;
        which = i;
      }
    }
    if (least == nullptr) return;
    const FrameOptions& frames = parts_.streams.frame_options();
    if (frames.conversion != Conversion::none) {
      throw DeviceError(
          Errc::out_of_memory,
          fmt::format("more than {} TCP streams are open at once, and converted frames cannot be cut short to "
                      "make room for others; allow more streams to have frames",
                      parts_.streams.open_count()));
    }
    Open& stream = open_.at(places[which].number);
    place();
    stream.frames += (stream.end - places[which].base + frames.frame_bytes - 1) / frames.frame_bytes;
    parts_.streams.rest(which, stream.end);
  }

  void end_stream(const Followed& last) {
    const auto found = open_.find(last.stream);
    if (found == open_.end()) return;
    if (!found->second.unwanted) {
      const StreamEnd why = last.kind == Followed::Kind::finished
                                ? StreamEnd::finished
                                : (last.kind == Followed::Kind::reset ? StreamEnd::reset : StreamEnd::cut);
      end_at(last.stream, found->second, why, last.offset);
    }
    open_.erase(found);
  }

  void cut(std::uint32_t number, const Open& stream) { end_at(number, stream, StreamEnd::cut, stream.end); }

  void end_at(std::uint32_t number, const Open& stream, StreamEnd why, std::uint64_t offset) {
    place();
    const auto place = parts_.streams.find(number);
    if (!place) return parts_.streams.end_resting(number, stream.flow, why, offset);
    StreamTable::Stream& entry = parts_.streams.places()[*place];
    entry.cut = why == StreamEnd::cut;
    if (entry.rests) {  // its frames have not all been delivered
      entry.rests = false;
      entry.end = why;
      return;
    }
    parts_.streams.end(*place, why == StreamEnd::finished ? StreamEvent::finished : StreamEvent::reset, offset);
  }

  void place() {
    parts_.builder->place(pieces_, ring_end_).or_throw("placing TCP payloads");
    pieces_.clear();
  }

  FollowSource& source_;
  std::unordered_map<std::uint32_t, Open> open_;
  std::vector<Piece> pieces_;
  std::uint64_t ring_end_ = 0;  ///< Everything in slots before this position has been processed.
  std::uint64_t uses_ = 0;
};

}  // namespace

std::unique_ptr<Intake> make_follow_intake(const IntakeParts& parts, FollowSource& source) {
  return std::make_unique<FollowIntake>(parts, source);
}

}  // namespace headrace::ingest
