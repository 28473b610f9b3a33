#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace headrace::wire {

/// Result of checking a request's token.
enum class Admission : std::uint8_t {
  granted,
  missing,  ///< The request has no token.
  wrong,    ///< The request has a token that is not one of the server's.
};

/// The tokens that a server accepts (RFC 6750). Immutable; any thread.
class Tokens {
 public:
  static constexpr std::size_t kBytesMin = 16;  ///< Shorter tokens could be guessed.
  static constexpr std::size_t kBytesMax = 1024;
  static constexpr std::size_t kCountMax = 1000;

  /// Reads a file with one token per line, optionally followed by a space and a name. Ignores empty lines and lines
  /// that begin with #. Throws SystemError if the file cannot be read, UsageError if its content is unusable. The
  /// message names the line, but never a token.
  explicit Tokens(const std::string& file);

  /// @param authorization  the value of the header Authorization; empty if the request has none
  /// The time that the check takes reveals nothing about the tokens except their number and the length of the longest.
  [[nodiscard]] Admission check(std::optional<std::string_view> authorization) const noexcept;
  [[nodiscard]] std::size_t count() const noexcept { return count_; }

 private:
  std::string all_;        ///< Each token, padded with zeros to `width_`.
  std::size_t width_ = 0;  ///< Length of the longest token + 1.
  std::size_t count_ = 0;
};

/// The first token of such a file, which a client sends. Throws as Tokens does.
[[nodiscard]] std::string first_token(const std::string& file);

}  // namespace headrace::wire
