#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wire/front.hpp"
#include "wire/grpc/calls.hpp"
#include "wire/grpc/framing.hpp"
#include "wire/grpc/session.hpp"
#include "wire/grpc/status.hpp"

namespace headrace::wire::grpc {

class Stream;

/// What a stream uses of its connection.
class StreamOwner {
 public:
  /// Has `stream` advance() soon.
  virtual void attend(Stream& stream) = 0;
  /// Closes the connection, for want of memory.
  virtual void give_up() noexcept = 0;

 protected:
  ~StreamOwner() = default;
};

/// A call: the messages of its request as they come, and their replies in the same order.
class Stream final : public InferenceOwner, public ModelCallOwner {
 public:
  /// @param owner, session  outlive the stream
  Stream(Front& front, StreamOwner& owner, Session& session, std::int32_t id);
  virtual ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  [[nodiscard]] std::int32_t id() const noexcept { return id_; }

  void on_header(std::string_view name, std::string_view value);
  void on_head();
  void on_data(std::string_view bytes);
  void on_end();
  [[nodiscard]] Chunk fill(std::span<char> frame);
  void finished(Inference& inference) override;
  void call_ended(ModelCall& call) override;
  /// Goes on with what has come back, and with what has come and waits.
  void advance();

  /// Ends what takes too long, and what is idle where the server drains.
  void check_time(Time now);
  /// Nobody waits for inferences any more.
  void abandon() noexcept;
  /// Whether an engine or the program is to answer.
  [[nodiscard]] bool asks() const noexcept { return asking_ > 0; }

 private:
  /// A message, and what becomes of it.
  struct Exchange {
    explicit Exchange(ThreadBudget& budget) : memory(budget) {}

    MemoryShare memory;
    std::shared_ptr<Inference> inference;  ///< Null once it has come back.
    std::shared_ptr<ModelCall> call;       ///< Likewise: a model is to be loaded or unloaded.
    std::string reply;                     ///< With its prefix; empty before it is there.
    bool is_done = false;
  };

  [[nodiscard]] bool is_stream() const noexcept { return method_ == Method::model_stream_infer; }
  [[nodiscard]] bool is_full() const noexcept;
  [[nodiscard]] bool ended() const noexcept { return status_.has_value(); }
  /// Reads messages; what is left has to wait.
  [[nodiscard]] std::string_view read(std::string_view bytes);
  void handle(std::string_view message);
  void begin(Exchange& exchange, std::string_view message);
  void reply_inference(Exchange& exchange, const Inference& inference);
  void reply_error(Exchange& exchange, const Inference& inference, const std::string& why);
  /// Puts a message's prefix and what `write` appends into the reply.
  template <class Write>
  void reply(Exchange& exchange, std::size_t bytes, Write write);
  /// Ends the call: what has come back is dropped where it failed.
  void end(int http_status, const std::string& message);
  /// Ends the call where all has been answered.
  void end_if_complete();
  void show_progress();

  Front& front_;
  StreamOwner& owner_;
  Session& session_;
  std::int32_t id_;
  MemoryShare memory_;  ///< Held by the message that comes.
  MemoryShare held_memory_;
  MessageReader reader_;
  std::optional<Method> method_;
  std::string verb_;  ///< This and the next two: empty once the head has come.
  std::string path_;  ///< Where it is none of a method.
  std::optional<std::string> authorization_;
  std::optional<Method> asked_;       ///< By the head, before anything has been checked.
  bool is_grpc_ = false;              ///< By its content-type.
  std::optional<TraceParent> trace_;  ///< Holds for all messages.
  std::size_t head_bytes_ = 0;
  bool is_encoded_ = false;          ///< Messages of the request may be compressed.
  bool bad_timeout_ = false;         ///< grpc-timeout is none.
  Time deadline_ = Time::max();      ///< grpc-timeout.
  std::string held_;                 ///< What has come and has to wait.
  bool half_closed_ = false;         ///< Nothing more comes.
  bool replies_ = false;             ///< The head of the reply has been submitted.
  bool attended_ = false;            ///< advance() comes soon.
  std::size_t asking_ = 0;           ///< Exchanges with an inference or a call.
  std::vector<Exchange> exchanges_;  ///< In the order of their messages.
  std::size_t reply_at_ = 0;         ///< What of the first one's reply has gone.
  std::size_t handled_ = 0;          ///< Messages.
  std::optional<CallStatus> status_;
  Time began_;
  Time moved_at_;  ///< When something of it has come or gone last.
};

}  // namespace headrace::wire::grpc
