#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/detail/clock.hpp"
#include "headrace/measure/detail/load.hpp"
#include "wire/client/endpoint.hpp"
#include "wire/client/priorities.hpp"
#include "wire/loop.hpp"
#include "wire/transport.hpp"

namespace headrace::wire::client {

class Channel;

/// A request to send, or already sent.
struct Asked {
  Time scheduled{};
  bool is_high = false;  ///< The request has high priority.
};

/// A request that has ended.
struct Back {
  Time scheduled;
  measure::Outcome outcome = measure::Outcome::right;
};

/// State that the channels of one thread share.
struct Shared {
  /// Throws UsageError for an invalid address.
  Shared(const Endpoint& to, const Requests& asked, std::uint32_t streams_max);

  const Endpoint& endpoint;
  const Requests& requests;
  std::uint32_t streams;  ///< Most concurrent requests per connection.
  sockaddr_storage address{};
  socklen_t address_bytes = 0;
  Loop loop;
  std::vector<char> buffer;
  std::vector<Back> back;           ///< Ended requests that poll() has not returned yet.
  std::vector<Channel*> unflushed;  ///< Channels with something to send.
  std::size_t in_flight = 0;
  Time heard_at{};  ///< When the server last sent something, or received a request while it had none.
  std::uint64_t connections_lost = 0;
  std::string why_down;                    ///< Why the last lost connection ended.
  std::string failure;                     ///< The server's text about the first failed request.
  std::string refusal;                     ///< The server's text about the first refused request.
  bool unknown = false;                    ///< The server does not know the model, or rejects the request as invalid.
  bool unauthorized = false;               ///< The server requires a token, or a different one (401, UNAUTHENTICATED).
  std::optional<Priorities> priorities{};  ///< Set if some requests have high priority.
  std::string* reply = nullptr;            ///< Receives the content of replies; null to discard it.

  /// Ends a request that was sent.
  void end(const Asked& asked, measure::Outcome outcome, std::string_view said = {});
  /// The same for any request.
  void note(const Asked& asked, measure::Outcome outcome);
};

/// A connection to the server that reconnects, after a pause, whenever it ends. No call blocks.
class Channel : public Watched {
 public:
  explicit Channel(Shared& shared) noexcept : shared_(shared) {}
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  virtual ~Channel() = default;

  /// Whether the connection is up and accepts requests, even if it has no room at present.
  [[nodiscard]] virtual bool usable() const noexcept = 0;
  /// Whether ask() may be called.
  [[nodiscard]] virtual bool has_room() const noexcept = 0;
  /// Queues a request for the next flush().
  void ask(const Asked& asked, const std::string& content);
  /// Sends as much as the socket has room for.
  void flush();
  /// Connects if there is no connection, and closes one that the server wants to end.
  void check(Time now);
  /// Closes the connection. Requests without a reply are lost.
  void lose(std::string_view why);
  void ready(std::uint32_t events) final;

 protected:
  /// A connection has been made.
  virtual void opened() = 0;
  /// Reads received bytes. Returns false, with the reason in `why`, if the connection cannot go on.
  [[nodiscard]] virtual bool read(std::string_view bytes, std::string& why) = 0;
  virtual void begin(const Asked& asked, const std::string& content) = 0;
  /// Appends bytes to send to `out_`, up to about kFlushBytes.
  virtual void refill() {}
  /// Ends each request without a reply as lost, and resets the state of the connection.
  virtual void closed() = 0;
  /// Whether the connection accepts no more requests and has none in flight.
  [[nodiscard]] virtual bool spent() const noexcept = 0;

  [[nodiscard]] bool is_open() const noexcept { return state_ == State::open; }
  /// Schedules a flush().
  void want_flush();
  [[nodiscard]] Shared& shared() const noexcept { return shared_; }

  static constexpr std::size_t kFlushBytes = 64 << 10;
  std::string out_;  ///< Bytes to send.

 private:
  enum class State : std::uint8_t { down, connecting, greeting, open };

  void connect();
  /// Continues the TLS handshake. The connection is open once it is done, or at once without TLS.
  void greet();
  void receive();
  /// Reads the bytes of one system call. Returns false if there were none, or the connection has ended.
  [[nodiscard]] bool receive_some();
  /// Why the last transfer failed.
  [[nodiscard]] std::string why_failed() const;
  void watch_room(bool on);

  Shared& shared_;
  std::optional<Transport> transport_;
  State state_ = State::down;
  Time connect_at_{};       ///< Earliest time of the next attempt to connect.
  std::size_t out_at_ = 0;  ///< Bytes of `out_` that have been sent.
  bool unflushed_ = false;  ///< The channel is in Shared::unflushed.
  bool watches_room_ = false;
};

}  // namespace headrace::wire::client
