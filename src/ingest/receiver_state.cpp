#include "ingest/receiver_state.hpp"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "headrace/base/detail/threads.hpp"
#include "headrace/base/error.hpp"
#include "ingest/require.hpp"

namespace headrace::ingest {

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

/// How long to wait for packets while copies are in flight, so that their frames are handed on soon.
constexpr Duration kCopyLook = microseconds(20);
/// The same while streams are open, or consumers have frames of ended ones: frames that are released make space.
constexpr Duration kSpaceLook = milliseconds(1);
/// The longest wait after which the receiver's thread checks whether it is to stop.
constexpr Duration kStopLook = milliseconds(20);
constexpr Duration kCountersAge = milliseconds(50);
/// A source that returns fewer packets than this, although more were requested, has no more.
constexpr std::size_t kSourceBurst = 64;

ReceiverOptions checked(const ReceiverOptions& options, std::uint32_t streams) {
  require(options.burst_packets >= 1 && options.burst_packets <= kBurstMax, "receiver", "burst_packets",
          options.burst_packets, "1 to 65,536");
  require(streams >= 1 && streams <= kBurstMax, "receiver", "connections", streams, "1 to 65,536");
  if (options.control == Control::resident &&
      (options.builder.way != CopyWay::automatic || options.builder.ring_access != RingAccess::automatic)) {
    throw UsageError(
        fmt::format("resident control chooses the copy way and the ring access itself; leave them automatic "
                    "instead of '{}' and '{}'",
                    to_string(options.builder.way), to_string(options.builder.ring_access)));
  }
  return options;
}

/// None with resident control.
std::optional<Builder> make_builder(Device device, const Ring& ring, const ReceiverOptions& options) {
  if (options.control == Control::resident) return {};
  return std::optional<Builder>(std::in_place, device, ring.buffer(), options.builder);
}

}  // namespace

Receiver::State::State(Source& source, Ring& ring, Device device, const ReceiverOptions& options,
                       const FrameOptions& frames, std::uint32_t streams, Answers answers)
    : source_(source),
      ring_(ring),
      answers_(answers),
      converts_(frames.conversion != Conversion::none),
      packets_(checked(options, streams).burst_packets),
      builder_(make_builder(device, ring, options)),
      streams_(device, frames, builder_ ? &*builder_ : nullptr, deliveries_, streams, options.memory_bytes_max) {}

/// The longest wait that makes nothing late.
Duration Receiver::State::wait_at_most(Duration timeout, Time now) const {
  const Duration patience = gathered_ ? intake_->patience(to_ns(now)) : Duration{};
  if (gathered_ && patience <= Duration{}) return {};
  Duration wait = gathered_ ? std::min(timeout, patience) : timeout;
  if (streams_.busy()) wait = std::min(wait, kSpaceLook);
  if (!gathered_ && ring_.released() != ring_.published()) wait = std::min(wait, kCopyLook);
  const std::uint64_t deadline = intake_->next_deadline();
  if (deadline <= to_ns(now)) return {};
  return std::min(wait, Duration{static_cast<std::int64_t>(
                            std::min<std::uint64_t>(deadline - to_ns(now), static_cast<std::uint64_t>(wait.count())))});
}

std::size_t Receiver::State::receive(Duration timeout) {
  if (coalescing_.pause() > Duration{}) std::this_thread::sleep_for(std::min(timeout, coalescing_.pause()));
  const Duration wait = wait_at_most(timeout, SteadyClock::now());
  const std::size_t most = intake_->room(packets_.size());
  drained_ = true;
  if (most == 0) {
    if (wait > Duration{}) std::this_thread::sleep_for(std::min(wait, kSpaceLook));
    return 0;
  }
  source_.expect(intake_->expect());
  const auto got = source_.receive({packets_.data(), most}, wait);
  if (!got && intake_->is_waiting()) {  // packets from before the error have to be placed first
    std::this_thread::sleep_for(std::min(timeout, kSpaceLook));
    return 0;
  }
  if (!got) throw_source_error("receiving packets", source_, got.error());
  drained_ = *got < std::min(most, kSourceBurst) && !ring_is_full();
  note_burst(*got);
  if (!defragmenter_) return *got;
  const std::size_t whole = defragmenter_->pass(std::span(packets_).first(*got), ring_, source_.layer());
  if (whole == 0 && *got != 0) intake_->pass_over();
  return whole;
}

void Receiver::State::note_burst(std::size_t count) {
  std::uint64_t bytes = 0;
  for (const Packet& packet : std::span(packets_).first(count)) bytes += packet.length;
  const Time now = SteadyClock::now();
  coalescing_.note({.bytes = bytes,
                    .at = now,
                    .drained = drained_,
                    .copies_wait = intake_->patience(to_ns(now)) > Coalescing::kThinPause});
}

