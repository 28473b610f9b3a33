#pragma once

#include <algorithm>
#include <array>
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
/// The requests of a client go in the order in which they come, and clients take turns (round robin) within each
/// priority. High priority goes first, except that after kHighRun of its queries kTurnQueries of normal priority go.
/// Where no more may wait, requests of normal priority give way to those of high priority, down to a kNormalShare-th of
/// the room; within a priority the client with the most queries in line gives way to one with fewer, but keeps a
/// request. A request of normal priority may always wait where no other does. Used by one thread alone, once it has
/// been made.
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
  [[nodiscard]] Time soonest() const noexcept {
    if (client_.answers_itself() && !idle()) return Time{};
    if (polls_ && !armed_ && client_.in_flight() > 0) return Time{};
    return std::min(client_.soonest_deadline(), line_soonest_);
  }
  /// Whether take_in() has nothing to do, now and later.
  [[nodiscard]] bool idle() const noexcept { return client_.in_flight() == 0 && !waits() && finished_.empty(); }

 private:
  /// An inference by the number that the tags of its queries have.
  struct Entry {
    std::shared_ptr<Inference> inference;
    std::uint32_t number = 0;
  };
  static constexpr std::uint32_t kTurnQueries = 8;
  static constexpr std::uint32_t kHighRun = 120;
  static constexpr std::size_t kNormalShare = 16;
  /// What waits of one client.
  struct Line {
    const void* client = nullptr;
    std::deque<Entry> entries;          ///< The first may have been submitted in part.
    std::size_t waiting = 0;            ///< Their queries that wait.
    std::uint32_t turn = kTurnQueries;  ///< Queries that it may still submit before another client does.
  };
  using Lines = std::list<Line>;
  /// What waits of one priority.
  struct Class {
    Lines lines;  ///< Clients with queries that wait. The first has its turn.
    std::unordered_map<const void*, Lines::iterator> line_of{};
    std::size_t waiting = 0;    ///< Their queries that wait.
    std::size_t published = 0;  ///< Those that publish() has told of.
  };

  [[nodiscard]] Class& class_of(Priority priority) noexcept { return classes_[static_cast<std::size_t>(priority)]; }
  [[nodiscard]] const Class& class_of(Priority priority) const noexcept {
    return classes_[static_cast<std::size_t>(priority)];
  }
  [[nodiscard]] bool waits() const noexcept {
    return std::ranges::any_of(classes_, [](const Class& one) { return !one.lines.empty(); });
  }
  /// Submits queries that wait. `now` is when their requests are taken to end their time in line, here and below.
  void feed(Time now);
  /// Submits queries of the client that has its turn in `from`, `most` at most; whether others may go on.
  [[nodiscard]] bool feed_from(Class& from, std::uint32_t most, Time now);
  void expire(Time now);
  /// Submits what there is room for, `most` queries at most; whether none of it waits any more.
  [[nodiscard]] bool submit(const Entry& entry, std::size_t most, Time now);
  /// The queries of `entry` that were not submitted come to nothing.
  void drop_rest(const Entry& entry, Error error);
  /// Puts what waits of `entry` in line.
  void wait(const Entry& entry);
  /// Makes room in line for what `inference` asks for, by refusing requests of normal priority and of clients with more
  /// queries there.
  [[nodiscard]] bool make_room(const Inference& inference);
  /// Has at most `most` queries of its priority wait, with those of `inference`. False where that cannot be.
  [[nodiscard]] bool make_room_among(Class& own, const Inference& inference, std::size_t most);
  /// Refuses the last request of a client in line.
  void refuse_last(Class& from, Lines::iterator line);
  /// Whether `inference` would be late, at the rate at which queries come back now.
  [[nodiscard]] bool would_be_late(const Inference& inference) const;
  /// Queries of its priority that go until the last one of `inference` has gone, of all that wait.
  [[nodiscard]] std::uint64_t before_in_line(const Class& own, const Inference& inference) const;
  Lines::iterator leave(Class& from, Lines::iterator line);
  void note(const serve::Completion& done);
  void finish(std::uint32_t number);
  /// Tells owners of what has finished. They may ask again.
  void tell();
  /// Has take_in() called when something comes back.
  void arm(Time now);
  /// Publishes how many queries wait and are in flight, beside those of another Asker with the same counters.
  void publish() noexcept;

  ServedModel& served_;
  ModelCounters& counters_;
  std::size_t waiting_max_;
  int wake_;
  serve::Client client_;
  std::vector<std::shared_ptr<Inference>> active_;  ///< By number.
  std::vector<std::uint32_t> free_;                 ///< Numbers that no inference has.
  std::array<Class, kPriorities> classes_;
  std::uint32_t high_run_ = 0;       ///< Queries of high priority that have gone while others waited, ...
  std::uint32_t normal_run_ = 0;     ///< ... and of the others that have gone since it was enough.
  Time line_soonest_ = Time::max();  ///< No inference in line has an earlier deadline.
  QueueRate rate_;
  QueueRate normal_rate_;        ///< Takes in queries of normal priority alone, while some wait.
  std::size_t normal_back_ = 0;  ///< Those that have come back in this take_in().
  std::size_t published_in_flight_ = 0;
  std::vector<std::shared_ptr<Inference>> finished_;  ///< Their owners have not been told. There is room, reserved.
  std::vector<std::shared_ptr<Inference>> told_;      ///< What tell() goes through.
  bool armed_ = false;
  bool polls_;          ///< A device answers, and wakes nobody: for a while it is cheaper to look than to have looked.
  Time polls_until_{};  ///< Then it is armed.
};

}  // namespace headrace::wire
