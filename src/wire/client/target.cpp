#include "wire/client/target.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "headrace/base/error.hpp"
#include "headrace/config.hpp"
#include "wire/client/protocols.hpp"

namespace headrace::wire::client {

namespace {

using std::chrono::milliseconds;

constexpr std::size_t kWaitingMost = 1 << 22;  // most queries that wait for a stream: 32 MiB of times
constexpr Duration kCheckPause = milliseconds(10);
constexpr Duration kStoodStill = std::chrono::seconds(1);  // a longer gap means that this process did not run
constexpr Duration kStopAfter = milliseconds(500);         // for requests in flight when the load is stopped
constexpr Duration kWorthARest = std::chrono::microseconds(200);
constexpr Duration kWakeEarly = std::chrono::microseconds(100);  // the system wakes threads about this much too late

double seconds_of(Duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

Target::Target(const Endpoint& endpoint, const Requests& requests, std::size_t connections, std::uint32_t streams)
    : shared_(std::make_unique<Shared>(endpoint, requests, streams)) {
  for (std::size_t i = 0; i < connections; ++i) {
    if constexpr (kBuiltWithGrpc) {
      if (endpoint.protocol == Protocol::grpc) {
        channels_.push_back(make_grpc_channel(*shared_));
        continue;
      }
    }
    channels_.push_back(make_http_channel(*shared_));
  }
}

Target::~Target() = default;
Target::Target(Target&&) noexcept = default;

bool Target::connect(const std::stop_token& stop) {
  const auto is_up = [](const auto& channel) { return channel->usable(); };
  const Endpoint& endpoint = shared_->endpoint;
  const Time until = SteadyClock::now() + endpoint.patience;
  for (Time now = SteadyClock::now(); !std::ranges::all_of(channels_, is_up); now = SteadyClock::now()) {
    if (stop.stop_requested()) return false;
    const auto up = std::ranges::count_if(channels_, is_up);
    const bool is_refused = up == 0 && !shared_->why_down.empty();
    if (is_refused || now > until) {
      const std::string why = shared_->why_down.empty()
                                  ? fmt::format("no answer within {:g} s", seconds_of(endpoint.patience))
                                  : shared_->why_down;
      const std::string made =
          up == 0 ? "" : fmt::format(" (only {} of {} connections succeeded)", up, channels_.size());
      throw SystemError(Errc::system, fmt::format("connecting to {}{}: {}", endpoint.authority, made, why));
    }
    for (const auto& channel : channels_) channel->check(now);
    flush();
    shared_->loop.wait(now + milliseconds(10));
  }
  shared_->connections_lost = 0;
  up_at_ = SteadyClock::now();
  return true;
}

bool Target::submit(Time scheduled) {
  const Asked asked{.scheduled = scheduled, .is_high = shared_->priorities && shared_->priorities->draw()};
  Channel* const channel = waiting_.empty() ? find_room() : nullptr;
  if (channel != nullptr) {
    ask(*channel, asked);
  } else if (waiting_.size() < kWaitingMost) {
    waiting_.push_back(asked);
  } else {
    shared_->note(asked, measure::Outcome::unsent);
  }
  return true;
}

void Target::turn() {
  shared_->back.clear();
  handed_out_ = 0;
  shared_->loop.wait(Time::zero());  // already passed, so the loop does not wait
  const Time now = SteadyClock::now();
  if (now - checked_at_ >= kCheckPause) check(now);
  next_channel();
  while (!waiting_.empty()) {
    Channel* const channel = find_room();
    if (channel == nullptr) break;
    ask(*channel, waiting_.front());
    waiting_.pop_front();
  }
  flush();
}

void Target::check(Time now) {
  const Endpoint& endpoint = shared_->endpoint;
  if (now - checked_at_ > kStoodStill) up_at_ = shared_->heard_at = now;
  checked_at_ = now;
  if (std::ranges::any_of(channels_, [](const auto& channel) { return channel->usable(); })) up_at_ = now;
  if (now >= finish_until_) {
    for (const auto& channel : channels_) channel->lose("the load has ended");
    return;
  }
  if (finish_until_ != Time::max()) return;
  if (now - up_at_ > endpoint.patience) {
    throw SystemError(Errc::system, fmt::format("{} went away and has not come back for {:g} s: {}", endpoint.authority,
                                                seconds_of(endpoint.patience), shared_->why_down));
  }
  if (shared_->in_flight > 0 && now - shared_->heard_at > endpoint.patience) {
    throw SystemError(Errc::system, fmt::format("{} has {} requests in flight and has sent nothing for {:g} s",
                                                endpoint.authority, shared_->in_flight, seconds_of(endpoint.patience)));
  }
  for (const auto& channel : channels_) channel->check(now);
}

Channel* Target::find_room() noexcept {
  for (std::size_t tried = 0; tried < channels_.size(); ++tried) {
    if (channels_[channel_]->has_room()) return channels_[channel_].get();
    next_channel();
  }
  return nullptr;
}

void Target::ask(Channel& channel, const Asked& asked) {
  const auto& contents = asked.is_high ? shared_->requests.high_contents : shared_->requests.contents;
  channel.ask(asked, contents[next_content_]);
  next_content_ = next_content_ + 1 == contents.size() ? 0 : next_content_ + 1;
}

void Target::flush() {
  for (Channel* const channel : shared_->unflushed) channel->flush();
  shared_->unflushed.clear();
}

void Target::rest(Time until) {
  if (handed_out_ < shared_->back.size()) return;
  const Duration left = until - SteadyClock::now();
  if (left < kWorthARest) return;
  flush();
  pollfd watched{.fd = shared_->loop.descriptor(), .events = POLLIN, .revents = 0};
  const timespec most{.tv_sec = 0, .tv_nsec = (left - kWakeEarly).count()};
  ::ppoll(&watched, 1, &most, nullptr);
}

void Target::finish(bool stopped) {
  for (const Asked& asked : std::exchange(waiting_, {})) shared_->note(asked, measure::Outcome::unsent);
  finish_until_ = SteadyClock::now() + (stopped ? kStopAfter : shared_->endpoint.patience);
}

}  // namespace headrace::wire::client
