#pragma once

#include <memory>
#include <string_view>

#include "wire/connection.hpp"
#include "wire/http/reader.hpp"
#include "wire/http/routes.hpp"

namespace headrace::wire::http {

/// A connection of HTTP/1.1: one request at a time, in the order in which they come. Used by one thread.
class Connection final : public wire::Connection, public InferenceOwner, public ModelCallOwner, public Gate {
 public:
  /// Throws SystemError where the socket cannot be watched.
  Connection(Front& front, Transport transport);
  ~Connection() override;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void finished(Inference& inference) override;
  void call_ended(ModelCall& call) override;

 private:
  enum class State {
    reading,  ///< A request, or waiting for one.
    asking,   ///< An engine, or the program that has the server.
    writing,  ///< A reply.
  };

  [[nodiscard]] std::string_view read(std::string_view bytes) override;
  [[nodiscard]] bool reads() const noexcept override { return state_ == State::reading; }
  [[nodiscard]] bool asks() const noexcept override { return state_ == State::asking; }
  void moved() noexcept override;
  void written() override;
  void check_time(Time now) override;
  void abandon() noexcept override;

  [[nodiscard]] bool admit(const Message& message) override;

  /// Does what the request that has been read asks for.
  void handle();
  void ask(std::shared_ptr<Inference> inference);
  void wait_for(std::shared_ptr<ModelCall> call);
  /// @param inference  that it is the reply to; null for another request
  void reply(Reply reply, const Inference* inference = nullptr);

  MemoryShare memory_;
  Reader reader_;
  State state_ = State::reading;
  bool began_ = false;      ///< Bytes of the present request have come.
  bool continued_ = false;  ///< 100 Continue has been said.
  bool keep_alive_ = true;  ///< After the present reply.
  bool head_only_ = false;  ///< The present reply is to HEAD.
  std::shared_ptr<Inference> inference_;
  std::shared_ptr<ModelCall> call_;
};

}  // namespace headrace::wire::http
