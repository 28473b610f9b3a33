#pragma once

// Every failure has a code. Functions that do not throw return it in an Error; set-up throws it in an Exception, whose
// text says what was being done, what went wrong, and what to do about it.
//
//     try {
//       std::FILE* file = std::fopen("words.hridx", "rb");
//       if (file == nullptr) headrace::throw_errno("opening words.hridx");
//       std::fclose(file);
//     } catch (const headrace::Exception& error) {
//       if (error.code() == headrace::Errc::system) std::fprintf(stderr, "error: %s\n", error.what());
//     }

#include <cerrno>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace headrace {

/// What went wrong, in terms that a caller can act on.
enum class Errc : std::uint8_t {
  invalid_argument,   ///< The caller passed something that can never work.
  not_supported,      ///< This device, driver or build cannot do it.
  not_found,          ///< A file, device, rung or name that is not there.
  out_of_memory,      ///< No memory of the kind asked for; native code kept.
  no_permission,      ///< The process lacks a right.
  corrupt_data,       ///< Input from outside that fails its own checks.
  device_fault,       ///< The device failed; in CUDA this is sticky for the process.
  system,             ///< An operating system call failed; native code is errno.
  full,               ///< A bounded queue refused more work; try again later.
  cancelled,          ///< The caller asked for this work not to be done.
  deadline_exceeded,  ///< The work's deadline passed before its answer.
  stopped,            ///< The engine or stream has been stopped.
  hung,               ///< A resident kernel did not come back from its work in time.
};

/// The name of a code as it is printed, e.g. "out of memory".
[[nodiscard]] std::string_view to_string(Errc code) noexcept;

/// A failure on a path that does not throw: the code, and the native code (CUDA or errno) or 0.
struct Error {
  Errc code = Errc::system;  ///< What went wrong.
  int native = 0;            ///< The CUDA error or errno behind it; 0 if there is none.
  friend bool operator==(const Error&, const Error&) = default;
};

/// Thrown by set-up. `what()` names what was being done, what went wrong, and what to do about it.
class Exception : public std::runtime_error {
 public:
  /// `message` becomes what(); `native` is the CUDA error or errno behind the failure, 0 if there is none.
  Exception(Errc code, const std::string& message, int native = 0)
      : std::runtime_error(message), code_(code), native_(native) {}

  [[nodiscard]] Errc code() const noexcept { return code_; }  ///< What went wrong, for callers to act on.
  /// The CUDA error or errno behind the failure; 0 if there is none.
  [[nodiscard]] int native() const noexcept { return native_; }

 private:
  Errc code_;
  int native_;
};

/// The caller asked for something that can never work: a bad option, name, size or query.
class UsageError : public Exception {
 public:
  /// `message` becomes what(); `code` is for a reason narrower than invalid_argument, such as not_found.
  explicit UsageError(const std::string& message, Errc code = Errc::invalid_argument) : Exception(code, message) {}
};

/// A file or message from outside is not what it claims to be.
class DataError : public Exception {
 public:
  /// `message` becomes what() and names the file or message and the place in it; code() is Errc::corrupt_data.
  explicit DataError(const std::string& message) : Exception(Errc::corrupt_data, message) {}
};

/// A device refused, failed, or lacks what was asked of it.
class DeviceError : public Exception {
 public:
  /// The constructor of Exception.
  using Exception::Exception;
};

/// An operating system call failed; `native()` is its errno.
class SystemError : public Exception {
 public:
  /// The constructor of Exception; `native` is the errno.
  using Exception::Exception;
};

/// Throws a SystemError that reads "<doing>: <text of errno>".
/// @param doing what was being done, e.g. "opening words.hridx"
[[noreturn]] void throw_errno(std::string_view doing, int error_number = errno);

/// Throws the exception type that fits `error`, reading "<doing>: <text>".
[[noreturn]] void throw_error(std::string_view doing, Error error);

}  // namespace headrace
