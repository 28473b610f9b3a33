#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace headrace::wire {

/// A request that is answered with an error. `status` is HTTP's.
class RequestError : public std::runtime_error {
 public:
  /// @param allow  the methods that the path has, where the request's is another
  RequestError(int status, const std::string& message, std::string_view allow = {})
      : std::runtime_error(message), status_(status), allow_(allow) {}
  [[nodiscard]] int status() const noexcept { return status_; }
  [[nodiscard]] std::string_view allow() const noexcept { return allow_; }

 private:
  int status_;
  std::string_view allow_;
};

constexpr int kOk = 200;
constexpr int kBadRequest = 400;
constexpr int kNotFound = 404;
constexpr int kMethodNotAllowed = 405;
constexpr int kRequestTimedOut = 408;
constexpr int kTooLarge = 413;
constexpr int kTooManyRequests = 429;
constexpr int kInternalError = 500;
constexpr int kNotImplemented = 501;
constexpr int kUnavailable = 503;
constexpr int kTimedOut = 504;

}  // namespace headrace::wire
