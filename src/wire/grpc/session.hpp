#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "wire/grpc/status.hpp"

struct nghttp2_session;

namespace headrace::wire::grpc {

/// Number of reply bytes put into a frame, and what follows them.
struct Chunk {
  std::size_t bytes = 0;
  bool is_last = false;                ///< These are the last bytes; `status` follows.
  const CallStatus* status = nullptr;  ///< Not null if is_last.
};

/// Receives the events of a Session. Only Session::receive() and Session::output() call the methods. An exception ends
/// the session.
class SessionEvents {
 public:
  /// The client has opened a stream.
  virtual void on_open(std::int32_t id) = 0;
  /// A header of the stream's request has been received.
  virtual void on_header(std::int32_t id, std::string_view name, std::string_view value) = 0;
  /// All headers have been received.
  virtual void on_head(std::int32_t id) = 0;
  /// Bytes of the request have been received. They use up the stream's window until Session::consume().
  virtual void on_data(std::int32_t id, std::string_view bytes) = 0;
  /// The request is complete.
  virtual void on_end(std::int32_t id) = 0;
  /// The stream is over: both sides have ended it, or one has reset it.
  virtual void on_close(std::int32_t id) = 0;
  /// Puts bytes of the reply into `frame`. If there are none yet, returns 0 bytes and not the last; Session::resume()
  /// announces more.
  virtual Chunk fill(std::int32_t id, std::span<char> frame) = 0;

 protected:
  ~SessionEvents() = default;
};

/// The server's side of an HTTP/2 connection, based on nghttp2: frames, header compression, flow control, and limits on
/// the work and memory that a client can cause. It does no I/O itself.
class Session {
 public:
  /// Most concurrently open streams of a connection.
  static constexpr std::uint32_t kStreamsMax = 256;

  /// @param head_bytes_max  limit on the headers of a request. The client is told, and `events` must enforce it. A
  /// stream
  ///     whose headers exceed it four times is reset
  /// Throws std::bad_alloc.
  Session(SessionEvents& events, std::uint32_t head_bytes_max);

  /// Processes received bytes. Returns false if the connection cannot go on; output() may still have bytes that tell
  /// the client why.
  [[nodiscard]] bool receive(std::string_view bytes);
  /// Bytes to send, valid until the next call; empty if there are none now. Throws std::runtime_error if the connection
  /// cannot go on.
  [[nodiscard]] std::string_view output();
  /// Whether the session has nothing more to receive or send.
  [[nodiscard]] bool is_over() const noexcept;

  /// Begins the reply to a call. SessionEvents::fill() provides its messages.
  void begin_reply(std::int32_t id);
  /// Ends a call without a reply, with a status.
  void refuse(std::int32_t id, const CallStatus& status);
  /// Ends a request that is not gRPC with an HTTP status.
  void refuse_http(std::int32_t id, std::string_view status);
  /// Announces that fill() has more bytes of a reply.
  void resume(std::int32_t id);
  /// Resets a stream, because the client does not read its reply.
  void reset(std::int32_t id);
  /// Reports that bytes of a stream's request have been consumed, so that the client may send as many more.
  void consume(std::int32_t id, std::size_t bytes);

  /// Tells the client that the connection is about to end and that it should open no more streams (GOAWAY).
  void announce_end();
  /// Tells the client that streams opened from now on are not served.
  void refuse_streams();

 private:
  struct Callbacks;
  struct Delete {
    void operator()(nghttp2_session* session) const noexcept;
  };

  SessionEvents& events_;
  const std::size_t head_bytes_max_;
  std::size_t head_bytes_ = 0;  ///< Names and values of the block of headers that is being read.
  std::unique_ptr<nghttp2_session, Delete> session_;
  std::uint32_t errors_ = 0;  ///< Streams that the server reset because of client errors.
};

}  // namespace headrace::wire::grpc
