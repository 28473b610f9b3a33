#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "wire/front.hpp"
#include "wire/transport.hpp"

namespace headrace::wire {

/// A connection of any protocol: its socket, received bytes that are not read yet, and bytes to write. A subclass
/// parses requests and replies. Used by one thread, whose Front it holds.
class Connection : public Watched, public Turn {
 public:
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  virtual ~Connection() = default;

  void ready(std::uint32_t events) final;
  void go_on() noexcept final;
  /// Closes the connection if it has timed out, or if the server drains and no request is under way.
  void check(Time now) noexcept;
  /// Closes it at once.
  void close() noexcept;
  /// Since when its client has been silent: has not begun or completed a request, or has not read a reply. Empty while
  /// the client waits for an answer.
  [[nodiscard]] std::optional<Time> silent_since() const noexcept;
  /// Keeps the connection open even if its client is silent.
  void keep_open() noexcept { kept_open_ = true; }
  /// Whether the connection is over and may be destroyed.
  [[nodiscard]] bool over() const noexcept { return state_ == State::over; }

 protected:
  /// Throws SystemError if the socket cannot be watched.
  Connection(Front& front, Transport transport);

  /// Reads bytes. Returns those that are left for the next call, which gets them with more bytes appended.
  [[nodiscard]] virtual std::string_view read(std::string_view bytes) = 0;
  /// Whether to read incoming bytes now.
  [[nodiscard]] virtual bool reads() const noexcept = 0;
  /// Whether a client waits for an engine's answer.
  [[nodiscard]] virtual bool asks() const noexcept = 0;
  /// Called when some bytes were sent to the client.
  virtual void moved() noexcept = 0;
  /// Called when all bytes were sent. May write more.
  virtual void written() = 0;
  /// Does the work that was deferred to the turn requested by want_turn().
  virtual void resume() {}
  /// Ends requests that take too long, and idle ones if the server drains.
  virtual void check_time(Time now) = 0;
  /// Called when the connection is over: it no longer waits for inferences.
  virtual void abandon() noexcept = 0;

  [[nodiscard]] Front& front() const noexcept { return front_; }
  /// Time of the last progress, as the subclass defines it.
  [[nodiscard]] Time moved_at() const noexcept { return moved_at_; }
  void note_move() noexcept { moved_at_ = front_.now; }
  /// Bytes that wait to be sent.
  [[nodiscard]] std::size_t unwritten() const noexcept { return out_.size() - out_at_; }
  /// Whether bytes may still be received and sent; false once the connection is about to end.
  [[nodiscard]] bool is_open() const noexcept { return state_ == State::open; }
  [[nodiscard]] bool is_kept_open() const noexcept { return kept_open_; }
  /// Appends `bytes` to the output, without sending yet.
  void put(std::string_view bytes) { out_ += bytes; }
  /// Sends as much as the socket has room for.
  void flush();
  /// Requests another call of read() for bytes that it has left or is leaving, even if no more arrive.
  void read_again() noexcept { unread_ = true; }
  /// Schedules a call of resume().
  void want_turn();
  /// Approximate time limit of read() while others wait, because a few bytes may ask for much work.
  static constexpr Duration kTurn = std::chrono::microseconds(100);
  /// Closes the connection once everything has been written and the client has had time to read it.
  void end() noexcept;
  /// Calls `act`, and closes the connection if it throws because memory ran out.
  template <class Act>
  void guard(Act act) noexcept {
    try {
      act();
    } catch (const std::exception&) {
      close();
    }
  }
  /// Reads some of the received bytes, and requests another turn if there are more.
  void take_in();

 private:
  enum class State {
    greeting,  ///< The TLS handshake is not done yet.
    open,
    ending,     ///< Reads nothing more, but still sends its output.
    lingering,  ///< All output is sent. Incoming bytes are discarded: closing now could lose output in flight.
    over,
  };

  void greet();
  void refuse_greeting();
  void receive();
  void linger();
  void keep(std::string_view unread);

  Front& front_;
  Transport transport_;
  State state_;
  bool kept_open_ = false;
  bool readable_ = true;     ///< The socket may have bytes.
  bool ends_ = false;        ///< The client has ended its side, which shows after all of its bytes are read.
  bool room_reads_ = false;  ///< TLS must send something before it can read more.
  bool unread_ = false;      ///< read() may be called with `rest_` alone.
  bool queued_ = false;      ///< A turn is scheduled.
  std::string rest_;         ///< Received bytes that are not read yet.
  std::string out_;          ///< Bytes to send.
  std::size_t out_at_ = 0;   ///< Bytes of `out_` that have been sent.
  Time moved_at_;
};

}  // namespace headrace::wire
