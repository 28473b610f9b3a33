#include "wire/asker.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "headrace/base/event_descriptor.hpp"

namespace headrace::wire {

namespace {

constexpr unsigned kNumberShift = 32;  // a tag is the inference's number, and below it that of the query in it

}  // namespace

Asker::Asker(ServedModel& served, std::size_t waiting_max, int wake)
    : served_(served), waiting_max_(waiting_max), wake_(wake), client_(served.model.engine->connect()) {}

Status Asker::ask(std::shared_ptr<Inference> inference) {
  if (const std::optional<Error> fault = served_.model.engine->fault()) return *fault;
  if (!line_.empty() && waiting_ + inference->batch > waiting_max_) return Errc::full;
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(active_.size()));
    active_.emplace_back();
  }
  Entry entry{std::move(inference), free_.back()};
  free_.pop_back();
  active_[entry.number] = entry.inference;
  waiting_ += entry.inference->batch;
  line_soonest_ = std::min(line_soonest_, entry.inference->deadline);
  line_.push_back(std::move(entry));
  feed();
  if (finished_.empty()) {
    arm();
  } else {
    signal_event(wake_);  // the engine took none of it
  }
  return {};
}

void Asker::take_in() {
  armed_ = false;
  const auto note_one = [this](const serve::Completion& done) { note(done); };
  while (client_.poll(note_one) > 0) {
  }
  expire();
  feed();
  tell();
  arm();
}

void Asker::feed() {
  while (!line_.empty() && submit(line_.front())) {
    const std::uint32_t number = line_.front().number;
    line_.pop_front();
    if (active_[number]->back == active_[number]->batch) finish(number);
  }
}

void Asker::expire() {
  const Time now = SteadyClock::now();
  if (now < line_soonest_) return;
  line_soonest_ = Time::max();
  std::erase_if(line_, [&](const Entry& entry) {
    Inference& inference = *entry.inference;
    if (inference.deadline > now) {
      line_soonest_ = std::min(line_soonest_, inference.deadline);
      return false;
    }
    drop_rest(entry, {Errc::deadline_exceeded, 0});
    if (inference.back == inference.batch) finish(entry.number);
    return true;
  });
}

bool Asker::submit(const Entry& entry) {
  Inference& inference = *entry.inference;
  if (inference.owner == nullptr) {  // nobody waits any more
    drop_rest(entry, {Errc::cancelled, 0});
    return true;
  }
  const std::size_t bytes = inference.queries.size() / inference.batch;
  const std::span<const std::byte> queries(inference.queries);
  while (inference.submitted < inference.batch) {
    const std::uint64_t tag = std::uint64_t{entry.number} << kNumberShift | inference.submitted;
    const Result<serve::Ticket> ticket = client_.submit(queries.subspan(inference.submitted * bytes, bytes),
                                                        {.tag = tag, .deadline = inference.deadline});
    if (!ticket) {
      if (ticket.error().code == Errc::full) return false;
      drop_rest(entry, ticket.error());
      return true;
    }
    ++inference.submitted;
    --waiting_;
  }
  return true;
}

void Asker::drop_rest(const Entry& entry, Error error) {
  Inference& inference = *entry.inference;
  const std::size_t rest = inference.batch - inference.submitted;
  inference.fail(error);
  inference.submitted += rest;
  inference.back += rest;
  waiting_ -= rest;
}

void Asker::note(const serve::Completion& done) {
  const auto number = static_cast<std::uint32_t>(done.tag >> kNumberShift);
  const auto query = static_cast<std::uint32_t>(done.tag);
  Inference& inference = *active_[number];
  if (done.status.ok()) {
    const std::size_t bytes = done.answer.size();
    std::memcpy(inference.answers.data() + query * bytes, done.answer.data(), bytes);
    served_.queries.fetch_add(1, std::memory_order_relaxed);
  } else {
    inference.fail(done.status.error());
  }
  if (++inference.back == inference.batch) finish(number);
}

void Asker::finish(std::uint32_t number) {
  finished_.push_back(std::exchange(active_[number], nullptr));
  free_.push_back(number);
}

void Asker::tell() {
  std::vector<std::shared_ptr<Inference>> finished;
  finished.swap(finished_);
  for (const std::shared_ptr<Inference>& inference : finished) {
    if (inference->owner != nullptr) std::exchange(inference->owner, nullptr)->finished(*inference);
  }
}

void Asker::arm() {
  if (armed_ || idle()) return;
  armed_ = true;
  client_.wake(wake_);
}

}  // namespace headrace::wire
