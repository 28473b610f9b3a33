#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "wire/grpc/status.hpp"

struct nghttp2_session;

namespace headrace::wire::grpc {

/// Bytes of a reply that were put into a frame, and what follows.
struct Chunk {
  std::size_t bytes = 0;
  bool is_last = false;                ///< The status of the call follows: `status`.
  const CallStatus* status = nullptr;  ///< Not null where is_last.
};

/// Whoever a Session tells of what has come. No method is called but in Session::receive() and Session::output(). An
/// exception ends the session.
class SessionEvents {
 public:
  /// A stream opens.
  virtual void on_open(std::int32_t id) = 0;
  /// A header of its request.
  virtual void on_header(std::int32_t id, std::string_view name, std::string_view value) = 0;
  /// All headers have come.
  virtual void on_head(std::int32_t id) = 0;
  /// Bytes of its request. They take room of the stream until Session::consume().
  virtual void on_data(std::int32_t id, std::string_view bytes) = 0;
  /// No more of the request comes.
  virtual void on_end(std::int32_t id) = 0;
  /// The stream is over: ended by both sides, or reset by one.
  virtual void on_close(std::int32_t id) = 0;
  /// Puts bytes of the reply into `frame`. No bytes, and not the last: Session::resume() says when there are more.
  virtual Chunk fill(std::int32_t id, std::span<char> frame) = 0;

 protected:
  ~SessionEvents() = default;
};

/// The server's side of a connection of HTTP/2, by nghttp2: frames, header compression, flow control and the limits
/// that keep a client from making it work or remember without end. It sends and receives nothing by itself.
class Session {
 public:
  /// Streams of a connection that may be open at the same time.
  static constexpr std::uint32_t kStreamsMax = 256;

  /// @param head_bytes_max  headers of a request, which the client is told; `events` counts them
  /// Throws std::bad_alloc.
  Session(SessionEvents& events, std::uint32_t head_bytes_max);

  /// Takes in bytes; false where the connection cannot go on. output() may still have something to say of it.
  [[nodiscard]] bool receive(std::string_view bytes);
  /// Bytes that are to be sent, valid until the next call; empty where there are none now. Throws std::runtime_error
  /// where the connection cannot go on.
  [[nodiscard]] std::string_view output();
  /// Whether nothing will come or go any more.
  [[nodiscard]] bool is_over() const noexcept;

  /// Begins the reply to a call: its messages come by SessionEvents::fill().
  void begin_reply(std::int32_t id);
  /// Ends a call that has had no reply.
  void refuse(std::int32_t id, const CallStatus& status);
  /// Ends a request that is none of gRPC, by a status of HTTP.
  void refuse_http(std::int32_t id, std::string_view status);
  /// There is more of a reply.
  void resume(std::int32_t id);
  /// Ends a stream at once, for the client took nothing of its reply.
  void reset(std::int32_t id);
  /// Bytes of a stream's requests have been used up; the client may send as many.
  void consume(std::int32_t id, std::size_t bytes);

  /// Says that the connection is about to end, and that no stream should be opened (GOAWAY).
  void announce_end();
  /// Says that streams that the client opens from now on are not served.
  void refuse_streams();

 private:
  struct Callbacks;
  struct Delete {
    void operator()(nghttp2_session* session) const noexcept;
  };

  SessionEvents& events_;
  std::unique_ptr<nghttp2_session, Delete> session_;
  std::uint32_t errors_ = 0;  ///< Streams that were reset for what the client did.
};

}  // namespace headrace::wire::grpc
