#include "headrace/ingest/receiver.hpp"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/prctl.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "headrace/base/error.hpp"
#include "headrace/base/process.hpp"
#include "headrace/base/threads.hpp"
#include "ingest/coalescing.hpp"
#include "ingest/defragmenter.hpp"
#include "ingest/intake.hpp"
#include "ingest/require.hpp"

namespace headrace::ingest {

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

/// How long to wait for packets while copies are under way, whose frames are to be handed on.
constexpr Duration kCopyLook = microseconds(20);
/// While streams are open, or consumers have frames of those that were: what is released makes space.
constexpr Duration kSpaceLook = milliseconds(1);
/// A stopped receiver's thread looks no later than that.
constexpr Duration kStopLook = milliseconds(20);
constexpr Duration kCountersAge = milliseconds(50);
constexpr std::uint32_t kBurstMax = 1U << 16;
/// A source that gives fewer packets at once, where more were asked for, has no more.
constexpr std::size_t kSourceBurst = 64;

std::uint64_t to_ns(Time time) noexcept { return static_cast<std::uint64_t>(time.count()); }

FrameOptions frames_of(const DatagramReception& datagrams, const ReceiverOptions& options) {
  if (options.control == Control::resident) {
    throw UsageError("resident control receives TCP: of datagrams, control is the host's");
  }
  const DatagramConfig config = checked(datagrams.config);
  FrameOptions frames = options.frames;
  frames.frame_bytes = config.frame_bytes();
  frames.frame_count =
      std::max(frames.frame_count, config.window_frames);  // or what it holds back would depend on them
  return frames;
}

FrameOptions frames_of(const FollowReception& /*follow*/, const ReceiverOptions& options) {
  if (options.control == Control::resident) {
    throw UsageError(
        "resident control answers senders: where connections of others are followed, control is the host's");
  }
  return options.frames;
}

/// A place for each sender, and one more: a sender that begins anew needs another before the first is free.
std::uint32_t places_of(const DatagramReception& datagrams) {
  require(datagrams.senders >= 1 && datagrams.senders < kBurstMax, "datagrams", "senders", datagrams.senders,
          "1 to 65,535");
  return datagrams.senders + 1;
}

ReceiverOptions checked(const ReceiverOptions& options, std::uint32_t streams) {
  require(options.burst_packets >= 1 && options.burst_packets <= kBurstMax, "receiver", "burst_packets",
          options.burst_packets, "1 to 65,536");
  require(streams >= 1 && streams <= kBurstMax, "receiver", "connections", streams, "1 to 65,536");
  if (options.control == Control::resident &&
      (options.builder.way != CopyWay::automatic || options.builder.ring_access != RingAccess::automatic)) {
    throw UsageError(fmt::format("resident control copies in its own way: not by '{}' from the ring by '{}'",
                                 to_string(options.builder.way), to_string(options.builder.ring_access)));
  }
  return options;
}

/// Resident control has none.
std::optional<Builder> make_builder(Device device, const Ring& ring, const ReceiverOptions& options) {
  if (options.control == Control::resident) return {};
  return std::optional<Builder>(std::in_place, device, ring.buffer(), options.builder);
}

/// Whether the peers of streams can be answered.
enum class Answers : std::uint8_t { yes, not_resident, not_datagrams, not_others };

}  // namespace

class Receiver::State {
 public:
  /// @param answers  what of its streams is answered: connections, by the host.
  State(Source& source, Ring& ring, Device device, const ReceiverOptions& options, const FrameOptions& frames,
        std::uint32_t streams, Answers answers)
      : source_(source),
        ring_(ring),
        answers_(answers),
        converts_(frames.conversion != Conversion::none),
        packets_(checked(options, streams).burst_packets),
        builder_(make_builder(device, ring, options)),
        streams_(device, frames, builder_ ? &*builder_ : nullptr, deliveries_, streams, options.memory_bytes_max) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { stop(); }

  const Birth birth;

  [[nodiscard]] IntakeParts parts() noexcept {
    return {source_, ring_, streams_, builder_ ? &*builder_ : nullptr, requests_.answer_bytes()};
  }
  void set_intake(std::unique_ptr<Intake> intake) noexcept { intake_ = std::move(intake); }
  /// Puts IP fragments together from now on.
  void defragment() { defragmenter_.emplace(); }

  bool step(Duration timeout);
  void start();
  void stop() noexcept;
  /// Throws UsageError unless streams can be answered.
  void require_answers() const;
  void require_unconverted() const;
  [[nodiscard]] bool has_parts() const noexcept { return answers_ == Answers::yes && !converts_; }
  [[nodiscard]] StreamRequests& requests() noexcept { return requests_; }
  /// The receiver ends by an error.
  void fail(const std::exception_ptr& why) noexcept;
  [[nodiscard]] Deliveries& deliveries() noexcept { return deliveries_; }
  [[nodiscard]] ReceiverCounters counters() const;

 private:
  void run(const std::stop_token& token) noexcept;
  [[nodiscard]] std::size_t receive(Duration timeout);
  void note_burst(std::size_t count);
  [[nodiscard]] bool ring_is_full() const noexcept {
    return ring_.published() - ring_.released() == ring_.slot_count();
  }
  [[nodiscard]] Duration wait_at_most(Duration timeout, Time now) const;
  void hand_on();
  void end();
  [[nodiscard]] ReceiverCounters count() const;
  void publish_counters(Time now);

