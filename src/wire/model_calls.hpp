#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/detail/clock.hpp"
#include "headrace/wire/detail/model_request.hpp"
#include "wire/request_error.hpp"
#include "wire/served_model.hpp"

namespace headrace::wire {

struct ModelCall;

/// The connection or stream that waits for a ModelCall.
class ModelCallOwner {
 public:
  /// `call` has its status and message. Called by the thread of the connection.
  virtual void call_ended(ModelCall& call) = 0;

 protected:
  ~ModelCallOwner() = default;
};

/// A client's request to load or unload a model, which the program that has the server ends.
struct ModelCall {
  ModelRequest request;
  std::size_t thread = 0;           ///< That the connection belongs to.
  ModelCallOwner* owner = nullptr;  ///< Null once nobody waits any more. Used by that thread alone.
  int status = kOk;                 ///< HTTP's, whatever the protocol.
  std::string message = {};         ///< Why it has failed.
};

/// A ModelCall for what a client asks. Throws RequestError where that cannot be done: loading is off, no such name.
/// @param enabled   whether the server loads and unloads models
/// @param draining  whether it is about to stop
[[nodiscard]] std::shared_ptr<ModelCall> make_model_call(const Models& models, bool enabled, bool draining,
                                                         std::string_view name, bool load);
/// Throws RequestError for a parameter by which clients ask for what the server does not do.
/// @param is_false  it has the value false
void check_model_parameter(std::string_view name, bool is_false);

/// Requests to load and unload models, on their way from the threads that answer to the program and back.
class ModelCalls {
 public:
  ModelCalls(bool enabled, std::size_t threads) : enabled_(enabled), ended_(threads) {}

  [[nodiscard]] bool enabled() const noexcept { return enabled_; }
  /// Puts a call in line. Throws RequestError (429) where too many are.
  void add(const std::shared_ptr<ModelCall>& call);
  /// The next one, once there is one; nothing after `limit`, and after close().
  [[nodiscard]] std::optional<ModelRequest> next(Duration limit);
  /// Ends one that next() has returned; the thread of its connection is to be woken. Does nothing for another number.
  void end(std::uint64_t number, int status, std::string_view message);
  /// What has ended of a thread's calls.
  [[nodiscard]] std::vector<std::shared_ptr<ModelCall>> take_ended(std::size_t thread) noexcept;
  /// No more are answered.
  void close() noexcept;

 private:
  const bool enabled_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool closed_ = false;
  std::uint64_t numbers_ = 0;
  std::deque<std::shared_ptr<ModelCall>> waiting_;
  std::vector<std::shared_ptr<ModelCall>> taken_;               ///< By next().
  std::vector<std::vector<std::shared_ptr<ModelCall>>> ended_;  ///< By thread.
};

}  // namespace headrace::wire
