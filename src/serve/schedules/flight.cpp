#include "serve/schedules/flight.hpp"

#include <algorithm>
#include <utility>

namespace headrace::serve::detail {

Arrival polled_arrival(const EngineState& engine, bool runs_itself) noexcept {
  return device_accessible(engine.plan.host_memory) && !runs_itself ? Arrival::word : Arrival::event;
}

bool launches_overlap(const EngineState& engine) noexcept {
  constexpr int kSince = 90;  // see LaunchShape::early
  return engine.device.properties().compute_capability >= kSince;
}

Flight::Flight(EngineState& engine, StreamRef stream, FlightOptions options)
    : engine_(engine),
      stream_(stream),
      arrival_(options.arrival),
      shared_(options.shared),
      on_(stream),
      word_(arrival_ == Arrival::word ? std::optional<ArrivalWord>(std::in_place, stream) : std::nullopt),
      place_(engine, word_ ? word_->cell() : nullptr) {
  const Device device = engine.device;
  jobs_.reserve(engine.plan.batch_max);
  if (arrival_ == Arrival::event) arrived_.emplace(device);
  const bool samples = engine.plan.sample_stages_every != 0;
  if (samples) {
    const auto timed = [device] { return Event(device, EventTiming::on); };
    marks_.emplace(std::array{timed(), timed(), timed(), timed()});
  }
  if (!options.as_graph) return;
  // Any slot works here, because each batch replaces the addresses.
  const Job first{engine.lanes.front().get(), 0};
  place_.describe({&first, 1});
  plain_.emplace(make_replay(false));
  if (samples) with_marks_.emplace(make_replay(true));
}

Flight::Replay Flight::make_replay(bool with_marks) const {
  std::vector<GraphNode> nodes;
  std::array<std::size_t, 3> steps{};
  const auto mark = [&](std::size_t which) {
    if (with_marks) nodes.emplace_back(GraphRecord{(*marks_)[which]});
  };
  const auto step = [&](std::size_t which, const GraphNode& node) {
    steps[which] = nodes.size();
    nodes.push_back(node);
  };
  const std::size_t capacity = engine_.plan.batch_max;
  mark(kStart);
  if (place_.copies()) step(0, GraphCopies{place_.copies_in(), capacity});
  mark(kCopiedIn);
  step(1, place_.launch());
  mark(kComputed);
  if (place_.copies()) step(2, GraphCopies{place_.copies_out(), capacity});
  mark(kCopiedOut);
  return {Graph(engine_.device, nodes), steps[0], steps[1], steps[2], 1};
}

void Flight::add(const Job& job) noexcept {
  if (jobs_.empty() && engine_.plan.batch_age > Duration::zero()) first_held_ = SteadyClock::now();
  jobs_.push_back(job);
}

void Flight::add_waiting(std::uint32_t worker) noexcept {
  const bool starts = jobs_.empty();
  engine_.try_jobs(worker, engine_.plan.batch_max, jobs_);
  if (starts && !jobs_.empty() && engine_.plan.batch_age > Duration::zero()) first_held_ = SteadyClock::now();
}

void Flight::add_waiting(Lane& lane) noexcept {
  const Ring::Claim claim = lane.ring.try_claim_many(engine_.plan.batch_max - jobs_.size());
  for (std::uint64_t i = 0; i < claim.count; ++i) jobs_.push_back({&lane, claim.first + i});
}

bool Flight::close(WorkerCounters& counters) noexcept {
  std::erase_if(jobs_, [&](const Job& job) {
    const Status admissible = engine_.admissible(job);
    if (!admissible) engine_.complete(job, admissible, counters);
    return !admissible;
  });
  sampled_ = std::ranges::any_of(jobs_, [&](const Job& job) { return engine_.sampled(job.position); });
  if (sampled_) began_ = SteadyClock::now();
  on_ = shared_ && !sampled_ ? *shared_ : stream_;
  status_ = {};
  over_ = false;
  return !jobs_.empty();
}

Status Flight::copy(std::span<const Copy> copies) noexcept {
  if (copies.size() != 1) return on_.copy_many(copies);
  return on_.copy(copies.front().to, copies.front().from, copies.front().bytes);
}

Status Flight::mark(std::size_t which) noexcept { return sampled_ ? on_.record((*marks_)[which]) : Status{}; }

void Flight::copy_in() noexcept {
  attempt([&] { return place_.take(on_, jobs_.size()); });
  if (!status_) return;
  place_.describe(jobs_);
  attempt([&] { return mark(kStart); });
  attempt([&] { return copy(place_.copies_in()); });
  attempt([&] { return mark(kCopiedIn); });
}

void Flight::launch() noexcept {
  if (!status_) return;
  GraphLaunch launch = place_.launch();
  launch.shape.early = shared_ && !sampled_;
  attempt([&] { return on_.launch(launch.kernel, launch.shape, launch.arguments); });
  if (status_ && word_) word_->expect();
  attempt([&] { return mark(kComputed); });
}

void Flight::copy_out() noexcept {
  attempt([&] { return copy(place_.copies_out()); });
  attempt([&] { return mark(kCopiedOut); });
  end();
}

void Flight::depart() noexcept {
  if (plain_) {
    place_.describe(jobs_);
    attempt([&] { return replay(sampled_ ? *with_marks_ : *plain_); });
    if (status_ && word_) word_->expect();
    return end();
  }
  copy_in();
  launch();
  copy_out();
}

Status Flight::replay(Replay& replay) noexcept {
  if (place_.copies()) {
    const std::size_t capacity = engine_.plan.batch_max;
    if (Status s = replay.graph.update(replay.copy_in, GraphCopies{place_.copies_in(), capacity}); !s) return s;
    if (Status s = replay.graph.update(replay.copy_out, GraphCopies{place_.copies_out(), capacity}); !s) return s;
  }
  if (!place_.launch_stays() || replay.items != jobs_.size()) {
    if (Status s = replay.graph.update(replay.launch, place_.launch()); !s) return s;
    replay.items = jobs_.size();
  }
  return replay.graph.launch(on_);
}

Status Flight::record_arrival() noexcept {
  if (arrival_ == Arrival::event_per_batch) {
    auto event = Event::create(engine_.device);
    if (!event) return event.error();
    arrived_.emplace(*std::move(event));
  }
  if (word_) return status_;  // a failed launch never signals
  return arrived_ ? on_.record(*arrived_) : Status{};
}

void Flight::end() noexcept {
  if (const Status recorded = record_arrival(); !recorded) abort(recorded);
}

void Flight::abort(Status failure) noexcept {
  if (status_) status_ = failure;
  // Enqueued work may still use the place and the slots. If the device has failed for good, this wait returns at once.
  static_cast<void>(on_.wait());
  over_ = true;
}

bool Flight::landed() noexcept {
  if (over_) return true;
  if (word_) return told();
  const auto ready = arrived_->ready();
  if (!ready) abort(ready.error());
  return !ready || *ready;
}

bool Flight::told() noexcept {
  constexpr std::uint32_t kLooks = 4096;  // some 100 us
  if (!word_->told()) {
    if (++looks_ < kLooks) return false;
    looks_ = 0;
    const auto idle = on_.ready();
    if (idle && (!*idle || word_->told())) return false;
    abort(idle ? Error{Errc::device_fault} : idle.error());  // its kernel faulted, or ended without a signal
  } else if (sampled_) {
    const auto idle = on_.ready();  // its events come after the kernel
    if (idle && !*idle) return false;
  }
  looks_ = 0;
  return true;
}

void Flight::wait() noexcept {
  if (over_) return;
  const Status waited = arrived_ ? arrived_->wait() : on_.wait();
  if (!waited) abort(waited);
}

void Flight::record_samples(WorkerCounters& counters) noexcept {
  const auto copy_in = (*marks_)[kCopiedIn].since((*marks_)[kStart]);
  const auto kernel = (*marks_)[kComputed].since((*marks_)[kCopiedIn]);
  const auto copy_out = (*marks_)[kCopiedOut].since((*marks_)[kComputed]);
  if (!copy_in || !kernel || !copy_out) return;
  const Duration on_device = *copy_in + *kernel + *copy_out;
  const Duration work = SteadyClock::now() - began_;
  for (const Job& job : jobs_) {
    if (!engine_.sampled(job.position)) continue;
    const Time submitted = job.lane->control(job.position).submitted;
    record_sample(counters, {.submitted = submitted,
                             .queue = began_ - submitted,
                             .host = std::max(Duration::zero(), work - on_device),
                             .copy_in = *copy_in,
                             .kernel = *kernel,
                             .copy_out = *copy_out,
                             .whole = began_ - submitted + work});
  }
}

void Flight::finish(WorkerCounters& counters) noexcept {
  if (arrival_ == Arrival::event_per_batch) arrived_.reset();
  if (status_ && sampled_) record_samples(counters);
  place_.release();
  for (const Job& job : jobs_) engine_.complete(job, status_, counters);
  jobs_.clear();
}

void fill(EngineState& engine, std::uint32_t worker, Flight& flight) noexcept {
  flight.add_waiting(worker);
  if (engine.plan.batch_age == Duration::zero()) return;
  while (!flight.full()) {
    const auto job = engine.next_job(worker, flight.closes_at());
    if (!job) return;
    flight.add(*job);
    flight.add_waiting(worker);
  }
}

}  // namespace headrace::serve::detail
