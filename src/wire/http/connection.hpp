#pragma once

#include <memory>
#include <string_view>

#include "wire/connection.hpp"
#include "wire/http/reader.hpp"
#include "wire/http/routes.hpp"

namespace headrace::wire::http {

/// A connection of HTTP/1.1, which handles one request at a time, in order. Used by one thread.
class Connection final : public wire::Connection, public InferenceOwner, public ModelCallOwner, public Gate {
 public:
  /// Throws SystemError if the socket cannot be watched.
  Connection(Front& front, Transport transport);
  ~Connection() override;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void finished(Inference& inference) override;
  void call_ended(ModelCall& call) override;

 private:
  enum class State {
    reading,  ///< Reading a request, or waiting for one.
    asking,   ///< Waiting for an engine, or for the program that runs the server.
    writing,  ///< Writing a reply.
  };

  [[nodiscard]] std::string_view read(std::string_view bytes) override;
  [[nodiscard]] bool reads() const noexcept override { return state_ == State::reading; }
  [[nodiscard]] bool asks() const noexcept override { return state_ == State::asking; }
  void moved() noexcept override;
  void written() override;
  void check_time(Time now) override;
  void abandon() noexcept override;

  [[nodiscard]] bool admit(const Message& message) override;

  /// Executes the request that has been read.
  void handle();
  void ask(std::shared_ptr<Inference> inference);
  void wait_for(std::shared_ptr<ModelCall> call);
  /// @param inference  the inference that the reply belongs to; null for any other request
  void reply(Reply reply, const Inference* inference = nullptr);

  MemoryShare memory_;
  Reader reader_;
  State state_ = State::reading;
  bool began_ = false;      ///< Bytes of the present request have arrived.
  bool continued_ = false;  ///< 100 Continue has been sent.
  bool keep_alive_ = true;  ///< Keep the connection open after the present reply.
  bool head_only_ = false;  ///< The present reply is to HEAD.
  std::shared_ptr<Inference> inference_;
  std::shared_ptr<ModelCall> call_;
};

}  // namespace headrace::wire::http
