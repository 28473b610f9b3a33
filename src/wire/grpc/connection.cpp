#include "wire/grpc/connection.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace headrace::wire::grpc {

namespace {

constexpr std::size_t kOutMax = 256 << 10;                   // most output bytes prepared before the client reads some
constexpr std::size_t kPartBytes = 1 << 10;                  // bytes read between two readings of the clock
constexpr Duration kCheckStreams = std::chrono::seconds(1);  // not often: a client may have many idle streams
constexpr std::size_t kFrameMax = (16 << 10) + 9;            // the largest frame that a client accepts by default

}  // namespace

Connection::Connection(Front& front, Transport transport)
    : wire::Connection(front, std::move(transport)),
      out_memory_(front.memory),
      session_(*this, static_cast<std::uint32_t>(front.shared.config.head_bytes_max)),
      sent_at_(SteadyClock::now()) {
  want_turn();  // the server sends its settings unprompted
}

void Connection::on_open(std::int32_t id) {
  note_move();
  found_ = nullptr;
  streams_.insert_or_assign(id, std::make_unique<Stream>(front(), *this, session_, id));
}

void Connection::on_header(std::int32_t id, std::string_view name, std::string_view value) {
  if (Stream* const stream = find(id)) stream->on_header(name, value);
}

void Connection::on_head(std::int32_t id) {
  if (Stream* const stream = find(id)) stream->on_head();
}

void Connection::on_data(std::int32_t id, std::string_view bytes) {
  note_move();
  if (Stream* const stream = find(id)) stream->on_data(bytes);
}

void Connection::on_end(std::int32_t id) {
  if (Stream* const stream = find(id)) stream->on_end();
}

void Connection::on_close(std::int32_t id) {
  note_move();
  found_ = nullptr;
  streams_.erase(id);
}

Chunk Connection::fill(std::int32_t id, std::span<char> frame) {
  note_move();
  Stream* const stream = find(id);
  return stream == nullptr ? Chunk{} : stream->fill(frame);
}

void Connection::attend(Stream& stream) {
  attended_.push_back(stream.id());
  want_turn();
}

Stream* Connection::find(std::int32_t id) noexcept {
  if (found_ == nullptr || found_->id() != id) {
    const auto found = streams_.find(id);
    found_ = found == streams_.end() ? nullptr : found->second.get();
  }
  return found_;
}

std::string_view Connection::read(std::string_view bytes) {
  const Time until = front().now + kTurn;
  bool goes_on = true;
  while (goes_on && !bytes.empty()) {
    const std::string_view part = bytes.substr(0, kPartBytes);
    goes_on = session_.receive(part);
    bytes.remove_prefix(part.size());
    if (bytes.empty()) break;
    front().now = SteadyClock::now();
    if (front().now >= until) break;
  }
  pump();
  if (!goes_on) {
    end();
    return {};
  }
  if (!bytes.empty()) read_again();
  return bytes;
}

bool Connection::reads() const noexcept { return unwritten() < kOutMax; }

bool Connection::asks() const noexcept {
  return std::ranges::any_of(streams_, [](const auto& entry) { return entry.second->asks(); });
}

void Connection::resume() {
  for (const std::int32_t id : std::exchange(attended_, {})) {
    if (Stream* const stream = find(id)) stream->advance();
  }
  pump();
}

void Connection::written() {
  if (!pumping_) pump();
}

void Connection::pump() {
  pumping_ = true;
  bool more = true;
  while (more && is_open() && has_room()) {
    if (unwritten() == 0) sent_at_ = front().now;
    while (has_room()) {
      const std::string_view bytes = session_.output();
      more = !bytes.empty();
      if (!more) break;
      put(bytes);
    }
    flush();
  }
  (void)out_memory_.resize(unwritten());
  pumping_ = false;
  if (is_open() && session_.is_over()) end();
}

bool Connection::has_room() noexcept {
  return unwritten() == 0 || (unwritten() < kOutMax && out_memory_.resize(unwritten() + kFrameMax));
}

void Connection::check_time(Time now) {
  const ServerConfig& config = front().shared.config;
  if (unwritten() > 0 && now - sent_at_ > config.idle_max) return close();
  const bool draining = front().shared.draining.load(std::memory_order_relaxed);
  if (draining || now >= check_streams_at_) {
    check_streams_at_ = now + std::min({kCheckStreams, config.request_max / 8, config.idle_max / 8});
    for (const auto& [id, stream] : streams_) stream->check_time(now);
  }
  if (draining || (streams_.empty() && now - moved_at() > config.idle_max)) say_goodbye();
  pump();
}

void Connection::say_goodbye() {
  switch (goodbye_) {
    case Goodbye::none: goodbye_ = Goodbye::announced; return session_.announce_end();
    case Goodbye::announced: goodbye_ = Goodbye::said; return session_.refuse_streams();
    case Goodbye::said:
      if (streams_.empty() && unwritten() == 0) end();
      return;
  }
}

void Connection::abandon() noexcept {
  for (const auto& [id, stream] : streams_) stream->abandon();
}

}  // namespace headrace::wire::grpc
