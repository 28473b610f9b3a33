#include "wire/asking.hpp"

#include <chrono>

#include "wire/request_error.hpp"

namespace headrace::wire {

namespace {

std::int64_t wall_milliseconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

}  // namespace

bool ask(Front& front, const std::shared_ptr<Inference>& inference) {
  const Status taken = front.askers[inference->served->index].ask(inference);
  if (taken.ok()) return true;
  inference->owner = nullptr;
  inference->fail(taken.error());
  count(*inference);
  return false;
}

void count(const Inference& inference) noexcept {
  ServedModel& served = *inference.served;
  const bool answered = inference.status.ok();
  (answered ? served.succeeded : served.failed).add(SteadyClock::now() - inference.began);
  if (answered) served.last_inference.store(wall_milliseconds(), std::memory_order_relaxed);
}

void count_reply(Shared& shared, int status) noexcept {
  shared.requests.fetch_add(1, std::memory_order_relaxed);
  if (status >= kBadRequest) shared.failed.fetch_add(1, std::memory_order_relaxed);
  if (status == kTooManyRequests || status == kUnavailable) shared.refused.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace headrace::wire
