#pragma once

#include <optional>
#include <string_view>
#include <utility>

#include "headrace/base/error.hpp"

namespace headrace {

/// A value, or the reason why there is none. Returned where throwing would cost too much:
/// it neither allocates nor formats.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) noexcept : value_(std::move(value)) {}
  Result(Error error) noexcept : error_(error) {}
  Result(Errc code) noexcept : error_{code, 0} {}

  [[nodiscard]] bool ok() const noexcept { return value_.has_value(); }
  explicit operator bool() const noexcept { return ok(); }

  /// The value. Only valid when ok().
  [[nodiscard]] T& operator*() & noexcept { return *value_; }
  [[nodiscard]] const T& operator*() const& noexcept { return *value_; }
  [[nodiscard]] T&& operator*() && noexcept { return std::move(*value_); }
  T* operator->() noexcept { return &*value_; }
  const T* operator->() const noexcept { return &*value_; }

  /// The reason. Only valid when not ok().
  [[nodiscard]] Error error() const noexcept { return error_; }

  /// The value, or an exception that reads "<doing>: <reason>".
  T or_throw(std::string_view doing) && {
    if (!ok()) throw_error(doing, error_);
    return std::move(*value_);
  }

 private:
  std::optional<T> value_;
  Error error_{Errc::system, 0};
};

/// Success, or the reason why not.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() noexcept = default;
  Result(Error error) noexcept : error_(error), ok_(false) {}
  Result(Errc code) noexcept : error_{code, 0}, ok_(false) {}

  [[nodiscard]] bool ok() const noexcept { return ok_; }
  explicit operator bool() const noexcept { return ok_; }
  [[nodiscard]] Error error() const noexcept { return error_; }

  void or_throw(std::string_view doing) const {
    if (!ok_) throw_error(doing, error_);
  }

 private:
  Error error_{Errc::system, 0};
  bool ok_ = true;
};

using Status = Result<void>;

}  // namespace headrace
