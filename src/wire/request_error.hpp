#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

namespace headrace::wire {

struct ServedModel;

/// A request that is answered with an error. `status` is the HTTP status.
class RequestError : public std::runtime_error {
 public:
  /// @param message  cut at kMessageMax, because it may quote a client, and no budget is charged for errors
  /// @param allow    the methods that the path allows, if the request's is not one of them
  RequestError(int status, std::string_view message, std::string_view allow = {})
      : std::runtime_error(shortened(message)), status_(status), allow_(allow) {}
  [[nodiscard]] int status() const noexcept { return status_; }
  [[nodiscard]] std::string_view allow() const noexcept { return allow_; }
  /// The model of an inference request; null if the error occurred before the model was known.
  [[nodiscard]] const ServedModel* model() const noexcept { return model_; }
  void set_model(const ServedModel& model) noexcept { model_ = &model; }

 private:
  static constexpr std::size_t kMessageMax = 1024;  // bytes

  /// The first characters of a UTF-8 string.
  [[nodiscard]] static std::string shortened(std::string_view message) {
    if (message.size() <= kMessageMax) return std::string(message);
    const auto continues = [&](std::size_t i) { return (static_cast<unsigned char>(message[i]) & 0xC0U) == 0x80U; };
    std::size_t end = kMessageMax;
    while (end > kMessageMax - 4 && continues(end)) --end;
    return std::string(message.substr(0, end)) + " ...";
  }

  int status_;
  std::string_view allow_;
  const ServedModel* model_ = nullptr;
};

/// Returns the result of `read`. Adds the model to RequestErrors that it throws.
template <class Read>
auto read_for(const ServedModel& model, Read read) {
  try {
    return read();
  } catch (RequestError& error) {
    error.set_model(model);
    throw;
  }
}

constexpr int kOk = 200;
constexpr int kBadRequest = 400;
constexpr int kUnauthorized = 401;
constexpr int kForbidden = 403;
constexpr int kNotFound = 404;
constexpr int kMethodNotAllowed = 405;
constexpr int kRequestTimedOut = 408;
constexpr int kConflict = 409;
constexpr int kTooLarge = 413;
constexpr int kTooManyRequests = 429;
constexpr int kInternalError = 500;
constexpr int kNotImplemented = 501;
constexpr int kUnavailable = 503;
constexpr int kTimedOut = 504;

[[noreturn]] inline void refuse(std::string_view why) { throw RequestError(kBadRequest, why); }

}  // namespace headrace::wire
