#include "wire/asker.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>
#include <span>
#include <utility>

#include "base/event_descriptor.hpp"

namespace headrace::wire {

namespace {

/// What is expected may take a quarter longer: under overload the line is as long as is allowed, and half of what was
/// just in time would be late.
constexpr int kReserve = 4;
constexpr unsigned kNumberShift = 32;  // a tag is the inference's number, and below it that of the query in it

}  // namespace

Asker::Asker(ServedModel& served, ModelCounters& counters, std::size_t waiting_max, int wake)
    : served_(served),
      counters_(counters),
      waiting_max_(waiting_max),
      wake_(wake),
      client_(served.model.engine->connect()) {}

Status Asker::ask(std::shared_ptr<Inference> inference) {
  if (const std::optional<Error> fault = served_.model.engine->fault()) return *fault;
  if (would_be_late(*inference)) return Error{Errc::full, kWaitsTooLong};
  if (!lines_.empty() && !make_room(*inference)) {
    if (!finished_.empty()) signal_event(wake_);
    return Errc::full;
  }
  if (free_.empty()) {
    active_.emplace_back();
    // Where memory ends, an inference that has come back is not lost.
    for (auto* const list : {&finished_, &told_}) list->reserve(active_.size());
    free_.reserve(active_.size());
    free_.push_back(static_cast<std::uint32_t>(active_.size() - 1));
  }
  const Entry entry{std::move(inference), free_.back()};
  free_.pop_back();
  active_[entry.number] = entry.inference;
  waiting_ += entry.inference->batch;
  const Time now = SteadyClock::now();
  if (!lines_.empty() || !submit(entry, entry.inference->batch, now)) {
    wait(entry);
    feed(now);
  } else if (entry.inference->back == entry.inference->batch) {
    finish(entry.number);
  }
  publish();
  if (finished_.empty()) {
    arm();
  } else {
    signal_event(wake_);  // the engine took none of it, or another request gave way
  }
  return {};
}

void Asker::wait(const Entry& entry) {
  Inference& inference = *entry.inference;
  const std::size_t rest = inference.batch - inference.submitted;
  try {
    const auto [found, added] = line_of_.try_emplace(inference.client, lines_.end());
    if (added) {
      try {
        found->second = lines_.emplace(lines_.end());
      } catch (...) {
        line_of_.erase(found);
        throw;
      }
    }
    Line& line = *found->second;
    line.client = inference.client;
    line.entries.push_back(entry);
    line.waiting += rest;
    line_soonest_ = std::min(line_soonest_, inference.deadline);
  } catch (const std::bad_alloc&) {
    drop_rest(entry, {Errc::out_of_memory, 0});
    if (inference.back == inference.batch) finish(entry.number);
  }
}

bool Asker::would_be_late(const Inference& inference) const {
  if (inference.deadline == Time::max()) return false;
  const auto found = line_of_.find(inference.client);
  const bool has_line = found != line_of_.end();
  const std::uint64_t own = inference.batch + (has_line ? found->second->waiting : 0);
  // Each other client has as many turns as this one needs.
  const std::uint64_t others = lines_.size() - (has_line ? 1 : 0);
  const std::uint64_t of_each = (own + kTurnQueries - 1) / kTurnQueries * kTurnQueries;
  const std::uint64_t in_line = std::min<std::uint64_t>(waiting_ + inference.batch, own + others * of_each);
  const Duration expected = rate_.time_of(client_.in_flight(), lines_.empty() ? 0 : in_line);
  const Duration left = inference.deadline - SteadyClock::now();
  return left > Duration{} && expected + expected / kReserve > left;  // one that is late already is told so
}

bool Asker::make_room(const Inference& inference) {
  const auto own = line_of_.find(inference.client);
  const std::size_t of_client = inference.batch + (own == line_of_.end() ? 0 : own->second->waiting);
  // What a client's only request waits for is not taken from it.
  const auto to_spare = [](const Line& line) { return line.entries.size() > 1 ? line.waiting : 0; };
  while (waiting_ + inference.batch > waiting_max_) {
    const auto longest = std::ranges::max_element(lines_, {}, to_spare);
    if (longest == lines_.end() || to_spare(*longest) <= of_client) return false;
    const Entry last = longest->entries.back();
    longest->entries.pop_back();
    longest->waiting -= last.inference->batch - last.inference->submitted;
    drop_rest(last, {Errc::full, 0});
    if (last.inference->back == last.inference->batch) finish(last.number);
  }
  return true;
}

Asker::Lines::iterator Asker::leave(Lines::iterator line) {
  line_of_.erase(line->client);
  return lines_.erase(line);
}

void Asker::take_in() {
  armed_ = false;
  const auto note_one = [this](const serve::Completion& done) { note(done); };
  std::size_t back = 0;
  while (const std::size_t some = client_.poll(note_one)) back += some;
  const Time now = SteadyClock::now();
  for (const std::shared_ptr<Inference>& inference : finished_) inference->back_at = now;
  if (client_.in_flight() == 0) {
    rate_.pause();
  } else {
    rate_.add(back, client_.in_flight() + back, now);
  }
  expire(now);
  feed(now);
  publish();
  tell();
  arm();
}

void Asker::feed(Time now) {
  while (!lines_.empty()) {
    Line& line = lines_.front();
    const Entry entry = line.entries.front();
    const std::size_t waited = waiting_;
    const bool gone = submit(entry, line.turn, now);
    const std::size_t fewer = waited - waiting_;
    line.waiting -= fewer;
    line.turn -= static_cast<std::uint32_t>(std::min<std::size_t>(fewer, line.turn));
    if (gone) {
      line.entries.pop_front();
      if (entry.inference->back == entry.inference->batch) finish(entry.number);
    }
    if (line.entries.empty()) {
      leave(lines_.begin());
    } else if (line.turn == 0) {
      line.turn = kTurnQueries;
      lines_.splice(lines_.end(), lines_, lines_.begin());
    } else if (!gone) {
      return;  // the engine has no slot
    }
  }
}

void Asker::expire(Time now) {
  if (now < line_soonest_) return;
  line_soonest_ = Time::max();
  for (auto line = lines_.begin(); line != lines_.end();) {
    const std::size_t waited = waiting_;
    std::erase_if(line->entries, [&](const Entry& entry) {
      Inference& inference = *entry.inference;
      if (inference.deadline > now) {
        line_soonest_ = std::min(line_soonest_, inference.deadline);
        return false;
      }
      drop_rest(entry, {Errc::deadline_exceeded, 0});
      if (inference.back == inference.batch) finish(entry.number);
      return true;
    });
    line->waiting -= waited - waiting_;
    line = line->entries.empty() ? leave(line) : std::next(line);
  }
}

bool Asker::submit(const Entry& entry, std::size_t most, Time now) {
  Inference& inference = *entry.inference;
  if (inference.owner == nullptr) {  // nobody waits any more
    drop_rest(entry, {Errc::cancelled, 0});
    return true;
  }
  const std::size_t bytes = inference.queries.size() / inference.batch;
  const std::span<const std::byte> queries(inference.queries);
  const std::size_t end = inference.submitted + std::min(most, inference.batch - inference.submitted);
  while (inference.submitted < end) {
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
  if (inference.submitted < inference.batch) return false;
  inference.submitted_at = now;
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
  told_.swap(finished_);
  for (const std::shared_ptr<Inference>& inference : told_) {
    if (inference->owner != nullptr) {
      std::exchange(inference->owner, nullptr)->finished(*inference);
    } else {
      const Duration duration = SteadyClock::now() - inference->began;
      counters_.of(inference->protocol).add(RequestOutcome::cancelled, inference->batch, duration);
    }
  }
  told_.clear();
}

void Asker::publish() noexcept {
  const std::size_t in_flight = client_.in_flight();
  counters_.queries_waiting.add(waiting_ - std::exchange(published_waiting_, waiting_));  // also where they are fewer
  counters_.queries_in_flight.add(in_flight - std::exchange(published_in_flight_, in_flight));
}

void Asker::arm() {
  if (armed_ || idle()) return;
  armed_ = true;
  client_.wake(wake_);
}

}  // namespace headrace::wire
