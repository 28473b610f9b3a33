#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/file_descriptor.hpp"
#include "wire/front.hpp"
#include "wire/http/reader.hpp"
#include "wire/http/routes.hpp"

namespace headrace::wire::http {

/// A connection of HTTP/1.1: one request at a time, in the order in which they come. Used by one thread.
class Connection final : public Watched, public InferenceOwner, public Turn {
 public:
  /// @param socket  does not block
  /// Throws SystemError where it cannot be watched.
  Connection(Front& front, FileDescriptor socket);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void ready(std::uint32_t events) override;
  void finished(Inference& inference) override;
  void go_on() noexcept override;
  /// Closes it where its time is up, or where the server drains and nothing is under way.
  void check(Time now) noexcept;

  /// Closes it at once.
  void close() noexcept;
  /// Since when its client has been silent: has begun no request, not ended one, or taken nothing of a reply. Nothing
  /// where the client waits for an answer.
  [[nodiscard]] std::optional<Time> silent_since() const noexcept {
    return state_ == State::asking || state_ == State::over ? std::nullopt : std::optional(moved_at_);
  }
  /// Whether it is over, and is to be destroyed.
  [[nodiscard]] bool over() const noexcept { return state_ == State::over; }

 private:
  enum class State {
    reading,    ///< A request, or waiting for one.
    asking,     ///< An engine.
    writing,    ///< A reply.
    lingering,  ///< The last reply is out; what still comes is thrown away, since closing now might lose the reply.
    over,
  };

  /// Calls `act`, and closes the connection where it throws.
  template <class Act>
  void guard(Act act) noexcept;
  /// Takes in some of what has come, and asks for another turn where there is more.
  void take_in();
  void receive();
  /// Throws away what comes.
  void linger();
  /// Reads on in a request; what is left for the next call.
  [[nodiscard]] std::string_view read(std::string_view bytes);
  void keep(std::string_view unread);
  /// Does what the request that has been read asks for.
  void handle();
  void ask(std::shared_ptr<Inference> inference);
  void reply(Reply reply);
  /// Writes as much as there is room for.
  void write();
  void written();

  Front& front_;
  FileDescriptor socket_;
  MemoryShare memory_;
  Reader reader_;
  State state_ = State::reading;
  bool readable_ = true;    ///< The socket may have bytes.
  bool unread_ = false;     ///< `rest_` may hold another request.
  bool queued_ = false;     ///< It has asked for a turn.
  bool began_ = false;      ///< Bytes of the present request have come.
  bool continued_ = false;  ///< 100 Continue has been said.
  bool keep_alive_ = true;  ///< After the present reply.
  bool head_only_ = false;  ///< The present reply is to HEAD.
  std::string rest_;        ///< What has come and is not read.
  std::string out_;         ///< What is to be written,
  std::size_t out_at_ = 0;  ///< from here on.
  std::shared_ptr<Inference> inference_;
  Time moved_at_;  ///< Since when nothing has come or gone; of a request, since when it has been coming.
};

}  // namespace headrace::wire::http
