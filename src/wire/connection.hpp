#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "wire/front.hpp"
#include "wire/transport.hpp"

namespace headrace::wire {

/// A connection of any protocol: its socket, what has come and is not read, and what is to be written. A subclass reads
/// and replies. Used by one thread, whose Front it holds.
class Connection : public Watched, public Turn {
 public:
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  virtual ~Connection() = default;

  void ready(std::uint32_t events) final;
  void go_on() noexcept final;
  /// Closes it where its time is up, or where the server drains and nothing is under way.
  void check(Time now) noexcept;
  /// Closes it at once.
  void close() noexcept;
  /// Since when its client has been silent: has begun no request, not ended one, or taken nothing of a reply. Nothing
  /// where the client waits for an answer.
  [[nodiscard]] std::optional<Time> silent_since() const noexcept;
  /// Has it stay open although its client is silent.
  void keep_open() noexcept { kept_open_ = true; }
  /// Whether it is over, and is to be destroyed.
  [[nodiscard]] bool over() const noexcept { return state_ == State::over; }

 protected:
  /// Throws SystemError where the socket cannot be watched.
  Connection(Front& front, Transport transport);

  /// Reads on; what is left for the next call, with more behind it.
  [[nodiscard]] virtual std::string_view read(std::string_view bytes) = 0;
  /// Whether bytes that come are to be read now.
  [[nodiscard]] virtual bool reads() const noexcept = 0;
  /// Whether a client waits for an answer of an engine.
  [[nodiscard]] virtual bool asks() const noexcept = 0;
  /// Some of what waited for the client has gone.
  virtual void moved() noexcept = 0;
  /// Everything has been written. May write more.
  virtual void written() = 0;
  /// Does what was put off until the turn that want_turn() asked for.
  virtual void resume() {}
  /// Ends what takes too long, and what is idle where the server drains.
  virtual void check_time(Time now) = 0;
  /// The connection is over: nobody waits for inferences any more.
  virtual void abandon() noexcept = 0;

  [[nodiscard]] Front& front() const noexcept { return front_; }
  /// When something has come or gone last, or what the subclass takes for it.
  [[nodiscard]] Time moved_at() const noexcept { return moved_at_; }
  void note_move() noexcept { moved_at_ = front_.now; }
  /// Bytes that wait for the client.
  [[nodiscard]] std::size_t unwritten() const noexcept { return out_.size() - out_at_; }
  /// Whether bytes may still come and go: it is not about to end.
  [[nodiscard]] bool is_open() const noexcept { return state_ == State::open; }
  [[nodiscard]] bool is_kept_open() const noexcept { return kept_open_; }
  /// Puts `bytes` behind what waits, and sends nothing yet.
  void put(std::string_view bytes) { out_ += bytes; }
  /// Sends as much as there is room for.
  void flush();
  /// There is more to read() than what comes: bytes that it left before, or leaves now.
  void read_again() noexcept { unread_ = true; }
  /// Has resume() called soon.
  void want_turn();
  /// For how long read() may go on, about, where others wait: a few bytes may ask for much.
  static constexpr Duration kTurn = std::chrono::microseconds(100);
  /// Closes it once everything has been written, and the client has had time to read it.
  void end() noexcept;
  /// Calls `act`, and closes the connection where it throws: for want of memory.
  template <class Act>
  void guard(Act act) noexcept {
    try {
      act();
    } catch (const std::exception&) {
      close();
    }
  }
  /// Takes in some of what has come, and asks for another turn where there is more.
  void take_in();

 private:
  enum class State {
    greeting,  ///< A handshake of TLS comes before all else.
    open,
    ending,     ///< Nothing is read any more; what is to be written still goes.
    lingering,  ///< All is out. What still comes is thrown away: closing now might lose what is on its way.
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
  bool ends_ = false;        ///< The client sends no more, which is read behind all that it has sent.
  bool room_reads_ = false;  ///< TLS has to send something before more can be read.
  bool unread_ = false;      ///< `rest_` may be read again without more behind it.
  bool queued_ = false;      ///< It has asked for a turn.
  std::string rest_;         ///< What has come and is not read.
  std::string out_;          ///< What is to be written,
  std::size_t out_at_ = 0;   ///< from here on.
  Time moved_at_;
};

}  // namespace headrace::wire
