#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <optional>
#include <unordered_map>
#include <vector>

#include "headrace/ingest/detail/siphash.hpp"
#include "headrace/ingest/follow.hpp"
#include "ingest/follow/direction.hpp"
#include "ingest/follow/segment.hpp"

namespace headrace::ingest {

/// Follows TCP connections. It takes segments in the order of the capture and gives out chunks of streams, those of
/// each stream in order. It holds bytes behind a gap until the gap is filled or given up. May throw std::bad_alloc.
class Follower {
 public:
  using Bytes = FollowedDirection::Bytes;
  /// A Followed event with its bytes.
  struct Item {
    Followed::Kind kind = Followed::Kind::bytes;
    std::uint32_t stream = 0;
    Flow flow{};
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
    Bytes bytes{};
  };

  /// Throws UsageError for options out of range.
  explicit Follower(const FollowOptions& options);

  void take(const FollowedSegment& segment);
  /// Gives out chunks that are not full.
  void flush();
  /// Ends all streams, since no segment will come.
  void end();
  /// The items given out, for the caller to remove.
  [[nodiscard]] std::deque<Item>& items() noexcept { return items_; }
  [[nodiscard]] const std::deque<Item>& items() const noexcept { return items_; }
  [[nodiscard]] FollowCounters& counters() noexcept { return counters_; }
  [[nodiscard]] const FollowCounters& counters() const noexcept { return counters_; }

 private:
  struct Side;
  using Sides = std::list<Side*>;
  /// A side's place in a list, if it is in it.
  struct Listed {
    Sides::iterator at{};
    bool is = false;
  };
  struct Side {
    FollowedDirection direction;
    Flow flow{};
    Bytes gathered;            ///< Bytes in order up to direction.next() that have not been given out.
    std::uint64_t given = 0;   ///< The offset of gathered's first byte.
    std::uint64_t wanted = 0;  ///< direction.acknowledged() when the connection's timer started.
    std::optional<std::uint32_t> stream;
    bool over = false;
    Listed gathering;
    Listed waiting;
  };
  /// Both ends of a connection, the lesser first.
  struct Key {
    std::uint64_t words[Flow::kWords];
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Hash {
    HashKey key;
    [[nodiscard]] std::size_t operator()(const Key& of) const noexcept {
      return static_cast<std::size_t>(siphash(key, of.words, Flow::kWords));
    }
  };
  struct Connection {
    Key key;
    std::uint64_t id;
    Side sides[2];  ///< The first side sent the first segment.
    std::uint64_t last_ns = 0;
    bool reset = false;
    bool due = false;  ///< It has an entry in due_.
    [[nodiscard]] bool over() const noexcept { return sides[0].over && sides[1].over; }
  };
  using Connections = std::list<Connection>;
  struct Due {
    std::uint64_t at;
    Key key;
    std::uint64_t id;
  };

  [[nodiscard]] static Key key_of(const Flow& flow) noexcept;
  [[nodiscard]] static std::size_t side_of(const Connection& connection, const Flow& flow) noexcept {
    return same_flow(connection.sides[0].flow, flow) ? 0 : 1;
  }
  [[nodiscard]] static bool begins_anew(const Connection& connection, const FollowedSegment& segment) noexcept;

  [[nodiscard]] Connection& connection_of(const FollowedSegment& segment);
  Connection& add(const Key& key, const FollowedSegment& segment);
  void take_payload(Connection& connection, Side& side, const FollowedSegment& segment);
  void count(const FollowedSegment& segment, const FollowedDirection::Taken& taken);

  void let_time_run(Connection& connection);
  void run_out_of_time();
  void give_up_acknowledged(Side& side);
  void keep_within_memory();

  void give_up(Side& side, std::uint64_t end);
  void give_out(Side& side);
  void end_side(const Connection& connection, Side& side);
  void end_connection(Connection& connection);
  void settle(Side& side, std::uint64_t before);
  void list(Sides& sides, Listed& place, Side& side, bool is);
  void put(Side& side, Followed::Kind kind, std::uint64_t length, Bytes bytes = {});
  [[nodiscard]] static std::uint64_t memory_of(const Side& side) noexcept {
    return side.gathered.size() + side.direction.held_bytes();
  }

  FollowOptions options_;
  Connections connections_;  ///< The longest silent first.
  std::unordered_map<Key, Connections::iterator, Hash> by_key_;
  std::deque<Due> due_;
  Sides gathering_;  ///< Sides with bytes that have not been given out, the oldest first.
  Sides waiting_;    ///< Sides with a gap, the oldest first.
  std::deque<Item> items_;
  FollowCounters counters_;
  std::uint64_t now_ = 0;
  std::uint64_t memory_ = 0;
  std::uint64_t next_id_ = 0;
  std::uint32_t next_stream_ = 0;
};

}  // namespace headrace::ingest
