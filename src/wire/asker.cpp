#include "wire/asker.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iterator>
#include <new>
#include <span>
#include <utility>

#include "base/event_descriptor.hpp"

namespace headrace::wire {

namespace {

constexpr Duration kPollsFor = std::chrono::microseconds(50);   // after each query or answer
constexpr Duration kAnswersFor = std::chrono::milliseconds(1);  // before connections get their turn again
constexpr unsigned kNumberShift = 32;  // a tag has the inference's number above that of the query within it

}  // namespace

Asker::Asker(ServedModel& served, ModelCounters& counters, int wake)
    : served_(served),
      counters_(counters),
      wake_(wake),
      client_(served.model.engine->connect()),
      polls_(served.model.engine->plan().schedule == serve::Schedule::dispatched) {}

Status Asker::ask(std::shared_ptr<Inference> inference) {
  if (const std::optional<Error> fault = served_.model.engine->fault()) return *fault;
  inference->deadline = client_.bounded(inference->deadline, inference->began);
  const Outlook outlook = outlook_of(*inference);
  if (outlook == Outlook::late) return Error{Errc::full, kWaitsTooLong};
  inference->is_close = outlook == Outlook::close;
  if (waits() && !make_room(*inference)) {
    if (!finished_.empty()) signal_event(wake_);
    return Errc::full;
  }
  if (free_.empty()) {
    active_.emplace_back();
    // Reserves, so that an inference that comes back is not lost when memory runs out.
    for (auto* const list : {&finished_, &told_}) list->reserve(active_.size());
    free_.reserve(active_.size());
    free_.push_back(static_cast<std::uint32_t>(active_.size() - 1));
  }
  const Entry entry{std::move(inference), free_.back()};
  free_.pop_back();
  active_[entry.number] = entry.inference;
  class_of(entry.inference->priority).waiting += entry.inference->batch;
  rate_.begin(entry.inference->began);
  // A request that finds a slot at once has not waited, so this saves reading the clock.
  if (waits() || !submit(entry, entry.inference->batch, entry.inference->began)) {
    wait(entry);
    feed(SteadyClock::now());
  } else if (entry.inference->back == entry.inference->batch) {
    finish(entry.number);
  }
  publish();
  if (finished_.empty()) {
    polls_until_ = entry.inference->began + kPollsFor;
    arm(entry.inference->began);
  } else {
    signal_event(wake_);  // the engine took no query of it, or another request gave way
  }
  return {};
}

void Asker::wait(const Entry& entry) {
  Inference& inference = *entry.inference;
  Class& own = class_of(inference.priority);
  const std::size_t rest = inference.batch - inference.submitted;
  try {
    const auto [found, added] = own.line_of.try_emplace(inference.client, own.lines.end());
    if (added) {
      try {
        found->second = own.lines.emplace(own.lines.end());
      } catch (...) {
        own.line_of.erase(found);
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

std::uint64_t Asker::before_in_line(const Class& own, const Inference& inference) const {
  const auto found = own.line_of.find(inference.client);
  const bool has_line = found != own.line_of.end();
  const std::uint64_t of_client = inference.batch + (has_line ? found->second->waiting : 0);
  // Every other client gets as many turns as this one needs.
  const std::uint64_t others = own.lines.size() - (has_line ? 1 : 0);
  const std::uint64_t of_each = (of_client + kTurnQueries - 1) / kTurnQueries * kTurnQueries;
  return std::min<std::uint64_t>(own.waiting + inference.batch, of_client + others * of_each);
}

Outlook Asker::outlook_of(const Inference& inference) {
  if (inference.deadline == Time::max()) return Outlook::early;
  const Class& own = class_of(inference.priority);
  const bool is_high = inference.priority == Priority::high;
  const std::uint64_t in_class = waits() ? before_in_line(own, inference) : 0;
  const std::uint64_t turns = (in_class + kTurnQueries - 1) / kTurnQueries;
  const std::uint64_t of_others = is_high ? in_class / kHighRun * kTurnQueries
                                          : std::min<std::uint64_t>(class_of(Priority::high).waiting, turns * kHighRun);
  Duration expected = rate_.time_of(client_.in_flight(), in_class + of_others, margin_.stretch());
  if (!is_high && of_others > 0 && !own.lines.empty()) {
    // Later requests of high priority overtake this one as well. The rate of normal queries shows what they leave over.
    expected = std::max(expected, normal_rate_.time_of(0, in_class));
  }
  const Time now = SteadyClock::now();
  const Duration left = inference.deadline - now;
  return left > Duration{} ? margin_.outlook(expected, left, now) : Outlook::early;  // a late one gets another error
}

bool Asker::make_room(const Inference& inference) {
  Class& high = class_of(Priority::high);
  Class& normal = class_of(Priority::normal);
  // After a lower bound has been set, those that wait stay: the line must only not grow.
  const std::size_t bound = served_.waiting_max.load(std::memory_order_relaxed);
  const std::size_t most = std::max(bound, high.waiting + normal.waiting);
  const std::size_t kept = bound / kNormalShare;
  if (inference.priority == Priority::normal) {
    return make_room_among(normal, inference, std::max(kept, most - high.waiting));
  }
  if (!make_room_among(high, inference, most - kept)) return false;
  while (normal.waiting > kept && high.waiting + normal.waiting + inference.batch > most) {
    refuse_last(normal, std::ranges::max_element(normal.lines, {}, &Line::waiting));
  }
  return true;
}

bool Asker::make_room_among(Class& own, const Inference& inference, std::size_t most) {
  if (own.lines.empty()) return true;
  const auto found = own.line_of.find(inference.client);
  const std::size_t of_client = inference.batch + (found == own.line_of.end() ? 0 : found->second->waiting);
  // A client keeps its only waiting request.
  const auto to_spare = [](const Line& line) { return line.entries.size() > 1 ? line.waiting : 0; };
  while (own.waiting + inference.batch > most) {
    const auto longest = std::ranges::max_element(own.lines, {}, to_spare);
    if (longest == own.lines.end() || to_spare(*longest) <= of_client) return false;
    refuse_last(own, longest);
  }
  return true;
}

void Asker::refuse_last(Class& from, Lines::iterator line) {
  const Entry last = line->entries.back();
  line->entries.pop_back();
  line->waiting -= last.inference->batch - last.inference->submitted;
  drop_rest(last, {Errc::full, 0});
  if (last.inference->back == last.inference->batch) finish(last.number);
  if (line->entries.empty()) leave(from, line);
}

Asker::Lines::iterator Asker::leave(Class& from, Lines::iterator line) {
  from.line_of.erase(line->client);
  return from.lines.erase(line);
}

void Asker::take_in() {
  armed_ = false;
  const auto note_one = [this](const serve::Completion& done) { note(done); };
  std::size_t back = 0;
  served_back_ = normal_back_ = 0;
  const Time until = client_.answers_itself() ? SteadyClock::now() + kAnswersFor : Time::max();
  while (const std::size_t some = client_.poll(note_one)) {
    back += some;
    if (until != Time::max() && SteadyClock::now() >= until) break;
  }
  const Time now = SteadyClock::now();
  for (const std::shared_ptr<Inference>& inference : finished_) inference->back_at = now;
  rate_.add(served_back_, client_.in_flight() + back, now);
  if (client_.in_flight() == 0 && !waits()) rate_.pause(now);
  if (class_of(Priority::normal).lines.empty()) {
    normal_rate_.pause(now);
  } else {
    normal_rate_.add(normal_back_, 0, now);
  }
  expire(now);
  feed(now);
  publish();
  tell(now);
  if (back > 0) polls_until_ = now + kPollsFor;
  arm(now);
}

void Asker::feed(Time now) {
  Class& high = class_of(Priority::high);
  Class& normal = class_of(Priority::normal);
  const auto gone = [](std::size_t before, const Class& of) { return static_cast<std::uint32_t>(before - of.waiting); };
  bool has_room = true;
  while (has_room && waits()) {
    if (high.lines.empty() || normal.lines.empty()) {
      high_run_ = normal_run_ = 0;
      has_room = feed_from(high.lines.empty() ? normal : high, kTurnQueries, now);
    } else if (high_run_ < kHighRun) {
      const std::size_t before = high.waiting;
      has_room = feed_from(high, kTurnQueries, now);
      high_run_ += gone(before, high);
    } else {
      const std::size_t before = normal.waiting;
      has_room = feed_from(normal, kTurnQueries - normal_run_, now);
      normal_run_ += gone(before, normal);
      if (normal_run_ >= kTurnQueries) high_run_ = normal_run_ = 0;
    }
  }
}

bool Asker::feed_from(Class& from, std::uint32_t most, Time now) {
  Line& line = from.lines.front();
  const Entry entry = line.entries.front();
  const std::size_t waited = from.waiting;
  const std::uint32_t asked = std::min(most, line.turn);
  const bool is_done = submit(entry, asked, now);
  const std::size_t fewer = waited - from.waiting;
  line.waiting -= fewer;
  line.turn -= static_cast<std::uint32_t>(std::min<std::size_t>(fewer, line.turn));
  if (is_done) {
    line.entries.pop_front();
    if (entry.inference->back == entry.inference->batch) finish(entry.number);
  }
  if (line.entries.empty()) {
    leave(from, from.lines.begin());
  } else if (line.turn == 0) {
    line.turn = kTurnQueries;
    from.lines.splice(from.lines.end(), from.lines, from.lines.begin());
  } else if (!is_done && fewer < asked) {
    return false;  // the engine has no free slot
  }
  return true;
}

void Asker::expire(Time now) {
  if (now < line_soonest_) return;
  line_soonest_ = Time::max();
  for (Class& from : classes_) {
    for (auto line = from.lines.begin(); line != from.lines.end();) {
      const std::size_t waited = from.waiting;
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
      line->waiting -= waited - from.waiting;
      line = line->entries.empty() ? leave(from, line) : std::next(line);
    }
  }
}

bool Asker::submit(const Entry& entry, std::size_t most, Time now) {
  Inference& inference = *entry.inference;
  if (inference.owner == nullptr) {  // the client no longer waits
    drop_rest(entry, {Errc::cancelled, 0});
    return true;
  }
  Class& own = class_of(inference.priority);
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
    --own.waiting;
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
  class_of(inference.priority).waiting -= rest;
}

void Asker::note(const serve::Completion& done) {
  const auto number = static_cast<std::uint32_t>(done.tag >> kNumberShift);
  const auto query = static_cast<std::uint32_t>(done.tag);
  Inference& inference = *active_[number];
  if (was_served(done.status)) {
    ++served_back_;
    if (inference.priority == Priority::normal) ++normal_back_;
  }
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

void Asker::tell(Time now) {
  told_.swap(finished_);
  for (const std::shared_ptr<Inference>& inference : told_) {
    const bool gave_way = !inference->status.ok() && inference->status.error().code == Errc::full;
    if (inference->is_close && !gave_way) {
      margin_.ended(now - inference->began, inference->deadline - inference->began, now);
    }
    if (inference->owner != nullptr) {
      std::exchange(inference->owner, nullptr)->finished(*inference);
    } else {
      const Duration duration = SteadyClock::now() - inference->began;
      counters_.of(inference->protocol).add(RequestOutcome::cancelled, inference->batch, duration);
      counters_.of(inference->priority).requests.add(RequestOutcome::cancelled, 1);
    }
  }
  told_.clear();
}

void Asker::publish() noexcept {
  const std::size_t in_flight = client_.in_flight();
  for (std::size_t i = 0; i < kPriorities; ++i) {
    Class& one = classes_[i];
    if (one.waiting == one.published) continue;
    counters_.priorities[i].queries_waiting.add(one.waiting - std::exchange(one.published, one.waiting));  // may wrap
  }
  counters_.queries_in_flight.add(in_flight - std::exchange(published_in_flight_, in_flight));
}

void Asker::arm(Time now) {
  if (armed_ || idle() || client_.answers_itself()) return;
  if (polls_ && client_.in_flight() > 0) {
    if (now < polls_until_) return;  // soonest() makes the loop call take_in() again
  }
  armed_ = true;
  client_.wake(wake_);
}

}  // namespace headrace::wire
