#include "wire/grpc/session.hpp"

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <array>
#include <exception>
#include <iterator>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace headrace::wire::grpc {

namespace {

constexpr std::int32_t kStreamWindow = 1 << 20;      // most bytes of a stream received before they are consumed
constexpr std::int32_t kConnectionWindow = 4 << 20;  // likewise, for all streams
constexpr std::uint64_t kResetsBurst = 1000;         // streams that a client may reset at once
constexpr std::uint64_t kResetsPerSecond = 33;       // and the sustained rate of further resets
constexpr std::uint32_t kErrorsMax = 100;            // resets by the server before it ends the connection
constexpr std::size_t kContinuationsMax = 8;         // most CONTINUATION frames per block of headers
constexpr std::size_t kHeadExcess = 4;               // a longer head, in limits of a head, is not read to its end

nghttp2_nv header(std::string_view name, std::string_view value) {
  // nghttp2 copies both strings and modifies neither.
  const auto bytes = [](std::string_view text) {
    return reinterpret_cast<std::uint8_t*>(const_cast<char*>(text.data()));  // NOLINT(*-const-cast)
  };
  return {bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
}

std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

void require(int result) {
  if (result == NGHTTP2_ERR_NOMEM) throw std::bad_alloc();
}

/// The headers grpc-status and, if there is a message, grpc-message.
struct StatusHeaders {
  explicit StatusHeaders(const CallStatus& status)
      : code(std::to_string(static_cast<int>(status.code))),
        message(encode_message(status.message)),
        both{header("grpc-status", code), header("grpc-message", message)} {}
  StatusHeaders(const StatusHeaders&) = delete;
  StatusHeaders& operator=(const StatusHeaders&) = delete;
  [[nodiscard]] std::span<const nghttp2_nv> list() const noexcept {
    return std::span(both).first(message.empty() ? 1 : 2);
  }

  std::string code;
  std::string message;
  std::array<nghttp2_nv, 2> both;
};

std::array<nghttp2_nv, 2> reply_headers() {
  return {header(":status", "200"), header("content-type", "application/grpc")};
}

template <class Act>
int shielded(Act act) noexcept {
  try {
    act();
    return 0;
  } catch (const std::exception&) {  // out of memory: ends only this connection
    return NGHTTP2_ERR_CALLBACK_FAILURE;
  }
}

}  // namespace

/// Callbacks for nghttp2.
struct Session::Callbacks {
  static SessionEvents& events_of(void* session) noexcept { return static_cast<Session*>(session)->events_; }
  static bool is_request(const nghttp2_frame& frame) noexcept {
    return frame.hd.type == NGHTTP2_HEADERS && frame.headers.cat == NGHTTP2_HCAT_REQUEST;
  }

  static int begin_headers(nghttp2_session* /*session*/, const nghttp2_frame* frame, void* user) {
    static_cast<Session*>(user)->head_bytes_ = 0;
    if (!is_request(*frame)) return 0;
    return shielded([&] { events_of(user).on_open(frame->hd.stream_id); });
  }
  static int on_header(nghttp2_session* /*session*/, const nghttp2_frame* frame, const std::uint8_t* name,
                       std::size_t name_bytes, const std::uint8_t* value, std::size_t value_bytes,
                       std::uint8_t /*flags*/, void* user) {
    Session& session = *static_cast<Session*>(user);
    session.head_bytes_ += name_bytes + value_bytes;
    // HPACK names a header of 4 KiB in one byte. After this, nghttp2 resets the stream, and neither checks nor reports
    // the rest of its headers.
    if (session.head_bytes_ > kHeadExcess * session.head_bytes_max_) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    return shielded([&] {
      events_of(user).on_header(frame->hd.stream_id, text_of(name, name_bytes), text_of(value, value_bytes));
    });
  }
  static int on_frame(nghttp2_session* /*session*/, const nghttp2_frame* frame, void* user) {
    const bool carries = frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA;
    if (!carries) return 0;
    return shielded([&] {
      if (is_request(*frame)) events_of(user).on_head(frame->hd.stream_id);
      if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) events_of(user).on_end(frame->hd.stream_id);
    });
  }
  static int on_data(nghttp2_session* session, std::uint8_t /*flags*/, std::int32_t id, const std::uint8_t* data,
                     std::size_t size, void* user) {
    return shielded([&] {
      require(nghttp2_session_consume_connection(session, size));
      events_of(user).on_data(id, text_of(data, size));
    });
  }
  static int on_close(nghttp2_session* /*session*/, std::int32_t id, std::uint32_t /*code*/, void* user) {
    return shielded([&] { events_of(user).on_close(id); });
  }
  static int on_sent(nghttp2_session* session, const nghttp2_frame* frame, void* user) {
    if (frame->hd.type == NGHTTP2_RST_STREAM) {
      const std::uint32_t code = frame->rst_stream.error_code;
      const bool client_erred = code != NGHTTP2_NO_ERROR && code != NGHTTP2_REFUSED_STREAM && code != NGHTTP2_CANCEL;
      if (client_erred && ++static_cast<Session*>(user)->errors_ == kErrorsMax) {
        return shielded([&] { require(nghttp2_session_terminate_session(session, NGHTTP2_ENHANCE_YOUR_CALM)); });
      }
      return 0;
    }
    const bool ends = frame->hd.type == NGHTTP2_HEADERS && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    if (!ends || nghttp2_session_get_stream_remote_close(session, frame->hd.stream_id) != 0) return 0;
    // The call has ended, so the client need not send the rest of its request.
    return shielded(
        [&] { require(nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id, NGHTTP2_NO_ERROR)); });
  }
  static ssize_t fill(nghttp2_session* session, std::int32_t id, std::uint8_t* buffer, std::size_t size,
                      std::uint32_t* flags, nghttp2_data_source* /*source*/, void* user) {
    Chunk chunk;
    const int failure = shielded([&] {
      chunk = events_of(user).fill(id, std::span(reinterpret_cast<char*>(buffer), size));
      if (!chunk.is_last) return;
      *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
      const StatusHeaders status(*chunk.status);
      const std::span<const nghttp2_nv> trailers = status.list();
      require(nghttp2_submit_trailer(session, id, trailers.data(), trailers.size()));
    });
    if (failure != 0) return failure;
    if (chunk.bytes == 0 && !chunk.is_last) return NGHTTP2_ERR_DEFERRED;
    return static_cast<ssize_t>(chunk.bytes);
  }
};

