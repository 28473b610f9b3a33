#include "headrace/ingest/receiver.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "headrace/base/error.hpp"
#include "ingest/receiver_state.hpp"
#include "ingest/require.hpp"

namespace headrace::ingest {

namespace {

FrameOptions frames_of(const DatagramReception& datagrams, const ReceiverOptions& options) {
  if (options.control == Control::resident) {
    throw UsageError("resident control works for TCP only; use host control for datagrams");
  }
  const DatagramConfig config = checked(datagrams.config);
  FrameOptions frames = options.frames;
  frames.frame_bytes = config.frame_bytes();
  frames.frame_count = std::max(frames.frame_count, config.window_frames);  // or frame_count would limit the window
  return frames;
}

FrameOptions frames_of(const FollowReception& /*follow*/, const ReceiverOptions& options) {
  if (options.control == Control::resident) {
    throw UsageError("resident control cannot follow connections between other hosts; use host control");
  }
  return options.frames;
}

/// A place for each sender, and one more: a sender that restarts needs a second place before its first is free.
std::uint32_t places_of(const DatagramReception& datagrams) {
  require(datagrams.senders >= 1 && datagrams.senders < kBurstMax, "datagrams", "senders", datagrams.senders,
          "1 to 65,535");
  return datagrams.senders + 1;
}

}  // namespace

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
