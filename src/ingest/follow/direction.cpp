#include "ingest/follow/direction.hpp"

#include <algorithm>
#include <utility>

namespace headrace::ingest {

namespace {

constexpr std::size_t kLostMost = 64;

}  // namespace

void FollowedDirection::begin(std::uint32_t sequence, bool by_syn, bool has_payload) noexcept {
  base_ = sequence;
  known_ = true;
  has_syn_ = by_syn;
  provisional_ = !by_syn && !has_payload;
}

void FollowedDirection::acknowledge(std::uint32_t sequence) noexcept {
  const std::int64_t offset = offset_of(sequence);
  if (offset < 0) return;
  if (provisional_ && is_untouched() && offset == 1) {  // the first segment was a keep-alive, one byte back
    ++base_;
    provisional_ = false;
    return;
  }
  acknowledged_ = std::max(acknowledged_, static_cast<std::uint64_t>(offset));
}

FollowedDirection::Taken FollowedDirection::take(std::uint32_t sequence, std::span<const std::byte> payload,
                                                 std::uint32_t length, Bytes& to) {
  Taken taken;
  if (provisional_ && is_untouched() && serial_before(sequence, base_)) base_ = sequence;
  provisional_ = false;
  const std::int64_t start = offset_of(sequence);
  std::uint64_t begin = next_;
  if (start > static_cast<std::int64_t>(next_)) {
    begin = static_cast<std::uint64_t>(start);
    taken.ahead = true;
  } else {
    const auto old = static_cast<std::uint64_t>(static_cast<std::int64_t>(next_) - start);
    taken.duplicate = std::min<std::uint64_t>(old, payload.size());
    const auto from = static_cast<std::uint64_t>(std::max<std::int64_t>(start, 0));
    taken.late = lost_within(from, std::min(next_, from + taken.duplicate));
    payload = payload.subspan(static_cast<std::size_t>(taken.duplicate));
    if (old >= length) return taken;
  }
  if (finish_) {  // there are no bytes after FIN
    const std::uint64_t room = *finish_ > begin ? *finish_ - begin : 0;
    payload = payload.first(static_cast<std::size_t>(std::min<std::uint64_t>(room, payload.size())));
  }
  if (payload.empty()) return taken;
  if (taken.ahead) {
    taken.fresh = hold(begin, payload);
  } else {
    const std::uint64_t before = next_;
    const std::uint64_t held_before = held_bytes_;
    extend(payload, to);
    taken.fresh = next_ - before - (held_before - held_bytes_);
  }
  taken.duplicate += payload.size() - taken.fresh;
  return taken;
}

/// Takes payload that begins at next_. Held bytes take precedence over the same bytes of the payload.
void FollowedDirection::extend(std::span<const std::byte> payload, Bytes& to) {
  while (!payload.empty()) {
    const std::uint64_t end = next_ + payload.size();
    const std::uint64_t stop = held_.empty() ? end : std::min(end, held_.begin()->first);
    const auto count = static_cast<std::size_t>(stop - next_);
    to.insert(to.end(), payload.begin(), payload.begin() + static_cast<std::ptrdiff_t>(count));
    next_ = stop;
    const std::uint64_t before = next_;
    join(to);
    payload = payload.subspan(std::min(payload.size(), count + static_cast<std::size_t>(next_ - before)));
  }
}

/// Takes held bytes that begin at next_.
void FollowedDirection::join(Bytes& to) {
  while (!held_.empty() && held_.begin()->first == next_) {
    const Bytes& bytes = held_.begin()->second;
    to.insert(to.end(), bytes.begin(), bytes.end());
    next_ += bytes.size();
    held_bytes_ -= bytes.size();
    held_.erase(held_.begin());
  }
}

/// Holds the bytes that are not held yet, and returns how many.
std::uint64_t FollowedDirection::hold(std::uint64_t begin, std::span<const std::byte> payload) {
  const std::uint64_t end = begin + payload.size();
  std::uint64_t fresh = 0;
  auto above = held_.upper_bound(begin);
  std::uint64_t at = begin;
  if (above != held_.begin()) {
    const auto below = std::prev(above);
    at = std::max(at, below->first + below->second.size());
  }
  while (at < end) {
    const std::uint64_t stop = above == held_.end() ? end : std::min(end, above->first);
    if (stop > at) {
      const auto part = payload.subspan(static_cast<std::size_t>(at - begin), static_cast<std::size_t>(stop - at));
      held_.emplace_hint(above, at, Bytes(part.begin(), part.end()));
      fresh += part.size();
    }
    if (above == held_.end()) break;
    at = above->first + above->second.size();
    ++above;
  }
  held_bytes_ += fresh;
  return fresh;
}

void FollowedDirection::finish_at(std::uint32_t sequence) noexcept {
  const std::int64_t offset = offset_of(sequence);
  if (offset < static_cast<std::int64_t>(next_)) return;
  const auto end = static_cast<std::uint64_t>(offset);
  if (finish_ && *finish_ <= end) return;
  if (!held_.empty() && held_.rbegin()->first + held_.rbegin()->second.size() > end)
    return;  // there are bytes beyond it
  finish_ = end;
}

void FollowedDirection::give_up(std::uint64_t end, Bytes& to) {
  if (!lost_.empty() && lost_.back().end == next_) {
    lost_.back().end = end;
  } else {
    if (lost_.size() == kLostMost) lost_.pop_front();
    lost_.push_back({next_, end});
  }
  next_ = end;
  join(to);
}

std::uint64_t FollowedDirection::drop_held() noexcept {
  held_.clear();
  return std::exchange(held_bytes_, 0);
}

std::uint64_t FollowedDirection::lost_within(std::uint64_t begin, std::uint64_t end) const noexcept {
  std::uint64_t bytes = 0;
  for (const Lost& lost : lost_) {
    const std::uint64_t from = std::max(begin, lost.begin);
    const std::uint64_t to = std::min(end, lost.end);
    if (to > from) bytes += to - from;
  }
  return bytes;
}

}  // namespace headrace::ingest
