#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include "headrace/device/pool.hpp"
#include "serve/schedules/schedules.hpp"

/// The blocking schedule: a thread takes a query up, copies it in, launches, copies the answer out and waits for it.
namespace headrace::serve::detail {

namespace {

/// What the threads of a blocking engine share.
struct Shared {
  explicit Shared(const EngineState& engine) {
    const Plan& plan = engine.plan;
    const std::size_t stream_count = plan.streams == Streams::shared ? 1 : plan.threads;
    for (std::size_t i = 0; i < stream_count; ++i) {
      streams.emplace_back(engine.device, StreamOptions{.run_in_waiter = true});
    }
    if (plan.allocator == Allocator::pool && !device_accessible(plan.host_memory)) {
      pool.emplace(engine.device, MemoryKind::device, align_up(engine.op.query_bytes, 256) + engine.op.answer_bytes,
                   plan.threads);
    }
  }

  std::vector<Stream> streams;
  std::optional<Pool> pool;
};

/// A query's place on the device while it is worked on.
struct Place {
  std::byte* query = nullptr;
  std::byte* answer = nullptr;
  Buffer query_buffer;
  Buffer answer_buffer;
  std::optional<std::uint32_t> slot;
};

class BlockingWorker {
 public:
  BlockingWorker(EngineState& engine, std::shared_ptr<Shared> shared, std::uint32_t index)
      : engine_(engine),
        shared_(std::move(shared)),
        stream_(shared_->streams[index % shared_->streams.size()]),
        counters_(engine.counters[index]),
        index_(index) {
    if (engine.plan.allocator == Allocator::pool) finished_.emplace(engine.device);
    for (auto& mark : marks_) mark.emplace(engine.device, EventTiming::on);
  }

  void run() noexcept {
    while (const auto job = engine_.next_job(index_)) {
      Status status = engine_.admissible(*job);
      if (status) status = engine_.sampled(job->position) ? answer_sampled(*job) : answer(*job, false);
      engine_.complete(*job, status, counters_);
    }
  }

 private:
  // Points of a query's way through the stream, whose times are taken of sampled queries.
  static constexpr std::size_t kStart = 0;
  static constexpr std::size_t kCopiedIn = 1;
  static constexpr std::size_t kComputed = 2;
  static constexpr std::size_t kCopiedOut = 3;
  static constexpr std::size_t kMarks = 4;

  /// The same as answer(), with the time of each stage added to the counters.
  Status answer_sampled(const Job& job) noexcept {
    const Time began = SteadyClock::now();
    const Status status = answer(job, true);
    if (!status) return status;
    const auto copy_in = marks_[kCopiedIn]->since(*marks_[kStart]);
    const auto kernel = marks_[kComputed]->since(*marks_[kCopiedIn]);
    const auto copy_out = marks_[kCopiedOut]->since(*marks_[kComputed]);
    if (!copy_in || !kernel || !copy_out) return status;
    const Duration on_device = *copy_in + *kernel + *copy_out;
    const Duration whole = SteadyClock::now() - began;
    add_single_writer(counters_.samples, std::uint64_t{1});
    add_single_writer(counters_.queue_ns, (began - job.lane->control(job.position).submitted).count());
    add_single_writer(counters_.copy_in_ns, copy_in->count());
    add_single_writer(counters_.kernel_ns, kernel->count());
    add_single_writer(counters_.copy_out_ns, copy_out->count());
    add_single_writer(counters_.host_ns, std::max<std::int64_t>(0, (whole - on_device).count()));
    return status;
  }

  Status answer(const Job& job, bool sampled) noexcept {
    Place place;
    Status status = take_place(job, place);
    if (!status) return status;
    status = enqueue(job, place, sampled);
    // Work that was enqueued before a failure still uses the place: wait for it whatever happened.
    const Status waited = status ? wait(sampled) : stream_.wait();
    if (place.slot) shared_->pool->give(*place.slot);
    return status ? waited : status;
  }

  Status take_place(const Job& job, Place& place) noexcept {
    if (device_accessible(engine_.plan.host_memory)) {
      place.query = job.lane->query(job.position);
      place.answer = job.lane->answer(job.position);
      return {};
    }
    if (shared_->pool) {
      place.slot = shared_->pool->try_take();
      if (!place.slot) return Errc::full;
      place.query = shared_->pool->slot(*place.slot);
      place.answer = place.query + align_up(engine_.op.query_bytes, 256);
      return {};
    }
    const MemoryKind kind =
        engine_.plan.allocator == Allocator::stream_ordered ? MemoryKind::stream_ordered : MemoryKind::device;
    auto query = Buffer::allocate(stream_, kind, engine_.op.query_bytes);
    if (!query) return query.error();
    auto answer = Buffer::allocate(stream_, kind, engine_.op.answer_bytes);
    if (!answer) return answer.error();
    place.query_buffer = *std::move(query);
    place.answer_buffer = *std::move(answer);
    place.query = place.query_buffer.data();
    place.answer = place.answer_buffer.data();
    return {};
  }

  Status enqueue(const Job& job, const Place& place, bool sampled) noexcept {
    const bool copies = place.query != job.lane->query(job.position);
    if (Status s = mark(kStart, sampled); !s) return s;
    if (copies) {
      if (Status s = stream_.copy(place.query, job.lane->query(job.position), engine_.op.query_bytes); !s) return s;
    }
    if (Status s = mark(kCopiedIn, sampled); !s) return s;
    if (Status s = serve::answer(stream_, engine_.op, engine_.loaded, place.query, place.answer); !s) return s;
    if (Status s = mark(kComputed, sampled); !s) return s;
    if (copies) {
      if (Status s = stream_.copy(job.lane->answer(job.position), place.answer, engine_.op.answer_bytes); !s) return s;
    }
    return mark(kCopiedOut, sampled);
  }

  Status mark(std::size_t which, bool sampled) noexcept { return sampled ? stream_.record(*marks_[which]) : Status{}; }

  /// Waits for this query alone: on a shared stream later ones of other threads may follow.
  Status wait(bool sampled) noexcept {
    if (sampled) return marks_[kCopiedOut]->wait();
    if (engine_.plan.streams == Streams::per_thread) return stream_.wait();
    if (finished_) return record_and_wait(*finished_);
    auto event = Event::create(engine_.device);
    if (!event) return stream_.wait();
    return record_and_wait(*event);
  }

  Status record_and_wait(EventRef event) noexcept {
    if (Status s = stream_.record(event); !s) return s;
    return event.wait();
  }

  EngineState& engine_;
  std::shared_ptr<Shared> shared_;
  StreamRef stream_;
  WorkerCounters& counters_;
  std::uint32_t index_;
  std::optional<Event> finished_;
  std::array<std::optional<Event>, kMarks> marks_;
};

}  // namespace

void start_blocking(EngineState& engine) {
  const auto shared = std::make_shared<Shared>(engine);
  std::vector<std::shared_ptr<BlockingWorker>> workers;
  for (std::uint32_t i = 0; i < engine.plan.threads; ++i) {
    workers.push_back(std::make_shared<BlockingWorker>(engine, shared, i));
  }
  for (std::uint32_t i = 0; i < engine.plan.threads; ++i) {
    start_worker(engine, i, [worker = workers[i]] { worker->run(); });
  }
}

}  // namespace headrace::serve::detail
