#include <fmt/format.h>
#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "wire/client/protocols.hpp"
#include "wire/grpc/framing.hpp"
#include "wire/grpc/status.hpp"

namespace headrace::wire::client {

namespace {

using grpc::StatusCode;
using measure::Outcome;

constexpr std::uint32_t kStreamWindow = 4 << 20;      // bytes of a reply that may arrive before they are read
constexpr std::int32_t kConnectionWindow = 64 << 20;  // likewise, for all replies
constexpr std::size_t kGrpcReplyMost = 4 << 20;       // most bytes kept of a reply
constexpr int kNoStatus = -1;

nghttp2_nv kept_header(std::string_view name, std::string_view value) {
  // nghttp2 modifies neither string, and both outlive the session.
  const auto bytes = [](std::string_view text) {
    return reinterpret_cast<std::uint8_t*>(const_cast<char*>(text.data()));  // NOLINT(*-const-cast)
  };
  return {bytes(name), bytes(value), name.size(), value.size(),
          NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE};
}

/// A call that waits for its reply.
struct Call {
  Asked asked{};
  std::string_view content{};
  std::size_t sent = 0;
  std::size_t received = 0;  ///< Bytes of the reply.
  int http_status = 0;
  int status = kNoStatus;  ///< The gRPC status code.
  bool open = false;
  std::string said{};
};

Outcome outcome_of_grpc(const Call& call, std::uint32_t reset) {
  if (call.status == static_cast<int>(StatusCode::ok)) {
    return call.received >= grpc::kPrefixBytes ? Outcome::right : Outcome::failed;
  }
  switch (call.status) {
    case static_cast<int>(StatusCode::resource_exhausted):
    case static_cast<int>(StatusCode::unavailable): return Outcome::refused;
    case static_cast<int>(StatusCode::deadline_exceeded): return Outcome::late;
    case kNoStatus: break;
    default: return Outcome::failed;
  }
  // Cases that gRPC maps to UNAVAILABLE (grpc/grpc, doc/http-grpc-status-mapping.md and PROTOCOL-HTTP2.md).
  const bool is_full = call.http_status == 429 || (call.http_status >= 502 && call.http_status <= 504);
  return is_full || reset == NGHTTP2_REFUSED_STREAM ? Outcome::refused : Outcome::failed;
}

std::string_view name_of_status(int code) {
  constexpr std::array<std::string_view, 17> kNames{
      "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
      "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
      "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
      "DATA_LOSS", "UNAUTHENTICATED"};
  return code >= 0 && static_cast<std::size_t>(code) < kNames.size() ? kNames.at(static_cast<std::size_t>(code)) : "?";
}

std::string text_of_end(const Call& call, std::uint32_t reset) {
  if (call.status != kNoStatus) return fmt::format("{}: {}", name_of_status(call.status), call.said);
  if (call.http_status != 0 && call.http_status != 200) return fmt::format("HTTP {}", call.http_status);
  return fmt::format("the stream ended without a status ({})", nghttp2_http2_strerror(reset));
}

/// grpc-message is percent-encoded.
std::string decode_message(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned byte = 0;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(&text[i + 1], &text[i + 1] + 2, byte, 16).ptr == &text[i + 1] + 2) {
      decoded += static_cast<char>(static_cast<unsigned char>(byte));
      i += 2;
    } else {
      decoded += text[i];
    }
  }
  return decoded;
}

/// gRPC over HTTP/2, with many concurrent calls.
class GrpcChannel final : public Channel {
 public:
  explicit GrpcChannel(Shared& shared);

  [[nodiscard]] bool usable() const noexcept override { return is_open() && is_set_up_ && takes_calls(); }
  [[nodiscard]] bool has_room() const noexcept override { return in_flight_ < limit_ && usable(); }

 private:
  struct Callbacks;
  struct Delete {
    void operator()(nghttp2_session* session) const noexcept { nghttp2_session_del(session); }
  };

  void opened() override;
  void begin(const Asked& asked, const std::string& content) override;
  [[nodiscard]] bool read(std::string_view bytes, std::string& why) override;
  void refill() override;
  void closed() override;
  [[nodiscard]] bool spent() const noexcept override { return in_flight_ == 0 && is_set_up_ && !takes_calls(); }
  /// Whether the server has sent no GOAWAY, and stream identifiers are left.
  [[nodiscard]] bool takes_calls() const noexcept { return nghttp2_session_check_request_allowed(session_.get()) != 0; }
  void end_call(Call& call, Outcome outcome, std::string_view said);
  void learn_limit();

