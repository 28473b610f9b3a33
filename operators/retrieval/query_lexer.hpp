#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace headrace::operators {

enum class TokenKind : std::uint8_t { word, and_word, or_word, not_word, open, close, end };

struct Token {
  TokenKind kind;
  std::size_t position;  ///< In characters (code points), from 1.
  std::string_view text;
};

/// As it is put in an error: "'lion'", "')'", "the end".
[[nodiscard]] std::string describe(const Token& token);

/// The same of at most 40 of its characters.
[[nodiscard]] std::string describe_shortly(const Token& token);

/// Throws the UsageError "query, position <position>: <what>".
[[noreturn]] void throw_at(std::size_t position, std::string_view what);

/// Splits a query into tokens: parentheses, what stands in double quotes, and what lies between these and spaces.
/// Throws UsageError where a quote is not closed.
class QueryLexer {
 public:
  /// Throws UsageError where the text is not UTF-8.
  explicit QueryLexer(std::string_view text);

  /// The token that next() gives; the end again and again after the last.
  [[nodiscard]] const Token& peek() const noexcept { return token_; }
  Token next();

 private:
  [[nodiscard]] Token read();
  [[nodiscard]] Token read_quoted();
  /// The position of the character that begins at `byte`, which is never before that of the last call.
  [[nodiscard]] std::size_t position_of(std::size_t byte) noexcept;

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t counted_bytes_ = 0;
  std::size_t position_ = 1;  ///< The position of the character that begins at counted_bytes_.
  Token token_;
};

}  // namespace headrace::operators
