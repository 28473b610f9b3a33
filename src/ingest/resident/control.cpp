#include "ingest/resident/control.hpp"

#include <algorithm>

#include "ingest/resident/state.hpp"

namespace headrace::ingest {

using resident::CommandKind;

ResidentControl::ResidentControl(Device device, const Buffer& ring, Layer layer, const ResidentOptions& options)
    : state_(std::make_unique<State>(device, ring, layer, options)) {
  state_->wait_running();
}

ResidentControl::ResidentControl(ResidentControl&&) noexcept = default;

ResidentControl::~ResidentControl() {
  // What a kernel that does not end may still use can be neither freed nor waited for.
  if (!state_) return;
  if (const Status stopped = state_->stop(); !stopped && stopped.error().code == Errc::hung) {
    [[maybe_unused]] const State* const kept = state_.release();
  }
}

void ResidentControl::set_time(std::uint64_t now) noexcept { state_->set_time(now); }
Result<std::size_t> ResidentControl::post(std::span<const Packet> packets) noexcept { return state_->post(packets); }
Status ResidentControl::poll() noexcept { return state_->poll(); }
std::uint64_t ResidentControl::copied() const noexcept { return state_->copied(); }
std::optional<Reply> ResidentControl::next_reply() noexcept { return state_->next_reply(); }
Result<std::optional<Event>> ResidentControl::next_event() noexcept { return state_->next_event(); }
std::size_t ResidentControl::room() const noexcept { return state_->packet_room(); }
bool ResidentControl::settled() const noexcept { return state_->settled(); }
std::uint32_t ResidentControl::attach(FrameRing& frames) { return state_->attach(frames); }

Status ResidentControl::close(std::uint32_t connection, std::uint32_t stream) noexcept {
  return state_->command({.kind = CommandKind::close, .connection = connection, .stream = stream});
}
Status ResidentControl::abort(std::uint32_t connection, std::uint32_t stream) noexcept {
  return state_->command({.kind = CommandKind::abort, .connection = connection, .stream = stream});
}

Result<std::size_t> ResidentControl::step(Source& source, Ring& ring, Duration timeout) noexcept {
  return state_->step(source, ring, timeout);
}

Status ResidentControl::stop() noexcept { return state_->stop(); }
const ResidentCounters& ResidentControl::counters() const noexcept { return state_->counters; }
std::string ResidentControl::failure() const { return state_->failure(); }

Result<std::size_t> ResidentControl::State::step(Source& source, Ring& ring, Duration timeout) noexcept {
  set_time(static_cast<std::uint64_t>(SteadyClock::now().count()));
  const std::size_t room = std::min(burst_.size(), packet_room());
  std::size_t count = 0;
  if (room != 0) {
    const bool idle = copied() == packets_end_;
    const auto came = source.receive(std::span(burst_).first(room), idle ? timeout : Duration::zero());
    if (!came) return came.error();
    count = *came;
    set_time(static_cast<std::uint64_t>(SteadyClock::now().count()));
    const auto posted = post(std::span(burst_).first(count));
    if (!posted) return posted.error();
  }
  if (const Status polled = poll(); !polled) return polled.error();
  while (const auto reply = next_reply()) {
    if (source.send(std::span(reply->bytes, reply->length))) {
      ++counters.replies_sent;
    } else {
      ++counters.replies_lost;  // as if the network had lost it
    }
  }
  ring.release(copied());
  return count;
}

}  // namespace headrace::ingest