  std::vector<nghttp2_nv> headers_;
  std::vector<Call> calls_;
  std::vector<Call*> free_;
  std::unique_ptr<nghttp2_session, Delete> session_;
  std::size_t in_flight_ = 0;
  std::size_t limit_ = 0;   ///< Most concurrent calls: the lower of the user's and the server's limits.
  bool is_set_up_ = false;  ///< The server's settings have arrived.
};

struct GrpcChannel::Callbacks {
  static Call* call_of(nghttp2_session* session, std::int32_t id) noexcept {
    return static_cast<Call*>(nghttp2_session_get_stream_user_data(session, id));
  }
  static std::string_view text_of(const std::uint8_t* data, std::size_t size) noexcept {
    return {reinterpret_cast<const char*>(data), size};
  }

  static int on_header(nghttp2_session* session, const nghttp2_frame* frame, const std::uint8_t* name,
                       std::size_t name_bytes, const std::uint8_t* value, std::size_t value_bytes,
                       std::uint8_t /*flags*/, void* /*user*/) {
    const std::string_view key = text_of(name, name_bytes);
    const bool is_status = key == "grpc-status";
    const bool is_http = key == ":status";
    if (!is_status && !is_http && key != "grpc-message") return 0;
    Call* const call = call_of(session, frame->hd.stream_id);
    if (call == nullptr) return 0;
    const std::string_view text = text_of(value, value_bytes);
    try {
      if (is_status || is_http) {
        int code = is_status ? 2 : 0;  // UNKNOWN
        std::from_chars(text.data(), text.data() + text.size(), code);
        (is_status ? call->status : call->http_status) = code;
      } else {
        call->said = decode_message(text);
      }
    } catch (const std::exception&) {
      return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
    return 0;
  }
  static int on_data(nghttp2_session* session, std::uint8_t /*flags*/, std::int32_t id, const std::uint8_t* data,
                     std::size_t size, void* user) {
    Call* const call = call_of(session, id);
    if (call == nullptr) return 0;
    call->received += size;
    std::string* const reply = static_cast<GrpcChannel*>(user)->shared().reply;
    if (reply == nullptr) return 0;
    try {
      reply->append(text_of(data, std::min(size, kGrpcReplyMost - std::min(kGrpcReplyMost, reply->size()))));
    } catch (const std::exception&) {
      return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
    return 0;
  }
  static int on_frame(nghttp2_session* /*session*/, const nghttp2_frame* frame, void* user) {
    const bool settings = frame->hd.type == NGHTTP2_SETTINGS && (frame->hd.flags & NGHTTP2_FLAG_ACK) == 0;
    if (settings) static_cast<GrpcChannel*>(user)->learn_limit();
    return 0;
  }
  static int on_close(nghttp2_session* session, std::int32_t id, std::uint32_t reset, void* user) {
    Call* const call = call_of(session, id);
    if (call == nullptr) return 0;
    try {
      const Outcome outcome = outcome_of_grpc(*call, reset);
      auto& channel = *static_cast<GrpcChannel*>(user);
      channel.end_call(*call, outcome, outcome == Outcome::right ? std::string() : text_of_end(*call, reset));
    } catch (const std::exception&) {
      return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
    return 0;
  }
  static ssize_t fill(nghttp2_session* /*session*/, std::int32_t /*id*/, std::uint8_t* buffer, std::size_t size,
                      std::uint32_t* flags, nghttp2_data_source* source, void* /*user*/) {
    auto& call = *static_cast<Call*>(source->ptr);
    const std::size_t count = std::min(size, call.content.size() - call.sent);
    std::memcpy(buffer, call.content.data() + call.sent, count);
    call.sent += count;
    if (call.sent == call.content.size()) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return static_cast<ssize_t>(count);
  }
};

GrpcChannel::GrpcChannel(Shared& shared) : Channel(shared), calls_(shared.streams) {
  const Requests& requests = shared.requests;
  headers_ = {kept_header(":method", "POST"),
              kept_header(":scheme", shared.endpoint.tls == nullptr ? "http" : "https"),
              kept_header(":path", requests.path),
              kept_header(":authority", shared.endpoint.authority),
              kept_header("content-type", "application/grpc"),
              kept_header("te", "trailers")};
  if (!requests.authorization.empty()) headers_.push_back(kept_header("authorization", requests.authorization));
  if (!requests.timeout.empty()) headers_.push_back(kept_header("grpc-timeout", requests.timeout));
  for (Call& call : calls_) free_.push_back(&call);
}

void GrpcChannel::opened() {
  nghttp2_session_callbacks* made = nullptr;
  nghttp2_option* chosen = nullptr;
  if (nghttp2_session_callbacks_new(&made) != 0) throw std::bad_alloc();
  const std::unique_ptr<nghttp2_session_callbacks, decltype(&nghttp2_session_callbacks_del)> callbacks(
      made, nghttp2_session_callbacks_del);
  if (nghttp2_option_new(&chosen) != 0) throw std::bad_alloc();
  const std::unique_ptr<nghttp2_option, decltype(&nghttp2_option_del)> options(chosen, nghttp2_option_del);
  nghttp2_session_callbacks_set_on_header_callback(made, Callbacks::on_header);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(made, Callbacks::on_data);
  nghttp2_session_callbacks_set_on_frame_recv_callback(made, Callbacks::on_frame);
  nghttp2_session_callbacks_set_on_stream_close_callback(made, Callbacks::on_close);
  nghttp2_option_set_no_closed_streams(chosen, 1);
  nghttp2_session* session = nullptr;
  if (nghttp2_session_client_new2(&session, made, this, chosen) != 0) throw std::bad_alloc();
  session_.reset(session);
  const std::array settings{nghttp2_settings_entry{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
                            nghttp2_settings_entry{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kStreamWindow}};
  if (nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings.data(), settings.size()) != 0 ||
      nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0, kConnectionWindow) != 0) {
    throw std::bad_alloc();
  }
}

void GrpcChannel::learn_limit() {
  const std::uint32_t most =
      nghttp2_session_get_remote_settings(session_.get(), NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
  limit_ = std::min<std::size_t>(calls_.size(), most);
  is_set_up_ = true;
}

void GrpcChannel::begin(const Asked& asked, const std::string& content) {
  Call* const call = free_.back();
  *call = Call{.asked = asked, .content = content, .open = true};
  const nghttp2_data_provider provider{.source = {.ptr = call}, .read_callback = Callbacks::fill};
  if (nghttp2_submit_request(session_.get(), nullptr, headers_.data(), headers_.size(), &provider, call) < 0) {
    throw std::bad_alloc();  // has_room() has excluded all other reasons
  }
  free_.pop_back();
  ++in_flight_;
}

bool GrpcChannel::read(std::string_view bytes, std::string& why) {
  const auto* const data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  const ssize_t done = nghttp2_session_mem_recv(session_.get(), data, bytes.size());
  const bool is_over =
      nghttp2_session_want_read(session_.get()) == 0 && nghttp2_session_want_write(session_.get()) == 0;
  want_flush();
  if (done >= 0 && !is_over && (is_set_up_ || bytes.size() < grpc::kPrefixBytes)) return true;
  if (done == NGHTTP2_ERR_CALLBACK_FAILURE) throw std::bad_alloc();
  why = is_set_up_ ? "the server violated the HTTP/2 protocol" : "the server does not speak gRPC (HTTP/2) on this port";
  if (done >= 0 && is_set_up_) why = "the server ended the connection";
  return false;
}

void GrpcChannel::refill() {
  while (out_.size() < kFlushBytes) {
    const std::uint8_t* data = nullptr;
    const ssize_t count = nghttp2_session_mem_send(session_.get(), &data);
    if (count < 0) throw std::bad_alloc();
    if (count == 0) return;
    out_.append(Callbacks::text_of(data, static_cast<std::size_t>(count)));
  }
}

void GrpcChannel::end_call(Call& call, Outcome outcome, std::string_view said) {
  const bool is_unknown = call.status == static_cast<int>(StatusCode::not_found) ||
                          call.status == static_cast<int>(StatusCode::invalid_argument);
  if (is_unknown) shared().unknown = true;
  if (call.status == static_cast<int>(StatusCode::unauthenticated)) shared().unauthorized = true;
  call.open = false;
  free_.push_back(&call);
  --in_flight_;
  shared().end(call.asked, outcome, said);
}

void GrpcChannel::closed() {
  session_.reset();
  is_set_up_ = false;
  for (Call& call : calls_) {
    if (call.open) end_call(call, Outcome::lost, {});
  }
}

}  // namespace

std::unique_ptr<Channel> make_grpc_channel(Shared& shared) { return std::make_unique<GrpcChannel>(shared); }

}  // namespace headrace::wire::client
