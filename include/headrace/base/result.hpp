#pragma once

// Functions that must not throw return a Result: a value, or the reason why there is none. The caller tests it, or
// turns the reason into an exception.
//
//     auto half = [](int number) -> headrace::Result<int> {
//       if (number % 2 != 0) return headrace::Errc::invalid_argument;
//       return number / 2;
//     };
//     if (headrace::Result<int> result = half(10)) std::printf("%d\n", *result);
//     int five = half(10).or_throw("halving 10");  // "halving 10: ..." where it fails

#include <cstdint>
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
  Result(T value) noexcept : value_(std::move(value)) {}  ///< Success with `value`.
  Result(Error error) noexcept : error_(error) {}         ///< Failure for the reason `error`.
  Result(Errc code) noexcept : error_{code, 0} {}         ///< Failure without a native code.

  /// True if there is a value.
  [[nodiscard]] bool ok() const noexcept { return value_.has_value(); }
  explicit operator bool() const noexcept { return ok(); }  ///< As ok().

  /// The value. Undefined unless ok().
  [[nodiscard]] T& operator*() & noexcept { return *value_; }
  /// The value. Undefined unless ok().
  [[nodiscard]] const T& operator*() const& noexcept { return *value_; }
  /// The value, to be moved from. Undefined unless ok().
  [[nodiscard]] T&& operator*() && noexcept { return std::move(*value_); }
  /// Access to the value. Undefined unless ok().
  T* operator->() noexcept { return &*value_; }
  /// Access to the value. Undefined unless ok().
  const T* operator->() const noexcept { return &*value_; }

  /// The reason. Meaningless if ok().
  [[nodiscard]] Error error() const noexcept { return error_; }

  /// Returns the value, or throws the exception type that fits the reason, which reads "<doing>: <reason>".
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
  /// Failure for the reason `error`.
  Result(Error error) noexcept
      : failure_(std::uint32_t{1} + static_cast<std::uint8_t>(error.code)), native_(error.native) {}
  Result(Errc code) noexcept : Result(Error{code, 0}) {}  ///< Failure without a native code.

  /// True on success.
  [[nodiscard]] bool ok() const noexcept { return failure_ == 0; }
  explicit operator bool() const noexcept { return ok(); }  ///< As ok().
  /// The reason. Meaningless if ok().
  [[nodiscard]] Error error() const noexcept { return {static_cast<Errc>(failure_ - 1), native_}; }

  /// Throws the exception type that fits the reason, which reads "<doing>: <reason>", unless ok().
  void or_throw(std::string_view doing) const {
    if (!ok()) throw_error(doing, error());
  }

 private:
  // Two words without padding: success is then returned as one constant. A bool beside an Error was assembled in memory
  // and read back in larger pieces, which stalled the processor for 5 ns a call.
  std::uint32_t failure_ = 0;  ///< 1 and the code above it; 0: none.
  std::int32_t native_ = 0;
};

/// Success or the reason for a failure, where there is no value to return.
using Status = Result<void>;

}  // namespace headrace
