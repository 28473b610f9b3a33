#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "headrace/base/detail/clock.hpp"
#include "headrace/base/result.hpp"
#include "headrace/serve/client.hpp"
#include "wire/rings/layout.hpp"

namespace headrace::wire::rings {

/// The server's side of a client's ring. Whatever the client writes there, and whenever, it harms its own queries
/// alone: of all its words, the server compares one with a number of its own, and takes two as a time and a wish. Each
/// is read once. Used by one thread.
class ServerRing {
 public:
  /// The words of a query that is ready.
  struct Request {
    std::span<const std::byte> query;  ///< May change while it is read.
    Time deadline;
    bool cancelled;
  };
  /// A query that has been taken.
  struct Taken {
    std::uint64_t position;
    serve::Ticket ticket;  ///< As the engine names it.
    Time at;
    bool in_flight;
  };

  /// @param memory  filled with zeros, and as long as `layout` says
  ServerRing(std::byte* memory, const Layout& layout)
      : view_(memory, layout), query_bytes_(layout.query_bytes), answer_bytes_(layout.answer_bytes) {
    taken_.resize(layout.slots);
  }

  /// Whether the client has published the next query, and its slot's last one is answered.
  [[nodiscard]] bool ready() const noexcept {
    return next_ != last_ && !taken_[index(next_)].in_flight &&
           word(view_.query_words(next_).sequence).load(std::memory_order_acquire) == next_ + 1;
  }
  /// The next query; where ready().
  [[nodiscard]] Request request() const noexcept {
    QueryWords& words = view_.query_words(next_);
    return {.query = {view_.query(next_), query_bytes_},
            .deadline = Time{word(words.deadline).load(std::memory_order_relaxed)},
            .cancelled = word(words.cancelled).load(std::memory_order_relaxed) == next_ + 1};
  }
  /// An engine has the next query.
  void take(serve::Ticket ticket, Time now) noexcept {
    taken_[index(next_)] = {.position = next_, .ticket = ticket, .at = now, .in_flight = true};
    ++next_;
    ++in_flight_;
  }
  /// Answers the next query, which no engine gets.
  void refuse(Error error) noexcept {
    write(next_, error, {});
    ++next_;
  }
  /// The slot of the query that take() takes next.
  [[nodiscard]] std::uint32_t next_slot() const noexcept { return static_cast<std::uint32_t>(index(next_)); }
  /// A query has come back: writes its answer, or why there is none. What was known of it.
  /// @param write_it  false where the client has gone
  Taken finish(std::uint32_t slot, Status status, std::span<const std::byte> answer, bool write_it) noexcept {
    Taken& taken = taken_[slot];
    if (write_it) write(taken.position, status, answer);
    taken.in_flight = false;
    --in_flight_;
    return taken;
  }
  /// Whether the client is to be woken for what has been written: it sleeps. Then it counts as woken.
  [[nodiscard]] bool wake() noexcept;

  /// Tells the client that this side goes to sleep, or is awake. Going to sleep it looks at ready() once more.
  void tell_asleep() noexcept;
  void tell_awake() noexcept { word(view_.head().server_sleeps).store(0, std::memory_order_relaxed); }

  /// Takes no query beyond those that are published now.
  void take_no_more() noexcept;
  /// Whether take_no_more() was called, and all that was published then is answered.
  [[nodiscard]] bool done() const noexcept { return next_ == last_ && in_flight_ == 0; }
  [[nodiscard]] std::uint64_t in_flight() const noexcept { return in_flight_; }
  [[nodiscard]] std::span<const Taken> taken() const noexcept { return taken_; }

 private:
  [[nodiscard]] std::size_t index(std::uint64_t position) const noexcept { return position & (taken_.size() - 1); }
  void write(std::uint64_t position, Status status, std::span<const std::byte> answer) noexcept;

  View view_;
  std::size_t query_bytes_;
  std::size_t answer_bytes_;
  std::vector<Taken> taken_;         ///< By slot.
  std::uint64_t next_ = 0;           ///< The next position to take.
  std::uint64_t last_ = UINT64_MAX;  ///< The first position that is not taken any more.
  std::uint64_t in_flight_ = 0;      ///< Queries that an engine has.
  std::uint64_t written_ = 0;        ///< Answers.
  std::uint64_t told_ = 0;           ///< Answers that the client has been told of.
};

}  // namespace headrace::wire::rings
