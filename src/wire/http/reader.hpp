#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "wire/memory_share.hpp"

namespace headrace::wire::http {

struct Limits {
  std::size_t head_bytes_max = 0;
  std::size_t body_bytes_max = 0;
};

/// A request of HTTP/1.0 or 1.1, as far as it is read.
struct Message {
  std::string method;
  std::string target;
  std::string content_encoding;             ///< Empty for none.
  std::optional<std::uint64_t> json_bytes;  ///< Inference-Header-Content-Length: JSON before binary tensors.
  bool expects_continue = false;
  bool keep_alive = false;
  bool of_a_page = false;                    ///< A browser sends the request for a web page (header Origin).
  std::optional<std::string> authorization;  ///< The header Authorization.
  std::string traceparent;                   ///< The header of W3C Trace Context; empty for none.
  std::string body;
};

/// Checks the head of a request before its body is read.
class Gate {
 public:
  /// Returns whether the request may have a body. Throws RequestError to refuse the request.
  [[nodiscard]] virtual bool admit(const Message& message) = 0;

 protected:
  ~Gate() = default;
};

/// Reads one request from the bytes of a connection.
class Reader {
 public:
  /// @param memory  budget for bodies
  /// @param gate    null for none
  /// Both outlive the reader.
  Reader(Limits limits, MemoryShare& memory, Gate* gate = nullptr);
  ~Reader();
  Reader(Reader&&) noexcept;
  Reader& operator=(Reader&&) noexcept;

  /// Continues reading. Returns the number of bytes used; the caller passes the others again in the next call, with
  /// more appended. Throws RequestError for an invalid or too large request, after which nothing more can be read.
  [[nodiscard]] std::size_t read(std::string_view bytes);
  /// Whether the request's line and headers have been read.
  [[nodiscard]] bool head_done() const noexcept;
  [[nodiscard]] bool done() const noexcept;
  [[nodiscard]] Message& message() noexcept;

 private:
  struct Parser;
  void check_head(std::string_view bytes);

  std::unique_ptr<Parser> parser_;
  std::size_t head_max_;
  std::size_t head_used_ = 0;  ///< Bytes of the head that the parser has used.
  std::size_t searched_ = 0;   ///< The head does not end in so many bytes after them.
};

}  // namespace headrace::wire::http
