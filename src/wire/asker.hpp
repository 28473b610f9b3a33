#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "headrace/serve/client.hpp"
#include "wire/inference.hpp"

namespace headrace::wire {

/// One thread's way to one model: takes requests to the engine in the order in which they come, as many queries as have
/// a slot, and lets the rest wait. Used by that thread alone.
class Asker {
 public:
  /// @param waiting_max  queries that may wait for a slot
  /// @param wake         the eventfd that is written once take_in() has something to do
  /// Throws UsageError where the engine has no lane left.
  Asker(ServedModel& served, std::size_t waiting_max, int wake);

  /// Takes a request on: take_in() calls its owner's finished() once all its queries are back. Errc::full where too
  /// many wait, and the engine's fault where it has one; then nothing has been taken on.
  [[nodiscard]] Status ask(std::shared_ptr<Inference> inference);
  /// Takes in what has come back, submits those that wait, and has itself woken for the rest.
  void take_in();
  /// When take_in() has something to do at the latest without being woken; Time::max() for never.
  [[nodiscard]] Time soonest() const noexcept { return std::min(client_.soonest_deadline(), line_soonest_); }
  /// Whether take_in() has nothing to do, now and later.
  [[nodiscard]] bool idle() const noexcept { return client_.in_flight() == 0 && line_.empty() && finished_.empty(); }

 private:
  /// An inference by the number that the tags of its queries have.
  struct Entry {
    std::shared_ptr<Inference> inference;
    std::uint32_t number = 0;
  };

  void feed();
  void expire();
  /// Submits what there is room for; whether all of it has been submitted.
  [[nodiscard]] bool submit(const Entry& entry);
  /// The queries of `entry` that were not submitted come to nothing.
  void drop_rest(const Entry& entry, Error error);
  void note(const serve::Completion& done);
  void finish(std::uint32_t number);
  /// Tells owners of what has finished. They may ask again.
  void tell();
  void arm();

  ServedModel& served_;
  std::size_t waiting_max_;
  int wake_;
  serve::Client client_;
  std::vector<std::shared_ptr<Inference>> active_;    ///< By number.
  std::vector<std::uint32_t> free_;                   ///< Numbers that no inference has.
  std::deque<Entry> line_;                            ///< Inferences with queries that wait.
  Time line_soonest_ = Time::max();                   ///< No inference in line has an earlier deadline.
  std::size_t waiting_ = 0;                           ///< Queries that wait.
  std::vector<std::shared_ptr<Inference>> finished_;  ///< Their owners have not been told.
  bool armed_ = false;
};

}  // namespace headrace::wire