  Source& source_;
  Ring& ring_;
  Answers answers_;
  bool converts_;
  std::vector<Packet> packets_;
  std::optional<Defragmenter> defragmenter_;
  Deliveries deliveries_;
  std::optional<Builder> builder_;  ///< None with resident control.
  StreamTable streams_;
  std::unique_ptr<Intake> intake_;
  StreamRequests requests_;
  bool gathered_ = false;  ///< There may be pieces that are not submitted.
  bool drained_ = true;    ///< The last burst took all that there was.
  Coalescing coalescing_;
  bool finished_ = false;
  bool handing_on_ = false;
  std::atomic<bool> started_{false};
  mutable std::mutex counters_mutex_;
  ReceiverCounters counters_;
  Time counted_at_{};
  std::jthread thread_;
};

/// The longest wait after which nothing is late.
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
  if (!got && intake_->is_waiting()) {  // what came before the fault has to find its place first
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
    throw UsageError("resident control answers nothing and shows no parts of frames: let control be the host's");
  }
  if (answers_ == Answers::not_others)
    throw UsageError("the stream is of a connection between others: it has no answers");
  if (answers_ == Answers::not_datagrams) throw UsageError("a stream of datagrams has nobody to answer: TCP has");
}

void Receiver::State::require_unconverted() const {
  if (converts_) throw UsageError("frames that are converted cannot be looked at before they are whole");
}

/// Slots go back to the source, and frames to the consumer, as far as copies are done.
void Receiver::State::hand_on() {
  handing_on_ = true;  // and stays so where that throws
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

/// Ends all streams, and delivers what there is of them.
void Receiver::State::end() {
  intake_->end(to_ns(SteadyClock::now()));
  hand_on();
  finished_ = true;
  if (started_) publish_counters(SteadyClock::now());  // before anybody can know of the end
  deliveries_.close();
}

void Receiver::State::start() {
  if (started_.exchange(true)) throw UsageError("the receiver has been started before");
  publish_counters(SteadyClock::now());
  start_each("threads of a receiver", 1,
             [this](std::size_t) { thread_ = std::jthread([this](const std::stop_token& token) { run(token); }); });
}

void Receiver::State::run(const std::stop_token& token) noexcept {
  ::pthread_setname_np(::pthread_self(), "headrace-ingest");
  ::prctl(PR_SET_TIMERSLACK, 1);  // waits are short; the kernel may else prolong them by 50 us
  try {
    while (!token.stop_requested() && step(kStopLook)) {
    }
  } catch (...) {
    finished_ = true;
    fail(std::current_exception());
  }
}

/// What is READY comes before the error, unless handing on is what failed: a frame may have been lost, and nothing that
/// comes after it may look as if it had not.
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
  if (birth.inherited()) return;  // the parent's thread goes on
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

Receiver::Receiver(Source& source, Ring& ring, Device device, const TcpReception& tcp, const ReceiverOptions& options)
    : state_(std::make_unique<State>(source, ring, device, options, options.frames, tcp.connections,
                                     options.control == Control::resident ? Answers::not_resident : Answers::yes)) {
  const bool resident = options.control == Control::resident;
  state_->set_intake(resident ? make_resident_intake(state_->parts(), device, tcp, options)
                              : make_tcp_intake(state_->parts(), tcp));
  if (!resident) state_->defragment();
}

Receiver::Receiver(Source& source, Ring& ring, Device device, const DatagramReception& datagrams,
                   const ReceiverOptions& options)
    : state_(std::make_unique<State>(source, ring, device, options, frames_of(datagrams, options), places_of(datagrams),
                                     Answers::not_datagrams)) {
  state_->set_intake(make_datagram_intake(state_->parts(), datagrams));
  if (!datagrams.config.raw) state_->defragment();
}

Receiver::Receiver(FollowSource& source, Ring& ring, Device device, const FollowReception& follow,
                   const ReceiverOptions& options)
    : state_(std::make_unique<State>(source, ring, device, options, frames_of(follow, options), follow.streams,
                                     Answers::not_others)) {
  state_->set_intake(make_follow_intake(state_->parts(), source));
}

Receiver::~Receiver() { let_go_if_inherited(state_); }

Receiver::State& Receiver::own_state() const {
  state_->birth.require("using a receiver");
  return *state_;
}

bool Receiver::step(Duration timeout) {
  State& state = own_state();
  try {
    return state.step(timeout);
  } catch (...) {
    state_->fail(std::current_exception());
    throw;
  }
}

void Receiver::start() { own_state().start(); }
void Receiver::stop() noexcept { state_->stop(); }
void Receiver::reset(std::uint32_t stream) {
  own_state().requests().add({.kind = StreamRequest::Kind::reset, .stream = stream});
}

Status Receiver::send(std::uint32_t stream, std::span<const std::byte> bytes) {
  own_state().require_answers();
  return state_->requests().add_answer(stream, bytes);
}

void Receiver::close(std::uint32_t stream) {
  own_state().require_answers();
  state_->requests().add({.kind = StreamRequest::Kind::close, .stream = stream});
}

bool Receiver::has_parts() const noexcept { return own_state().has_parts(); }

void Receiver::peek(std::uint32_t stream, std::uint64_t offset, std::uint64_t end) {
  own_state().require_answers();
  state_->require_unconverted();
  state_->requests().add({.kind = StreamRequest::Kind::peek, .stream = stream, .offset = offset, .end = end});
}

std::optional<Delivery> Receiver::next(Duration timeout) { return own_state().deliveries().next(timeout); }
bool Receiver::ended() const { return own_state().deliveries().ended(); }
ReceiverCounters Receiver::counters() const { return own_state().counters(); }

}  // namespace headrace::ingest
