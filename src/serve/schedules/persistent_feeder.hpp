#pragma once

#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

#include "serve/schedules/persistent_boxes.hpp"

namespace headrace::serve::detail {

/// An engine thread of the persistent schedule: posts queries to its idle boxes and takes answers in any order. It
/// waits for no box, and sleeps only while none of its boxes has a query.
template <class Mail>
class PersistentFeeder {
 public:
  PersistentFeeder(EngineState& engine, PersistentBoxes<Mail>& boxes, std::uint32_t index);

  void run() noexcept;

 private:
  /// The current work of a box.
  struct Work {
    std::vector<Job> jobs;  ///< Reserved for batch_max.
    Time taken_up{};        ///< Only if one of its queries is sampled.
  };

  /// Completes answered requests, and returns whether there were any.
  [[nodiscard]] bool collect() noexcept;
  void finish(std::uint32_t box) noexcept;
  void record_times(const Job& job, const Work& work, std::uint32_t box) noexcept;
  /// Claims queries and posts batches while there are idle boxes. Returns whether it did anything.
  [[nodiscard]] bool feed() noexcept;
  void hold(const Job& job) noexcept;
  [[nodiscard]] bool batch_closes() const noexcept;
  void post() noexcept;
  void write(const Job& job, std::byte* request, std::size_t index) noexcept;
  /// Fails queries in flight, held queries, and later ones.
  void fail_all(Error error) noexcept;

