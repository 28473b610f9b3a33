#include "serve/schedules/batch_place.hpp"

namespace headrace::serve::detail {

namespace {

/// Queries and answers start on their own cache line, as in a client's slots.
constexpr std::size_t kAlignment = 256;

}  // namespace

BatchPlace::BatchPlace(const EngineState& engine, ArrivalCell* arrival)
    : engine_(engine),
      in_place_(device_accessible(engine.plan.host_memory)),
      keeps_memory_(engine.plan.allocator == Allocator::pool),
      arrival_(arrival),
      shape_(engine.plan.shape(engine.op.shape)),
      query_stride_(align_up(engine.op.query_bytes, kAlignment)),
      answer_stride_(align_up(engine.op.answer_bytes, kAlignment)),
      together_arguments_{const_cast<std::byte*>(engine.loaded.bytes.data()),
                          static_cast<void*>(&queries_),
                          static_cast<void*>(&answers_),
                          &query_stride_,
                          &answer_stride_,
                          static_cast<void*>(&arrival_)},
      scattered_arguments_{const_cast<std::byte*>(engine.loaded.bytes.data()), static_cast<void*>(&scattered_),
                           static_cast<void*>(&arrival_)} {
  const std::size_t count = engine.plan.batch_max;
  if (in_place_) {
    if (count == 1) return;
    places_ = Buffer(engine.device, MemoryKind::mapped, count * sizeof(QueryPlace));
    scattered_ = places_.as<QueryPlace>();
    return;
  }
  copies_in_.reserve(count);
  copies_out_.reserve(count);
  if (!keeps_memory_) return;
  query_memory_ = Buffer(engine.device, MemoryKind::device, count * query_stride_);
  answer_memory_ = Buffer(engine.device, MemoryKind::device, count * answer_stride_);
}

Status BatchPlace::take(StreamRef stream, std::size_t count) noexcept {
  if (in_place_ || keeps_memory_) return {};
  const MemoryKind kind =
      engine_.plan.allocator == Allocator::stream_ordered ? MemoryKind::stream_ordered : MemoryKind::device;
  auto queries = Buffer::allocate(stream, kind, count * query_stride_);
  if (!queries) return queries.error();
  auto answers = Buffer::allocate(stream, kind, count * answer_stride_);
  if (!answers) return answers.error();
  query_memory_ = *std::move(queries);
  answer_memory_ = *std::move(answers);
  return {};
}

void BatchPlace::release() noexcept {
  if (in_place_ || keeps_memory_) return;
  query_memory_.reset();
  answer_memory_.reset();
}

void BatchPlace::describe(std::span<const Job> jobs) noexcept {
  items_ = static_cast<std::uint32_t>(jobs.size());
  if (in_place_) {
    describe_in_place(jobs);
  } else {
    gather(jobs);
  }
}

void BatchPlace::gather(std::span<const Job> jobs) noexcept {
  copies_in_.clear();
  copies_out_.clear();
  std::byte* query = query_memory_.data();
  std::byte* answer = answer_memory_.data();
  queries_ = query;
  answers_ = answer;
  for (const Job& job : jobs) {
    copies_in_.push_back({query, job.lane->query(job.position), engine_.op.query_bytes});
    copies_out_.push_back({job.lane->answer(job.position), answer, engine_.op.answer_bytes});
    query += query_stride_;
    answer += answer_stride_;
  }
}

void BatchPlace::describe_in_place(std::span<const Job> jobs) noexcept {
  is_scattered_ = jobs.size() > 1;
  if (!is_scattered_) {
    // Pass addresses by value, because a table would cost the kernel one more round trip over the link.
    queries_ = jobs.front().lane->query(jobs.front().position);
    answers_ = jobs.front().lane->answer(jobs.front().position);
    return;
  }
  QueryPlace* place = places_.as<QueryPlace>();
  for (const Job& job : jobs) *place++ = {job.lane->query(job.position), job.lane->answer(job.position)};
}

GraphLaunch BatchPlace::launch() const noexcept {
  LaunchShape shape = shape_;
  shape.items = items_;
  if (is_scattered_) return {engine_.op.scattered_kernel, shape, scattered_arguments_};
  return {engine_.op.kernel, shape, together_arguments_};
}

}  // namespace headrace::serve::detail
