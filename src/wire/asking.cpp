#include "wire/asking.hpp"

#include <cstdint>

#include "wire/request_error.hpp"

namespace headrace::wire {

bool ask(Front& front, const std::shared_ptr<Inference>& inference) {
  const Status taken = inference->served->askers[front.thread]->ask(inference);
  if (taken.ok()) return true;
  inference->owner = nullptr;
  inference->fail(taken.error());
  return false;
}

void count(Front& front, const Inference& inference, int status) noexcept {
  ModelCounters& counters = (*inference.served->counters)[front.thread];
  const RequestOutcome outcome = outcome_of(status);
  ProtocolCounters& counted = counters.of(inference.protocol);
  const Time now = SteadyClock::now();
  counted.add(outcome, inference.batch, now - inference.began);
  counters.of(inference.priority).requests.add(outcome, 1);
  if (outcome == RequestOutcome::answered) {
    counted.add_stages({.read = inference.began - inference.arrived,
                        .queue = inference.submitted_at - inference.began,
                        .engine = inference.back_at - inference.submitted_at,
                        .reply = now - inference.back_at});
    counters.last_inference.set(static_cast<std::uint64_t>(front.shared.wall_milliseconds_at(now)));
  }
  if (inference.trace) front.shared.traces.add(inference, status, now);
}

void count_unread(Front& front, Protocol protocol, const ServedModel* model, int status) noexcept {
  if (model != nullptr) (*model->counters)[front.thread].of(protocol).add_unread(outcome_of(status));
}

void count_reply(Front& front, Protocol protocol, int status) noexcept {
  front.replies.protocols[static_cast<std::size_t>(protocol)].add(outcome_of(status), 1);
  if (status == kUnauthorized) front.replies.unauthorized.add(1);
}

}  // namespace headrace::wire