  EngineState& engine_;
  Mail& mail_;
  const typename PersistentBoxes<Mail>::View& view_;
  WorkerCounters& counters_;
  std::uint32_t index_;
  std::uint32_t first_box_;
  std::vector<Work> works_;          ///< Indexed by box minus first_box_.
  std::vector<std::uint32_t> idle_;  ///< Idle boxes; flights_ has the boxes in flight.
  std::vector<std::uint32_t> flights_;
  std::vector<Job> held_;  ///< The open batch.
  Time held_since_{};
};

template <class Mail>
PersistentFeeder<Mail>::PersistentFeeder(EngineState& engine, PersistentBoxes<Mail>& boxes, std::uint32_t index)
    : engine_(engine),
      mail_(boxes.mail()),
      view_(boxes.view()),
      counters_(engine.counters[index]),
      index_(index),
      first_box_(index * engine.plan.streams_per_thread),
      works_(engine.plan.streams_per_thread) {
  for (Work& work : works_) work.jobs.reserve(engine.plan.batch_max);
  held_.reserve(engine.plan.batch_max);
  flights_.reserve(works_.size());
  for (std::size_t i = works_.size(); i > 0; --i) idle_.push_back(first_box_ + static_cast<std::uint32_t>(i) - 1);
}

template <class Mail>
void PersistentFeeder<Mail>::run() noexcept {
  constexpr std::uint32_t kRoundsBeforeYield = 64;
  std::uint32_t idle_rounds = 0;
  while (true) {
    if (const auto fault = engine_.fault()) return fail_all(*fault);
    const bool collected = collect();
    if (feed() || collected) {
      idle_rounds = 0;
      continue;
    }
    if (flights_.empty() && held_.empty()) {
      const auto job = engine_.next_job(index_);
      if (!job) return;
      hold(*job);
      idle_rounds = 0;
    } else if (++idle_rounds > kRoundsBeforeYield) {
      std::this_thread::yield();
    }
  }
}

template <class Mail>
bool PersistentFeeder<Mail>::collect() noexcept {
  const std::size_t before = flights_.size();
  for (std::size_t i = 0; i < flights_.size();) {
    const std::uint32_t box = flights_[i];
    if (!mail_.ready(box)) {
      ++i;
      continue;
    }
    finish(box);
    flights_[i] = flights_.back();
    flights_.pop_back();
    idle_.push_back(box);
  }
  return flights_.size() != before;
}

template <class Mail>
void PersistentFeeder<Mail>::finish(std::uint32_t box) noexcept {
  Work& work = works_[box - first_box_];
  for (std::size_t i = 0; i < work.jobs.size(); ++i) {
    const Job& job = work.jobs[i];
    if (view_.by_address == 0) {
      std::memcpy(job.lane->answer(job.position), mail_.answer(box) + i * view_.answer_stride, engine_.op.answer_bytes);
    }
    if (engine_.sampled(job.position)) record_times(job, work, box);
    engine_.complete(job, {}, counters_);
  }
  work.jobs.clear();
}

template <class Mail>
void PersistentFeeder<Mail>::record_times(const Job& job, const Work& work, std::uint32_t box) noexcept {
  const BoxTimes& times = view_.times[box];
  const Time now = SteadyClock::now();
  StageSample sample;
  sample.submitted = job.lane->control(job.position).submitted;
  sample.queue = work.taken_up - sample.submitted;
  sample.kernel = Duration{static_cast<std::int64_t>(times.ended - times.began)};
  sample.host = std::max(Duration::zero(), now - work.taken_up - sample.kernel);
  sample.whole = now - sample.submitted;
  record_sample(counters_, sample);
}

template <class Mail>
bool PersistentFeeder<Mail>::feed() noexcept {
  bool fed = false;
  while (!idle_.empty()) {
    while (held_.size() < view_.batch_max) {
      const auto job = engine_.try_job(index_);
      if (!job) break;
      hold(*job);
      fed = true;
    }
    if (held_.empty() || !batch_closes()) break;
    post();
    fed = true;
  }
  return fed;
}

template <class Mail>
void PersistentFeeder<Mail>::hold(const Job& job) noexcept {
  if (held_.empty() && engine_.plan.batch_age > Duration::zero()) held_since_ = SteadyClock::now();
  held_.push_back(job);
}

template <class Mail>
bool PersistentFeeder<Mail>::batch_closes() const noexcept {
  return held_.size() == view_.batch_max || engine_.plan.batch_age == Duration::zero() || engine_.stopping() ||
         SteadyClock::now() - held_since_ >= engine_.plan.batch_age;
}

template <class Mail>
void PersistentFeeder<Mail>::post() noexcept {
  const std::uint32_t box = idle_.back();
  Work& work = works_[box - first_box_];
  std::byte* const request = mail_.request(box);
  bool sampled = false;
  for (const Job& job : held_) {
    if (const Status status = engine_.admissible(job); !status) {
      engine_.complete(job, status, counters_);
      continue;
    }
    write(job, request, work.jobs.size());
    work.jobs.push_back(job);
    sampled = sampled || engine_.sampled(job.position);
  }
  held_.clear();
  if (work.jobs.empty()) return;
  if (view_.batch_max > 1) *reinterpret_cast<std::uint32_t*>(request) = static_cast<std::uint32_t>(work.jobs.size());
  if (sampled) work.taken_up = SteadyClock::now();
  idle_.pop_back();
  flights_.push_back(box);
  mail_.post(box);
}

template <class Mail>
void PersistentFeeder<Mail>::write(const Job& job, std::byte* request, std::size_t index) noexcept {
  std::byte* const payload = request + PersistentBoxes<Mail>::View::kPayload;
  if (view_.by_address != 0) {
    const QueryPlace place{job.lane->query(job.position), job.lane->answer(job.position)};
    std::memcpy(payload + index * sizeof(place), &place, sizeof(place));
  } else {
    std::memcpy(payload + index * view_.query_stride, job.lane->query(job.position), engine_.op.query_bytes);
  }
}

template <class Mail>
void PersistentFeeder<Mail>::fail_all(Error error) noexcept {
  for (const std::uint32_t box : flights_) {
    for (const Job& job : works_[box - first_box_].jobs) engine_.complete(job, error, counters_);
  }
  flights_.clear();
  for (const Job& job : held_) engine_.complete(job, error, counters_);
  held_.clear();
  while (const auto job = engine_.next_job(index_)) engine_.complete(*job, error, counters_);
}

}  // namespace headrace::serve::detail
