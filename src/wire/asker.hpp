#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "headrace/serve/client.hpp"
#include "wire/inference.hpp"
#include "wire/queue_rate.hpp"

namespace headrace::wire {

/// Error::native of Errc::full: what waits before a request takes longer than its deadline allows.
inline constexpr int kWaitsTooLong = 1;

/// One thread's way to one model: takes requests to the engine, as many queries as have a slot, and lets the rest wait.
/// The requests of a client go in the order in which they come, and clients take turns (round robin). Where no more may
/// wait, the client with the most queries in line gives way to one with fewer, but keeps a request. Used by that thread
/// alone, once it has been made.
class Asker {
 public:
  /// @param counters     of this thread and model
  /// @param waiting_max  queries that may wait for a slot
  /// @param wake         the eventfd that is written once take_in() has something to do
  /// Throws UsageError where the engine has no lane left.
  Asker(ServedModel& served, ModelCounters& counters, std::size_t waiting_max, int wake);

  [[nodiscard]] ServedModel& served() const noexcept { return served_; }

  /// Takes a request on: take_in() calls its owner's finished() once all its queries are back. Errc::full where too
  /// many wait, or so many that it would be late (kWaitsTooLong), and the engine's fault where it has one; then nothing
  /// has been taken on.
  [[nodiscard]] Status ask(std::shared_ptr<Inference> inference);
  /// Takes in what has come back, submits those that wait, and has itself woken for the rest.
  void take_in();
  /// When take_in() has something to do at the latest without being woken; Time::max() for never.
  [[nodiscard]] Time soonest() const noexcept { return std::min(client_.soonest_deadline(), line_soonest_); }
  /// Whether take_in() has nothing to do, now and later.
  [[nodiscard]] bool idle() const noexcept { return client_.in_flight() == 0 && lines_.empty() && finished_.empty(); }

 private:
  /// An inference by the number that the tags of its queries have.
  struct Entry {
    std::shared_ptr<Inference> inference;
    std::uint32_t number = 0;
  };
  static constexpr std::uint32_t kTurnQueries = 8;
  /// What waits of one client.
  struct Line {
    const void* client = nullptr;
    std::deque<Entry> entries;          ///< The first may have been submitted in part.
    std::size_t waiting = 0;            ///< Their queries that wait.
    std::uint32_t turn = kTurnQueries;  ///< Queries that it may still submit before another client does.
  };
  using Lines = std::list<Line>;

  /// Submits queries that wait. `now` has just been read from the clock, here and below.
  void feed(Time now);
  void expire(Time now);
  /// Submits what there is room for, `most` queries at most; whether none of it waits any more.
  [[nodiscard]] bool submit(const Entry& entry, std::size_t most, Time now);
  /// The queries of `entry` that were not submitted come to nothing.
  void drop_rest(const Entry& entry, Error error);
  /// Puts what waits of `entry` in line.
  void wait(const Entry& entry);
  /// Makes room in line for what `inference` asks for, by refusing requests of clients with more queries there.
  [[nodiscard]] bool make_room(const Inference& inference);
  /// Whether `inference` would be late, at the rate at which queries come back now.
  [[nodiscard]] bool would_be_late(const Inference& inference) const;
  Lines::iterator leave(Lines::iterator line);
  void note(const serve::Completion& done);
  void finish(std::uint32_t number);
  /// Tells owners of what has finished. They may ask again.
  void tell();
  void arm();
  /// Publishes how many queries wait and are in flight, beside those of another Asker with the same counters.
  void publish() noexcept;

  ServedModel& served_;
  ModelCounters& counters_;
  std::size_t waiting_max_;
  int wake_;
  serve::Client client_;
  std::vector<std::shared_ptr<Inference>> active_;  ///< By number.
  std::vector<std::uint32_t> free_;                 ///< Numbers that no inference has.
  Lines lines_;                                     ///< Clients with queries that wait. The first has its turn.
  std::unordered_map<const void*, Lines::iterator> line_of_;
  Time line_soonest_ = Time::max();  ///< No inference in line has an earlier deadline.
  std::size_t waiting_ = 0;          ///< Queries that wait.
  QueueRate rate_;
  std::size_t published_waiting_ = 0;
  std::size_t published_in_flight_ = 0;
  std::vector<std::shared_ptr<Inference>> finished_;  ///< Their owners have not been told. There is room, reserved.
  std::vector<std::shared_ptr<Inference>> told_;      ///< What tell() goes through.
  bool armed_ = false;
};

}  // namespace headrace::wire
