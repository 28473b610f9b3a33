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

/// A request that is to be sent, or has been.
struct Asked {
  Time scheduled{};
  bool is_high = false;  ///< It has high priority.
};

/// A request that has ended.
struct Back {
  Time scheduled;
  measure::Outcome outcome = measure::Outcome::right;
};

/// What the channels of one thread share.
struct Shared {
  /// Throws UsageError for an address that is none.
  Shared(const Endpoint& to, const Requests& asked, std::uint32_t streams_max);

  const Endpoint& endpoint;
  const Requests& requests;
  std::uint32_t streams;  ///< Requests on a connection at the same time.
  sockaddr_storage address{};
  socklen_t address_bytes = 0;
  Loop loop;
  std::vector<char> buffer;
  std::vector<Back> back;           ///< Has ended, and has not been handed out.
  std::vector<Channel*> unflushed;  ///< Have something to send.
  std::size_t in_flight = 0;
  Time heard_at{};  ///< When the server sent something last, or got the first of the requests that it has.
  std::uint64_t connections_lost = 0;
  std::string why_down;                    ///< Why the last connection that ended did.
  std::string failure;                     ///< What the server said of the first request that failed, ...
  std::string refusal;                     ///< ... and of the first that it refused.
  bool unknown = false;                    ///< The server knows no such model, or cannot take such a request.
  bool unauthorized = false;               ///< The server wants a token, or another one (401, UNAUTHENTICATED).
  std::optional<Priorities> priorities{};  ///< Where some requests have high priority.
  std::string* reply = nullptr;            ///< Gets the content of replies, where it is wanted.

  /// A request that was sent has ended.
  void end(const Asked& asked, measure::Outcome outcome, std::string_view said = {});
  /// The same for any request.
  void note(const Asked& asked, measure::Outcome outcome);
};

/// A connection to the server that is made again, after a while, whenever it ends. Nothing blocks.
class Channel : public Watched {
 public:
  explicit Channel(Shared& shared) noexcept : shared_(shared) {}
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  virtual ~Channel() = default;

  /// Whether it can take requests now, or could if it had fewer.
  [[nodiscard]] virtual bool usable() const noexcept = 0;
  /// Whether ask() may be called.
  [[nodiscard]] virtual bool has_room() const noexcept = 0;
  /// Sends a request, at the next flush().
  void ask(const Asked& asked, const std::string& content);
  /// Sends as much as there is room for.
  void flush();
  /// Connects where there is no connection, and ends one that the server wants to end.
  void check(Time now);
  /// Ends the connection: requests without a reply are lost.
  void lose(std::string_view why);
  void ready(std::uint32_t events) final;

 protected:
  /// A connection has been made.
  virtual void opened() = 0;
  /// Takes in what has come. False where the connection cannot go on, for the reason that `why` gets.
  [[nodiscard]] virtual bool read(std::string_view bytes, std::string& why) = 0;
  virtual void begin(const Asked& asked, const std::string& content) = 0;
  /// Puts what is to be sent behind `out_`, about kFlushBytes at most.
  virtual void refill() {}
  /// Ends each request that has no reply as lost, and forgets what it knows of the connection.
  virtual void closed() = 0;
  /// Whether the connection takes no more requests and has none.
  [[nodiscard]] virtual bool spent() const noexcept = 0;

  [[nodiscard]] bool is_open() const noexcept { return state_ == State::open; }
  /// Has flush() called soon.
  void want_flush();
  [[nodiscard]] Shared& shared() const noexcept { return shared_; }

  static constexpr std::size_t kFlushBytes = 64 << 10;
  std::string out_;  ///< To be sent.

 private:
  enum class State : std::uint8_t { down, connecting, greeting, open };

  void connect();
  /// Goes on with the handshake of TLS; where there is none, or it is done, the connection is open.
  void greet();
  void receive();
  /// Takes in what one call of the system has brought; false where there was nothing, or the connection has ended.
  [[nodiscard]] bool receive_some();
  /// Why the last transfer failed.
  [[nodiscard]] std::string why_failed() const;
  void watch_room(bool on);

  Shared& shared_;
  std::optional<Transport> transport_;
  State state_ = State::down;
  Time connect_at_{};       ///< Not before.
  std::size_t out_at_ = 0;  ///< What of `out_` has gone.
  bool unflushed_ = false;  ///< Is in Shared::unflushed.
  bool watches_room_ = false;
};

}  // namespace headrace::wire::client