void Receiver::State::require_answers() const {
  if (answers_ == Answers::not_resident) {
    throw UsageError("resident control cannot send answers or show parts of frames; use host control");
  }
  if (answers_ == Answers::not_others)
    throw UsageError("the stream belongs to a connection between other hosts, which cannot be answered");
  if (answers_ == Answers::not_datagrams)
    throw UsageError("a stream of datagrams cannot be answered; only TCP streams can");
}

void Receiver::State::require_unconverted() const {
  if (converts_) throw UsageError("converted frames cannot be read before they are complete");
}

/// Returns slots to the source and delivers frames to the consumer, as far as copies are done.
void Receiver::State::hand_on() {
  handing_on_ = true;  // stays true if this throws
  const std::uint64_t copied = intake_->copied();
  ring_.release(copied);
  streams_.collect(copied);
  handing_on_ = false;
}

bool Receiver::State::step(Duration timeout) {
  if (finished_) return false;
  const std::uint64_t before = ring_.published();
  const std::size_t count = receive(timeout);
  const Time now = SteadyClock::now();
  if (count != 0) {
    intake_->take({packets_.data(), count}, before, to_ns(now));
    gathered_ = true;
  } else if (!gathered_ || intake_->patience(to_ns(now)) <= Duration{} || ring_is_full()) {
    intake_->flush(ring_is_full());
    gathered_ = false;
    streams_.poll(now);
  }
  for (StreamRequest& request : requests_.take()) intake_->obey(std::move(request), to_ns(now));
  intake_->act(to_ns(now), drained_);
  hand_on();
  if (count == 0 && source_.ended() && !intake_->is_waiting()) end();
  if (started_ && !finished_) publish_counters(now);
  return !finished_;
}

/// Ends all streams and delivers what has come of them.
void Receiver::State::end() {
  intake_->end(to_ns(SteadyClock::now()));
  hand_on();
  finished_ = true;
  if (started_) publish_counters(SteadyClock::now());  // before any consumer can see the end
  deliveries_.close();
}

void Receiver::State::start() {
  if (started_.exchange(true)) throw UsageError("the receiver has already been started");
  publish_counters(SteadyClock::now());
  start_each("threads of a receiver", 1,
             [this](std::size_t) { thread_ = std::jthread([this](const std::stop_token& token) { run(token); }); });
}

void Receiver::State::run(const std::stop_token& token) noexcept {
  ::pthread_setname_np(::pthread_self(), "headrace-ingest");
  ::prctl(PR_SET_TIMERSLACK, 1);  // waits are short; by default the kernel may prolong them by 50 us
  try {
    while (!token.stop_requested() && step(kStopLook)) {
    }
  } catch (...) {
    finished_ = true;
    fail(std::current_exception());
  }
}

/// READY frames are delivered before the error, unless handing on failed: then a frame may have been lost, and no later
/// frame may be delivered as if nothing were missing.
void Receiver::State::fail(const std::exception_ptr& why) noexcept {
  intake_->give_up();
  if (!handing_on_) {
    try {
      hand_on();
    } catch (...) {  // NOLINT(bugprone-empty-catch): why it ends is known
    }
  }
  if (started_) publish_counters(SteadyClock::now());
  deliveries_.fail(why);
}

void Receiver::State::stop() noexcept {
  if (birth.inherited()) return;  // the thread is the parent's and continues there
  if (thread_.joinable()) {
    thread_.request_stop();
    thread_.join();
  }
  if (!finished_ && intake_) {
    try {
      end();
    } catch (...) {
      finished_ = true;
      fail(std::current_exception());
    }
  }
}

ReceiverCounters Receiver::State::count() const {
  ReceiverCounters counters;
  intake_->count(counters);
  if (defragmenter_) counters.fragments = defragmenter_->counters();
  counters.source = source_.counters();
  for (std::size_t i = 0; i < kParseResults; ++i) counters.refused[i] += counters.tcp.unparsed[i];
  if (builder_) counters.builder = builder_->counters();
  counters.frames = streams_.counters();
  counters.open_streams = streams_.open_count();
  counters.memory_failures = streams_.memory_failures();
  counters.streams_refused = counters.tcp.silent_timed_out;
  counters.deliveries_waiting = deliveries_.waiting();
  return counters;
}

void Receiver::State::publish_counters(Time now) {
  if (counted_at_ != Time{} && now - counted_at_ < kCountersAge && !finished_) return;
  counted_at_ = now;
  const ReceiverCounters counters = count();
  const std::lock_guard lock(counters_mutex_);
  counters_ = counters;
}

ReceiverCounters Receiver::State::counters() const {
  if (!started_) return count();
  const std::lock_guard lock(counters_mutex_);
  return counters_;
}

}  // namespace headrace::ingest
