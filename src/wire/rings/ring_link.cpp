#include "wire/rings/ring_link.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>

#include <algorithm>
#include <bit>
#include <exception>
#include <string>
#include <utility>

#include "headrace/base/error.hpp"
#include "headrace/wire/client.hpp"
#include "wire/request_error.hpp"

namespace headrace::wire::rings {

namespace {

constexpr int kMessagesMost = 16;  // most messages read in one turn, so that other clients get their turn

}  // namespace

void refuse_client(const FileDescriptor& socket, Errc code, std::string_view why) noexcept {
  std::string message;
  try {
    message = encode(Welcome{.failure = std::string(why), .code = code});
  } catch (const std::exception&) {
    return;  // out of memory: the client only sees the socket end
  }
  static_cast<void>(send_message(socket, message));
}

RingLink::RingLink(Shared& shared, Loop& loop, RingHost& host, FileDescriptor socket)
    : shared_(shared), loop_(loop), host_(host), socket_(std::move(socket)), share_(shared.memory) {
  loop_.add(socket_.get(), EPOLLIN | EPOLLRDHUP, *this);
  process_.descriptor = process_of(socket_);
  process_.link = this;
  if (process_.descriptor.valid()) loop_.add(process_.descriptor.get(), EPOLLIN, process_);
}

RingLink::~RingLink() {
  if (lane_ != nullptr) --lane_->used;
}

void RingLink::ready(std::uint32_t /*events*/) {
  for (int i = 0; i < kMessagesMost && !gone_; ++i) {
    const Received received = receive_message(socket_);
    switch (received.kind) {
      case Received::Kind::nothing: return;
      case Received::Kind::ended: return end();
      case Received::Kind::message:
        if (!ring_) greet(received);  // all later messages are wake-up bytes
    }
  }
}

void RingLink::greet(const Received& received) {
  try {
    const std::optional<Hello> hello = decode_hello(received.message);
    if (!hello) return refuse(Errc::invalid_argument, "the first message is not from a Headrace client");
    if (hello->abi != kRingAbi) {
      return refuse(Errc::not_supported, fmt::format("the client runs another version of Headrace (rings {}, here {})",
                                                     hello->abi, kRingAbi));
    }
    make_ring(*hello);
  } catch (const RequestError& error) {
    refuse(Errc::not_found, error.what());
  } catch (const Exception& error) {
    refuse(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    refuse(Errc::out_of_memory, "the server is out of memory");
  }
}

void RingLink::refuse(Errc code, std::string_view why) noexcept {
  refuse_client(socket_, code, why);
  shared_.connections_refused.fetch_add(1, std::memory_order_relaxed);
  end();
}

void RingLink::make_ring(const Hello& hello) {
  const std::uint32_t most = shared_.config.shm_slots_max;
  const std::uint32_t slots = hello.slots == 0 ? std::min(Client::kSlots, std::bit_floor(most)) : hello.slots;
  if (!is_power_of_two(slots) || slots > most) {
    return refuse(Errc::invalid_argument,
                  fmt::format("slots must be a power of two, at most {} (--shm-slots), not {}", most, slots));
  }
  RingLane& lane = host_.lane_of(hello.model);
  const Model& model = lane.served().model;
  const serve::Operator& op = model.engine->op();
  const Layout layout{.slots = slots, .query_bytes = op.query_bytes, .answer_bytes = op.answer_bytes};
  if (!share_.resize(layout.bytes())) {
    return refuse(Errc::full, fmt::format("a ring of {} slots takes {}, but the server's memory (--memory) has no "
                                          "room for it; ask for fewer slots",
                                          slots, format_bytes(layout.bytes())));
  }
  const FileDescriptor file = make_sealed_memory(layout.bytes());
  SharedMemory memory(file, layout.bytes());
  ServerRing ring(memory.begin(), layout);
  const std::string welcome =
      encode(Welcome{.layout = layout,
                     .model = model.name,
                     .version = model.version,
                     .query_type = model.query_type.empty() ? op.query_type : model.query_type,
                     .answer_type = model.answer_type.empty() ? op.answer_type : model.answer_type,
                     .inputs = model.inputs});
  if (welcome.size() > kMessageMost) {
    return refuse(Errc::not_supported, "the model's description is too long for a client of shared memory");
  }
  if (!send_message(socket_, welcome, file)) return end();
  memory_ = std::move(memory);
  lane_ = &lane;
  ++lane.used;
  ring_.emplace(std::move(ring));
}

void RingLink::leave(std::string_view why) {
  if (gone_ || !why_.empty()) return;
  why_ = why;
  if (ring_) ring_->take_no_more();
}

void RingLink::check(Time now) {
  if (gone_) return;
  if (!why_.empty() && (!ring_ || ring_->done())) {
    if (ring_) {
      static_cast<void>(send_message(socket_, kGoodbye + why_));
    } else {
      refuse_client(socket_, Errc::stopped, why_);
    }
    return end();
  }
  if (!ring_ && now - began_ >= shared_.config.request_max) end();
}

void RingLink::end() noexcept {
  if (std::exchange(gone_, true)) return;
  loop_.remove(socket_.get());
  if (process_.descriptor.valid()) loop_.remove(process_.descriptor.get());
  socket_ = FileDescriptor();
  process_.descriptor = FileDescriptor();
  if (!ring_) return;
  for (const ServerRing::Taken& taken : ring_->taken()) {
    if (taken.in_flight) lane_->client().cancel(taken.ticket);
  }
}

}  // namespace headrace::wire::rings
