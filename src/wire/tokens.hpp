#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace headrace::wire {

/// What a request says of who sends it.
enum class Admission : std::uint8_t {
  granted,
  missing,  ///< It has no token.
  wrong,    ///< It has a token that is none of the server's.
};

/// The tokens that a server takes (RFC 6750). They never change; any thread.
class Tokens {
 public:
  static constexpr std::size_t kBytesMin = 16;  ///< Shorter ones are guessed.
  static constexpr std::size_t kBytesMax = 1024;
  static constexpr std::size_t kCountMax = 1000;

  /// Reads a file: a token a line, with a name of it behind a space where one is wanted. Empty lines and those that
  /// begin with # are passed over. Throws SystemError where it cannot be read, UsageError where it will not do: that
  /// names the line, and never a token.
  explicit Tokens(const std::string& file);

  /// @param authorization  the value of the header Authorization; nothing where the request has none
  /// How long it takes tells nothing of the tokens but their number and the length of the longest.
  [[nodiscard]] Admission check(std::optional<std::string_view> authorization) const noexcept;
  [[nodiscard]] std::size_t count() const noexcept { return count_; }

 private:
  std::string all_;        ///< Each token, padded with zeros to `width_`.
  std::size_t width_ = 0;  ///< One more than the longest has.
  std::size_t count_ = 0;
};

/// The first token of such a file: the one that a client sends. Throws as Tokens does.
[[nodiscard]] std::string first_token(const std::string& file);

}  // namespace headrace::wire
