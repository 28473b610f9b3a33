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
#include "wire/late_margin.hpp"
#include "wire/queue_rate.hpp"

namespace headrace::wire {

/// Error::native of Errc::full: the queue ahead of a request takes longer than its deadline allows.
inline constexpr int kWaitsTooLong = 1;

/// One thread's queue for one model: submits queries to the engine while it has free slots, and queues the rest. A
/// client's requests go in order, and clients take turns (round robin) within each priority. High priority goes first,
/// except that kTurnQueries of normal priority go after every kHighRun queries of high priority. When the queue is
/// full, requests of normal priority give way to those of high priority, down to a kNormalShare-th of the room. Within
/// a priority, the client with the most queued queries gives way to one with fewer, but keeps one request. A request of
/// normal priority may always wait if no other does. After construction, used by one thread only.
class Asker {
 public:
  /// @param counters  those of this thread and model
  /// @param wake      the eventfd that is signalled when take_in() has work
  /// Throws UsageError if the engine has no lane left.
  Asker(ServedModel& served, ModelCounters& counters, int wake);

  [[nodiscard]] ServedModel& served() const noexcept { return served_; }

  /// Accepts a request; take_in() calls its owner's finished() once all its queries are back. Returns Errc::full if too
  /// many queries wait, or so many that the request would be late (kWaitsTooLong), or the engine's fault. Then it has
  /// not accepted the request.
  [[nodiscard]] Status ask(std::shared_ptr<Inference> inference);
  /// Takes in completed queries, submits waiting ones, and arranges to be woken for the rest.
  void take_in();
  /// The latest time for the next call of take_in() without a wake-up; Time::max() for never.
  [[nodiscard]] Time soonest() const noexcept {
    if (client_.answers_itself() && !idle()) return Time{};
    if (polls_ && !armed_ && client_.in_flight() > 0) return Time{};
    return std::min(client_.soonest_deadline(), line_soonest_);
  }
  /// Whether nothing is in flight, waiting or finished, so that take_in() has nothing to do.
  [[nodiscard]] bool idle() const noexcept { return client_.in_flight() == 0 && !waits() && finished_.empty(); }

 private:
  /// An inference, and its number in the tags of its queries.
  struct Entry {
    std::shared_ptr<Inference> inference;
    std::uint32_t number = 0;
  };
  static constexpr std::uint32_t kTurnQueries = 8;
  static constexpr std::uint32_t kHighRun = 120;
  static constexpr std::size_t kNormalShare = 16;
  /// The waiting requests of one client.
  struct Line {
    const void* client = nullptr;
    std::deque<Entry> entries;          ///< The first entry may be partly submitted.
    std::size_t waiting = 0;            ///< Waiting queries.
    std::uint32_t turn = kTurnQueries;  ///< Queries left in this client's turn.
  };
  using Lines = std::list<Line>;
  /// The waiting requests of one priority.
  struct Class {
    Lines lines;  ///< Clients with waiting queries. The first one has its turn.
    std::unordered_map<const void*, Lines::iterator> line_of{};
    std::size_t waiting = 0;    ///< Waiting queries.
    std::size_t published = 0;  ///< Last value of `waiting` that publish() published.
  };

  [[nodiscard]] Class& class_of(Priority priority) noexcept { return classes_[static_cast<std::size_t>(priority)]; }
  [[nodiscard]] const Class& class_of(Priority priority) const noexcept {
    return classes_[static_cast<std::size_t>(priority)];
  }
  [[nodiscard]] bool waits() const noexcept {
    return std::ranges::any_of(classes_, [](const Class& one) { return !one.lines.empty(); });
  }
  /// Submits waiting queries. `now` counts as the end of their requests' waiting time, here and below.
  void feed(Time now);
  /// Submits at most `most` queries of the client whose turn it is in `from`. Returns false if the engine has no free
  /// slot.
  [[nodiscard]] bool feed_from(Class& from, std::uint32_t most, Time now);
  void expire(Time now);
  /// Submits queries of an entry, at most `most`, while the engine has room. Returns true if no query of it waits any
  /// more.
  [[nodiscard]] bool submit(const Entry& entry, std::size_t most, Time now);
  /// Fails the queries of `entry` that were not submitted.
  void drop_rest(const Entry& entry, Error error);
  /// Queues the waiting queries of `entry`.
  void wait(const Entry& entry);
  /// Makes room in the queue for `inference`, by refusing requests of normal priority and of clients with more queued
  /// queries.
  [[nodiscard]] bool make_room(const Inference& inference);
  /// Limits the waiting queries of its priority, including those of `inference`, to `most`. Returns false if that is
  /// not possible.
  [[nodiscard]] bool make_room_among(Class& own, const Inference& inference, std::size_t most);
  /// Refuses the last queued request of a client.
  void refuse_last(Class& from, Lines::iterator line);
  /// Whether `inference` would be late at the present rate of completed queries.
  [[nodiscard]] Outlook outlook_of(const Inference& inference);
  /// Number of queries of its priority that will be submitted up to the last one of `inference`.
  [[nodiscard]] std::uint64_t before_in_line(const Class& own, const Inference& inference) const;
  Lines::iterator leave(Class& from, Lines::iterator line);
  void note(const serve::Completion& done);
  void finish(std::uint32_t number);
  /// Notifies the owners of finished requests, which may call ask() from there.
  void tell(Time now);
  /// Arranges for take_in() to be called when a query comes back.
  void arm(Time now);
  /// Adds the numbers of waiting and in-flight queries to the counters, which another Asker may share.
  void publish() noexcept;

  ServedModel& served_;
  ModelCounters& counters_;
  int wake_;
  serve::Client client_;
  std::vector<std::shared_ptr<Inference>> active_;  ///< By number.
  std::vector<std::uint32_t> free_;                 ///< Free numbers.
  std::array<Class, kPriorities> classes_;
  std::uint32_t high_run_ = 0;       ///< Consecutive queries of high priority submitted while others waited.
  std::uint32_t normal_run_ = 0;     ///< Queries of normal priority submitted since then.
  Time line_soonest_ = Time::max();  ///< No queued inference has an earlier deadline.
  LateMargin margin_;
  QueueRate rate_;
  QueueRate normal_rate_;        ///< Rate of queries of normal priority only, while some wait.
  std::size_t served_back_ = 0;  ///< Queries that the engine worked on and that came back in this take_in().
  std::size_t normal_back_ = 0;  ///< Those of normal priority.
  std::size_t published_in_flight_ = 0;
  std::vector<std::shared_ptr<Inference>> finished_;  ///< Finished, owners not notified yet. Room is reserved.
  std::vector<std::shared_ptr<Inference>> told_;      ///< The requests that tell() is notifying about.
  bool armed_ = false;
  bool polls_;          ///< The device answers without waking a thread, so polling for a while is cheaper than arming.
  Time polls_until_{};  ///< End of polling; then the asker is armed.
};

}  // namespace headrace::wire
