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

/// The parts of its connection that a stream uses.
class StreamOwner {
 public:
  /// Schedules a call of the stream's advance().
  virtual void attend(Stream& stream) = 0;
  /// Closes the connection because memory ran out.
  virtual void give_up() noexcept = 0;

 protected:
  ~StreamOwner() = default;
};

/// A call: its request messages as they arrive, and their replies in the same order.
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
  /// Continues with completed exchanges, and with received bytes that were waiting.
  void advance();

  /// Ends the call if it takes too long, or if it is idle and the server drains.
  void check_time(Time now);
  /// Stops waiting for inferences and model calls.
  void abandon() noexcept;
  /// Whether an answer of an engine or the program is pending.
  [[nodiscard]] bool asks() const noexcept { return asking_ > 0; }

 private:
  /// A request message and its reply.
  struct Exchange {
    explicit Exchange(ThreadBudget& budget) : memory(budget) {}

    MemoryShare memory;
    std::shared_ptr<Inference> inference;  ///< Null once it has completed.
    std::shared_ptr<ModelCall> call;       ///< Likewise, for loading or unloading a model.
    std::string reply;                     ///< The reply with its prefix; empty until it is complete.
    bool is_done = false;
  };

  [[nodiscard]] bool is_stream() const noexcept { return method_ == Method::model_stream_infer; }
  [[nodiscard]] bool is_full() const noexcept;
  [[nodiscard]] bool ended() const noexcept { return status_.has_value(); }
  /// Reads messages. Returns the bytes that must wait.
  [[nodiscard]] std::string_view read(std::string_view bytes);
  void handle(std::string_view message);
  void begin(Exchange& exchange, std::string_view message);
  void reply_inference(Exchange& exchange, const Inference& inference);
  void reply_error(Exchange& exchange, const Inference& inference, const std::string& why);
  /// Writes a message's prefix, and the bytes that `write` appends, to the reply.
  template <class Write>
  void reply(Exchange& exchange, std::size_t bytes, Write write);
  /// Ends the call with a failure, and drops completed replies.
  void end(int http_status, const std::string& message);
  /// Ends the call if all its messages are answered.
  void end_if_complete();
  void show_progress();

  Front& front_;
  StreamOwner& owner_;
  Session& session_;
  std::int32_t id_;
  MemoryShare memory_;  ///< Memory of the message being received.
  MemoryShare held_memory_;
  MessageReader reader_;
  std::optional<Method> method_;
  std::string verb_;  ///< This and the next two are empty once the head is complete.
  std::string path_;  ///< Set if the path belongs to no method.
  std::optional<std::string> authorization_;
  std::optional<Method> asked_;       ///< The method in the head, before any check.
  bool is_grpc_ = false;              ///< According to its content-type.
  std::optional<TraceParent> trace_;  ///< Applies to all messages.
  std::size_t head_bytes_ = 0;
  bool is_encoded_ = false;          ///< The request's messages may be compressed.
  bool bad_timeout_ = false;         ///< The header grpc-timeout is invalid.
  Time deadline_ = Time::max();      ///< grpc-timeout.
  std::string held_;                 ///< Received bytes that must wait.
  bool half_closed_ = false;         ///< The client sends no more.
  bool replies_ = false;             ///< The head of the reply has been sent to the session.
  bool attended_ = false;            ///< A call of advance() is scheduled.
  std::size_t asking_ = 0;           ///< Exchanges with an inference or a call.
  std::vector<Exchange> exchanges_;  ///< In the order of their messages.
  std::size_t reply_at_ = 0;         ///< Bytes of the first exchange's reply that have been sent.
  std::size_t handled_ = 0;          ///< Messages handled so far.
  std::optional<CallStatus> status_;
  Time began_;
  Time moved_at_;  ///< Time of the last bytes received or sent.
};

}  // namespace headrace::wire::grpc