Session::Session(SessionEvents& events, std::uint32_t head_bytes_max)
    : events_(events), head_bytes_max_(head_bytes_max) {
  nghttp2_session_callbacks* made = nullptr;
  nghttp2_option* chosen = nullptr;
  require(nghttp2_session_callbacks_new(&made));
  const std::unique_ptr<nghttp2_session_callbacks, decltype(&nghttp2_session_callbacks_del)> callbacks(
      made, nghttp2_session_callbacks_del);
  require(nghttp2_option_new(&chosen));
  const std::unique_ptr<nghttp2_option, decltype(&nghttp2_option_del)> options(chosen, nghttp2_option_del);
  nghttp2_session_callbacks_set_on_begin_headers_callback(made, Callbacks::begin_headers);
  nghttp2_session_callbacks_set_on_header_callback(made, Callbacks::on_header);
  nghttp2_session_callbacks_set_on_frame_recv_callback(made, Callbacks::on_frame);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(made, Callbacks::on_data);
  nghttp2_session_callbacks_set_on_stream_close_callback(made, Callbacks::on_close);
  nghttp2_session_callbacks_set_on_frame_send_callback(made, Callbacks::on_sent);
  nghttp2_option_set_no_auto_window_update(chosen, 1);
  nghttp2_option_set_no_closed_streams(chosen, 1);
  nghttp2_option_set_stream_reset_rate_limit(chosen, kResetsBurst, kResetsPerSecond);
  nghttp2_option_set_max_continuations(chosen, kContinuationsMax);
  nghttp2_session* session = nullptr;
  require(nghttp2_session_server_new2(&session, made, this, chosen));
  session_.reset(session);
  const std::array settings{
      nghttp2_settings_entry{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, kStreamsMax},
      nghttp2_settings_entry{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kStreamWindow},
      nghttp2_settings_entry{NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, head_bytes_max},
      nghttp2_settings_entry{NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
  };
  require(nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings.data(), settings.size()));
  require(nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0, kConnectionWindow));
}

bool Session::receive(std::string_view bytes) {
  const auto* const data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  return nghttp2_session_mem_recv(session_.get(), data, bytes.size()) >= 0;
}

std::string_view Session::output() {
  const std::uint8_t* data = nullptr;
  const ssize_t count = nghttp2_session_mem_send(session_.get(), &data);
  if (count < 0) throw std::runtime_error(nghttp2_strerror(static_cast<int>(count)));
  return text_of(data, static_cast<std::size_t>(count));
}

bool Session::is_over() const noexcept {
  return nghttp2_session_want_read(session_.get()) == 0 && nghttp2_session_want_write(session_.get()) == 0;
}

void Session::begin_reply(std::int32_t id) {
  const auto headers = reply_headers();
  const nghttp2_data_provider provider{.source = {}, .read_callback = Callbacks::fill};
  require(nghttp2_submit_response(session_.get(), id, headers.data(), headers.size(), &provider));
}

void Session::refuse(std::int32_t id, const CallStatus& status) {
  const StatusHeaders of_status(status);
  std::vector<nghttp2_nv> headers;
  std::ranges::copy(reply_headers(), std::back_inserter(headers));
  std::ranges::copy(of_status.list(), std::back_inserter(headers));
  require(nghttp2_submit_response(session_.get(), id, headers.data(), headers.size(), nullptr));
}

void Session::refuse_http(std::int32_t id, std::string_view status) {
  const std::array headers{header(":status", status)};
  require(nghttp2_submit_response(session_.get(), id, headers.data(), headers.size(), nullptr));
}

void Session::resume(std::int32_t id) { require(nghttp2_session_resume_data(session_.get(), id)); }

void Session::reset(std::int32_t id) {
  require(nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL));
}

void Session::consume(std::int32_t id, std::size_t bytes) {
  require(nghttp2_session_consume_stream(session_.get(), id, bytes));
}

void Session::announce_end() { require(nghttp2_submit_shutdown_notice(session_.get())); }

void Session::refuse_streams() {
  const std::int32_t last = nghttp2_session_get_last_proc_stream_id(session_.get());
  require(nghttp2_submit_goaway(session_.get(), NGHTTP2_FLAG_NONE, last, NGHTTP2_NO_ERROR, nullptr, 0));
}

void Session::Delete::operator()(nghttp2_session* session) const noexcept { nghttp2_session_del(session); }

}  // namespace headrace::wire::grpc
