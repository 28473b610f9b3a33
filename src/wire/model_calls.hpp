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
  /// Called by the connection's thread when `call` has its status and message.
  virtual void call_ended(ModelCall& call) = 0;

 protected:
  ~ModelCallOwner() = default;
};

/// A client's request to load, change or unload a model. The program that runs the server completes it.
struct ModelCall {
  ModelRequest request;
  std::size_t thread = 0;           ///< The thread that the connection belongs to.
  ModelCallOwner* owner = nullptr;  ///< Null once the owner no longer waits. Used only by that thread.
  int status = kOk;                 ///< The HTTP status, whatever the protocol.
  std::string message = {};         ///< Why the call failed.
};

/// The parameters of a request to load or unload a model, independent of the protocol.
struct ModelParameters {
  std::optional<std::string> config = {};  ///< See read_config().

  /// Notes a parameter. Throws RequestError for one that the server does not support, or for a wrong value.
  /// @param load      whether the request is to load
  /// @param is_false  whether the value is false
  /// @param text      the value, if it is text
  void note(std::string_view name, bool load, bool is_false, std::optional<std::string_view> text);
};

/// Makes a ModelCall for a client's request. Throws RequestError if loading is disabled, the name is unknown, or the
/// model cannot have the configuration.
/// @param enabled   whether the server loads and unloads models
/// @param draining  whether the server is about to stop
[[nodiscard]] std::shared_ptr<ModelCall> make_model_call(const Models& models, bool enabled, bool draining,
                                                         std::string_view name, bool load,
                                                         const ModelParameters& parameters);

/// Passes requests to load and unload models from the answering threads to the program, and results back.
class ModelCalls {
 public:
  ModelCalls(bool enabled, std::size_t threads) : enabled_(enabled), ended_(threads) {}

  [[nodiscard]] bool enabled() const noexcept { return enabled_; }
  /// Queues a call. Throws RequestError (429) if too many are pending.
  void add(const std::shared_ptr<ModelCall>& call);
  /// Waits for the next request. Empty after `limit`, and after close().
  [[nodiscard]] std::optional<ModelRequest> next(Duration limit);
  /// Ends a request that next() has returned. The caller must wake the connection's thread. Does nothing for an unknown
  /// number.
  void end(std::uint64_t number, int status, std::string_view message);
  /// The ended calls of a thread.
  [[nodiscard]] std::vector<std::shared_ptr<ModelCall>> take_ended(std::size_t thread) noexcept;
  /// Makes next() return no more requests.
  void close() noexcept;

 private:
  const bool enabled_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool closed_ = false;
  std::uint64_t numbers_ = 0;
  std::deque<std::shared_ptr<ModelCall>> waiting_;
  std::vector<std::shared_ptr<ModelCall>> taken_;               ///< Calls that next() has returned.
  std::vector<std::vector<std::shared_ptr<ModelCall>>> ended_;  ///< By thread.
};

}  // namespace headrace::wire
