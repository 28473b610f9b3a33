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

/// The server's side of a client's ring. Whatever the client writes, and whenever, can harm only its own queries: the
/// server compares one of the client's words with its own number, and uses the other two only as deadline and
/// cancellation. It reads each once. Used by one thread.
class ServerRing {
 public:
  /// A query that is ready.
  struct Request {
    std::span<const std::byte> query;  ///< May change while it is read.
    Time deadline;
    bool cancelled;
  };
  /// A query that was taken.
  struct Taken {
    std::uint64_t position;
    serve::Ticket ticket;  ///< The engine's ticket.
    Time at;
    Time close_deadline;  ///< Its deadline if the estimate said that it would be just in time, else Time::max().
    bool in_flight;
  };

  /// @param memory  zero-filled, of layout.bytes() bytes
  ServerRing(std::byte* memory, const Layout& layout)
      : view_(memory, layout), query_bytes_(layout.query_bytes), answer_bytes_(layout.answer_bytes) {
    taken_.resize(layout.slots);
  }

  /// Whether the client has published the next query, and the previous query in its slot is answered.
  [[nodiscard]] bool ready() const noexcept {
    return next_ != last_ && !taken_[index(next_)].in_flight &&
           word(view_.query_words(next_).sequence).load(std::memory_order_acquire) == next_ + 1;
  }
  /// The next query. Only if ready().
  [[nodiscard]] Request request() const noexcept {
    QueryWords& words = view_.query_words(next_);
    return {.query = {view_.query(next_), query_bytes_},
            .deadline = Time{word(words.deadline).load(std::memory_order_relaxed)},
            .cancelled = word(words.cancelled).load(std::memory_order_relaxed) == next_ + 1};
  }
  /// Marks the next query as submitted to the engine. `close_deadline`: see Taken.
  void take(serve::Ticket ticket, Time now, Time close_deadline = Time::max()) noexcept {
    taken_[index(next_)] = {
        .position = next_, .ticket = ticket, .at = now, .close_deadline = close_deadline, .in_flight = true};
    ++next_;
    ++in_flight_;
  }
  /// Answers the next query with an error, without submitting it.
  void refuse(Error error) noexcept {
    write(next_, error, {});
    ++next_;
  }
  /// The slot of the next query.
  [[nodiscard]] std::uint32_t next_slot() const noexcept { return static_cast<std::uint32_t>(index(next_)); }
  /// Ends a query that has come back: writes its answer or error. Returns its data.
  /// @param write_it  false if the client has gone
  Taken finish(std::uint32_t slot, Status status, std::span<const std::byte> answer, bool write_it) noexcept {
    Taken& taken = taken_[slot];
    if (write_it) write(taken.position, status, answer);
    taken.in_flight = false;
    --in_flight_;
    return taken;
  }
  /// Publishes the written answers. Returns true if the client sleeps and must be woken, and clears its flag.
  [[nodiscard]] bool wake() noexcept;

  /// Tells the client that this side goes to sleep, or is awake. Before sleeping, the caller must check ready() once
  /// more.
  void tell_asleep() noexcept;
  void tell_awake() noexcept { word(view_.head().server_sleeps).store(0, std::memory_order_relaxed); }

  /// Takes only the queries that are published now, and none after them.
  void take_no_more() noexcept;
  /// Whether take_no_more() was called, and all queries published by then are answered.
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
  std::uint64_t last_ = UINT64_MAX;  ///< The first position that will not be taken.
  std::uint64_t in_flight_ = 0;      ///< Queries in the engine.
  std::uint64_t written_ = 0;        ///< Answers written.
  std::uint64_t told_ = 0;           ///< Answers published to the client.
};

}  // namespace headrace::wire::rings
