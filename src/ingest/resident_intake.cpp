#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <thread>
#include <vector>

#include "headrace/base/error.hpp"
#include "ingest/intake.hpp"
#include "ingest/resident/control.hpp"
#include "ingest/resident/memory.hpp"

namespace headrace::ingest {

namespace {

/// How long to wait before checking on the kernel while it is busy.
constexpr Duration kLook = std::chrono::microseconds(20);
/// The same while it only has timers to serve.
constexpr Duration kTimerLook = std::chrono::milliseconds(5);
constexpr std::uint32_t kPacketsMin = 256;
constexpr std::uint32_t kPacketsMax = 1U << 16;

ResidentOptions options_of(const IntakeParts& parts, const TcpReception& tcp, const ReceiverOptions& options) {
  ResidentOptions made;
  made.tcp = completed(tcp.config, parts.streams.space_bytes());
  made.connections = tcp.connections;
  made.frames_max = options.frames.frame_count;
  made.packets =
      std::clamp(static_cast<std::uint32_t>(std::bit_ceil(std::min<std::size_t>(parts.ring.slot_count(), kPacketsMax))),
                 kPacketsMin, kPacketsMax);
  made.wait_limit = options.wait_limit;
  made.cut_broken = true;
  return made;
}

/// Passes packets to a kernel that stays on the device, and does what it cannot: sends replies, delivers frames.
class ResidentIntake final : public Intake {
 public:
  ResidentIntake(const IntakeParts& parts, Device device, const TcpReception& tcp, const ReceiverOptions& options)
      : parts_(parts),
        device_(device),
        wait_limit_(options.wait_limit),
        begin_(parts.ring.published()),
        control_(device, parts.ring.buffer(), parts.source.layer(), options_of(parts, tcp, options)) {}

  [[nodiscard]] std::size_t room(std::size_t most) const override { return std::min(most, control_.room()); }

  void take(std::span<const Packet> packets, std::uint64_t /*before*/, std::uint64_t now) override {
    control_.set_time(now);
    static_cast<void>(control_.post(packets).or_throw("handing packets to resident control"));  // there is room()
  }

  void act(std::uint64_t now, bool /*drained*/) override {
    control_.set_time(now);
    const bool settled = control_.settled();  // asked first, so that its results are there below
    listen();
    while (FrameRing* const frames = parts_.streams.grant()) control_.attach(*frames);
    send_replies();
    busy_ = !settled || !to_abort_.empty() || !control_.settled();
    acted_at_ = now;
  }

  /// The host gathers nothing.
  void flush(bool ring_full) override {
    if (ring_full) std::this_thread::sleep_for(kLook);
  }

  [[nodiscard]] std::uint64_t copied() override { return begin_ + control_.copied(); }

  [[nodiscard]] std::uint64_t next_deadline() const override { return acted_at_ + to_ns(busy_ ? kLook : kTimerLook); }

  /// Every request is a reset: the receiver refuses others.
  void obey(StreamRequest request, std::uint64_t /*now*/) override { reset(request.stream); }

  void reset(std::uint32_t stream) {
    const auto place = parts_.streams.find(stream);
    if (!place) return;
    StreamTable::Stream& found = parts_.streams.places()[*place];
    if (found.end || found.cut) return;
    found.cut = true;
    to_abort_.push_back({.stream = stream, .connection = found.connection});
  }

  void end(std::uint64_t /*now*/) override {
    if (over_) return;
    const auto act = [&] { this->act(to_ns(SteadyClock::now()), true); };
    until([&] { return control_.settled(); }, act);
    for (const StreamTable::Stream& stream : parts_.streams.places()) {
      if (stream.frames) reset(stream.number);
    }
    const auto open = [](const StreamTable::Stream& stream) { return stream.frames && !stream.end; };
    until([&] { return control_.settled() && std::ranges::none_of(parts_.streams.places(), open); }, act);
    over_ = true;
    check(control_.stop());
    send_replies();
  }

  void give_up() noexcept override {
    if (over_) return;
    over_ = true;
    try {
      until([&] { return control_.settled(); },
            [&] {
              listen();
              while (control_.next_reply()) {  // dropped, because the source may have failed
              }
            });
    } catch (...) {  // NOLINT(bugprone-empty-catch): it is the kernel that has failed
    }
    static_cast<void>(control_.stop());
  }

  void count(ReceiverCounters& counters) const override {
    counters.tcp = control_.counters().tcp;
    counters.window_least_bytes = control_.counters().window_least_bytes;
    counters.replies_lost = replies_lost_;
  }

 private:
  void check(const Status& status) const {
    if (!status) throw DeviceError(status.error().code, control_.failure(), status.error().native);
  }

  void listen() {
    check(control_.poll());
    take_events();
    std::erase_if(to_abort_, [&](const Event& event) { return control_.abort(event.connection, event.stream).ok(); });
  }

  void take_events() {
    while (true) {
      const auto next = control_.next_event();
      if (!next) check(next.error());
      if (!next->has_value()) return;
      const Event& event = **next;
      if (event.kind == StreamEvent::opened) {
        if (!parts_.streams.open(event.stream, event.connection, event.flow)) {
          throw Exception(Errc::invalid_argument, "a stream was opened that has no place in the stream table");
        }
      } else if (event.kind != StreamEvent::closed) {
        const auto place = parts_.streams.find(event.stream);
        if (place) parts_.streams.end(*place, event.kind, event.offset);
      }
    }
  }

  void send_replies() {
    while (const auto reply = control_.next_reply()) {
      if (!send_reply(parts_.source, *reply)) ++replies_lost_;
    }
  }

  /// Calls turn() until done() was true before a turn.
  template <class Done, class Turn>
  void until(Done done, Turn turn) {
    const Time give_up = SteadyClock::now() + wait_limit_;
    while (true) {
      const bool is_done = done();  // asked first, as in act()
      turn();
      if (is_done) return;
      if (SteadyClock::now() > give_up) {
        throw DeviceError(Errc::hung,
                          fmt::format("resident control on {} did not end its streams in time", device_.name()));
      }
      std::this_thread::sleep_for(kLook);
    }
  }

  IntakeParts parts_;
  Device device_;
  Duration wait_limit_;
  std::uint64_t begin_;  ///< Ring position at the start; each packet takes one slot.
  ResidentControl control_;
  std::vector<Event> to_abort_;  ///< Connections that the kernel is to abort.
  std::uint64_t acted_at_ = 0;
  bool busy_ = false;  ///< The kernel was busy when it was last checked.
  bool over_ = false;
  std::uint64_t replies_lost_ = 0;
};

}  // namespace

std::unique_ptr<Intake> make_resident_intake(const IntakeParts& parts, Device device, const TcpReception& tcp,
                                             const ReceiverOptions& options) {
  resident::check(options.frames, options.frames.frame_count);
  parts.streams.make_all_frames();
  return std::make_unique<ResidentIntake>(parts, device, tcp, options);
}

}  // namespace headrace::ingest
