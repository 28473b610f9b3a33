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

/// Its text in an error: "'lion'", "')'", "the end".
[[nodiscard]] std::string describe(const Token& token);

/// The same with at most 40 of its characters.
[[nodiscard]] std::string describe_shortly(const Token& token);

/// Throws the UsageError "query, position <position>: <what>".
[[noreturn]] void throw_at(std::size_t position, std::string_view what);

/// Splits a query into tokens: parentheses, text in double quotes, and text between these and spaces. Throws UsageError
/// if a quote is not closed.
class QueryLexer {
 public:
  /// Throws UsageError if the text is not UTF-8.
  explicit QueryLexer(std::string_view text);

  /// The token that next() will return. After the last token, always the end.
  [[nodiscard]] const Token& peek() const noexcept { return token_; }
  Token next();

 private:
  [[nodiscard]] Token read();
  [[nodiscard]] Token read_quoted();
  /// The position of the character that begins at `byte`. Successive calls must not go backwards.
  [[nodiscard]] std::size_t position_of(std::size_t byte) noexcept;

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t counted_bytes_ = 0;
  std::size_t position_ = 1;  ///< The position of the character at counted_bytes_.
  Token token_;
};

}  // namespace headrace::operators
