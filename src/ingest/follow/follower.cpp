#include "ingest/follow/follower.hpp"

#include <algorithm>
#include <random>
#include <utility>

#include "ingest/require.hpp"

namespace headrace::ingest {

namespace {

constexpr std::size_t kChunk = 64 * kKiB;
/// A larger gap without an acknowledgement more likely comes from a stray segment.
constexpr std::uint64_t kUnprovenMost = 16 * kMiB;

[[nodiscard]] HashKey draw_key() {
  std::random_device device;
  const auto word = [&] { return std::uint64_t{device()} << 32 | device(); };
  return {{word(), word()}};
}

[[nodiscard]] Flow reversed(const Flow& flow) noexcept {
  Flow made = flow;
  std::swap(made.remote, made.local);
  std::swap(made.remote_port, made.local_port);
  return made;
}

}  // namespace

Follower::Follower(const FollowOptions& options) : options_(options), by_key_(16, Hash{draw_key()}) {
  require(options.hold_bytes >= kMiB, "following TCP", "hold_bytes", options.hold_bytes, "1 MiB or more");
  require(options.connections_max >= 1, "following TCP", "connections_max", options.connections_max, "1 or more");
}

Follower::Key Follower::key_of(const Flow& flow) noexcept {
  Key one{};
  Key other{};
  flow.words(one.words);
  reversed(flow).words(other.words);
  return std::lexicographical_compare(std::begin(one.words), std::end(one.words), std::begin(other.words),
                                      std::end(other.words))
             ? one
             : other;
}

void Follower::take(const FollowedSegment& segment) {
  now_ = std::max(now_, segment.time_ns);
  run_out_of_time();
  if (options_.port != 0 && segment.flow.remote_port != options_.port && segment.flow.local_port != options_.port) {
    ++counters_.other;
    return;
  }
  ++counters_.segments;
  counters_.cut_bytes += segment.length - segment.payload.size();
  Connection& connection = connection_of(segment);
  const std::size_t which = side_of(connection, segment.flow);
  Side& from = connection.sides[which];
  Side& to = connection.sides[1 - which];
  connection.last_ns = now_;
  if (segment.has(tcp_flag::kAck) && to.direction.known() && !to.over) {
    to.direction.acknowledge(segment.acknowledgement);
  }
  if (segment.has(tcp_flag::kRst)) {  // its payload, if any, is only a reason: RFC 9293 3.5.3
    connection.reset = true;
  } else {
    take_payload(connection, from, segment);
  }
  let_time_run(connection);
  keep_within_memory();
}

/// True if a SYN begins another connection between the same ports. It does unless it is a SYN that was already seen.
bool Follower::begins_anew(const Connection& connection, const FollowedSegment& segment) noexcept {
  const std::size_t which = side_of(connection, segment.flow);
  const FollowedDirection& own = connection.sides[which].direction;
  const FollowedDirection& other = connection.sides[1 - which].direction;
  const bool answers =
      segment.has(tcp_flag::kAck) && other.has_syn() && other.base() == segment.acknowledgement;  // this SYN's peer
  if (own.known()) return own.base() != segment.sequence && !(answers && own.is_untouched());
  if (connection.over()) return true;
  return !segment.has(tcp_flag::kAck) && other.known() && !other.has_syn() && !other.is_untouched();
}

Follower::Connection& Follower::connection_of(const FollowedSegment& segment) {
  const Key key = key_of(segment.flow);
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return add(key, segment);
  if (segment.has(tcp_flag::kSyn) && begins_anew(*found->second, segment)) {
    end_connection(*found->second);
    connections_.erase(found->second);
    by_key_.erase(found);
    return add(key, segment);
  }
  connections_.splice(connections_.end(), connections_, found->second);
  return *found->second;
}

Follower::Connection& Follower::add(const Key& key, const FollowedSegment& segment) {
  if (connections_.size() >= options_.connections_max) {
    Connection& oldest = connections_.front();
    if (!oldest.over()) ++counters_.forgotten;
    end_connection(oldest);
    by_key_.erase(oldest.key);
    connections_.pop_front();
  }
  Connection& made = connections_.emplace_back();
  made.key = key;
  made.id = next_id_++;
  made.sides[0].flow = segment.flow;
  made.sides[1].flow = reversed(segment.flow);
  by_key_[key] = std::prev(connections_.end());
  ++counters_.connections;
  if (!segment.has(tcp_flag::kSyn)) ++counters_.under_way;
  return made;
}

void Follower::take_payload(Connection& connection, Side& side, const FollowedSegment& segment) {
  FollowedDirection& direction = side.direction;
  const bool syn = segment.has(tcp_flag::kSyn);
  const bool fin = segment.has(tcp_flag::kFin);
  const bool replaces = direction.known() && syn && direction.is_untouched() && direction.base() != segment.sequence;
  if (replaces) {  // segments before SYN that brought no byte belong to another connection, a FIN included
    direction = {};
    side.over = false;
  }
  if (!direction.known()) {
    direction.begin(segment.sequence, syn, segment.length != 0 || fin);
  }
  if (segment.length == 0 && !fin) return;
  const std::uint64_t before = memory_of(side);
  const auto taken = direction.take(segment.sequence, segment.payload, segment.length, side.gathered);
  if (side.over) {
    counters_.late_bytes += taken.fresh;
    side.gathered.clear();
    direction.drop_held();
    return;
  }
  count(segment, taken);
  if (fin) direction.finish_at(segment.sequence + segment.length);
  settle(side, before);
  if (side.gathered.size() >= kChunk) give_out(side);
  if (direction.finished()) end_side(connection, side);
}

void Follower::count(const FollowedSegment& segment, const FollowedDirection::Taken& taken) {
  counters_.bytes += taken.fresh;
  counters_.duplicate_bytes += taken.duplicate - taken.late;
  counters_.late_bytes += taken.late;
  if (segment.length != 0 && taken.fresh == 0) {
    ++counters_.duplicates;
  } else if (taken.ahead) {
    ++counters_.out_of_order;
  }
}

/// Updates memory_ and the lists for a side that took `before` bytes of memory.
void Follower::settle(Side& side, std::uint64_t before) {
  memory_ += memory_of(side) - before;
  list(gathering_, side.gathering, side, !side.gathered.empty());
  list(waiting_, side.waiting, side, side.direction.has_gap());
}

void Follower::list(Sides& sides, Listed& place, Side& side, bool is) {
  if (is == place.is) return;
  place.is = is;
  if (is) {
    place.at = sides.insert(sides.end(), &side);
  } else {
    sides.erase(place.at);
  }
}

/// Starts the timer after which acknowledged gaps are given up and a reset connection ends.
void Follower::let_time_run(Connection& connection) {
  if (connection.due) return;
  bool any = connection.reset && !connection.over();
  for (Side& side : connection.sides) {
    if (side.over || !side.direction.has_gap()) continue;
    side.wanted = side.direction.acknowledged();
    any = any || side.wanted >= side.direction.gap_end();
  }
  if (!any) return;
  connection.due = true;
  due_.push_back({now_ + static_cast<std::uint64_t>(options_.patience.count()), connection.key, connection.id});
}

void Follower::run_out_of_time() {
  while (!due_.empty() && due_.front().at <= now_) {
    const Due due = due_.front();
    due_.pop_front();
    const auto found = by_key_.find(due.key);
    if (found == by_key_.end() || found->second->id != due.id) continue;
    Connection& connection = *found->second;
    connection.due = false;
    for (Side& side : connection.sides) give_up_acknowledged(side);
    const auto patience = static_cast<std::uint64_t>(options_.patience.count());
    if (connection.reset && now_ - connection.last_ns >= patience) end_connection(connection);
    let_time_run(connection);
  }
}

void Follower::give_up_acknowledged(Side& side) {
  while (!side.over && side.direction.has_gap() && side.direction.gap_end() <= side.wanted) {
    give_up(side, side.direction.gap_end());
  }
}

void Follower::keep_within_memory() {
  while (memory_ > options_.hold_bytes) {
    if (!gathering_.empty()) {
      give_out(*gathering_.front());
      continue;
    }
    Side& side = *waiting_.front();
    ++counters_.given_up;
    give_up(side, side.direction.gap_end());
  }
}

/// Gives out the bytes up to `end` as missing.
void Follower::give_up(Side& side, std::uint64_t end) {
  give_out(side);
  const std::uint64_t length = end - side.direction.next();
  put(side, Followed::Kind::missing, length);
  ++counters_.gaps;
  counters_.missing_bytes += length;
  side.given = end;
  const std::uint64_t before = memory_of(side);
  side.direction.give_up(end, side.gathered);
  list(waiting_, side.waiting, side, false);  // the next gap is a newer one
  settle(side, before);
  if (side.gathered.size() >= kChunk) give_out(side);
}

void Follower::give_out(Side& side) {
  if (side.gathered.empty()) return;
  memory_ -= side.gathered.size();
  const std::uint64_t length = side.gathered.size();
  put(side, Followed::Kind::bytes, length, std::exchange(side.gathered, {}));
  side.given += length;
  list(gathering_, side.gathering, side, false);
}

void Follower::put(Side& side, Followed::Kind kind, std::uint64_t length, Bytes bytes) {
  if (!side.stream) {
    side.stream = next_stream_++;
    ++counters_.streams;
  }
  items_.push_back({.kind = kind,
                    .stream = *side.stream,
                    .flow = side.flow,
                    .offset = side.given,
                    .length = length,
                    .bytes = std::move(bytes)});
}

/// Gives out all bytes of a side, with gaps for those that are missing, and ends it.
void Follower::end_side(const Connection& connection, Side& side) {
  if (side.over) return;
  FollowedDirection& direction = side.direction;
  while (direction.has_gap()) {
    const bool proven =
        direction.acknowledged() >= direction.gap_end() || direction.gap_end() - direction.next() <= kUnprovenMost;
    if (!proven) {
      const std::uint64_t before = memory_of(side);
      const std::uint64_t dropped = direction.drop_held();
      counters_.unproven_bytes += dropped;
      counters_.bytes -= dropped;
      settle(side, before);
      break;
    }
    give_up(side, direction.gap_end());
  }
  const std::uint64_t end = direction.finish().value_or(direction.acknowledged());
  const std::uint64_t missing = end > direction.next() ? end - direction.next() : 0;
  const bool may_be_fin = !direction.finish() && missing == 1;
  if (missing != 0 && !may_be_fin && (direction.acknowledged() >= end || missing <= kUnprovenMost)) give_up(side, end);
  give_out(side);
  side.over = true;
  if (!side.stream) return;
  put(side,
      direction.finished() ? Followed::Kind::finished
                           : (connection.reset ? Followed::Kind::reset : Followed::Kind::cut),
      0);
}

void Follower::end_connection(Connection& connection) {
  for (Side& side : connection.sides) end_side(connection, side);
}

void Follower::flush() {
  while (!gathering_.empty()) give_out(*gathering_.front());
}

void Follower::end() {
  for (Connection& connection : connections_) end_connection(connection);
}

}  // namespace headrace::ingest
