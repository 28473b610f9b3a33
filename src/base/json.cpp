#include "base/json.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdint>

#include "headrace/base/error.hpp"

namespace headrace {

namespace {

constexpr int kDepthMost = 64;

void append_utf8(std::string& text, std::uint32_t code) {
  const auto byte = [&](std::uint32_t value) { text += static_cast<char>(value); };
  if (code < 0x80) {
    byte(code);
  } else if (code < 0x800) {
    byte(0xC0 | code >> 6);
    byte(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    byte(0xE0 | code >> 12);
    byte(0x80 | (code >> 6 & 0x3F));
    byte(0x80 | (code & 0x3F));
  } else {
    byte(0xF0 | code >> 18);
    byte(0x80 | (code >> 12 & 0x3F));
    byte(0x80 | (code >> 6 & 0x3F));
    byte(0x80 | (code & 0x3F));
  }
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Json whole() {
    Json value = any(0);
    space();
    if (at_ != text_.size()) fail("unexpected text after the value");
    return value;
  }

 private:
  [[noreturn]] void fail(std::string_view what) const { throw DataError(fmt::format("JSON, byte {}: {}", at_, what)); }

  void space() noexcept {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
  }
  [[nodiscard]] char peek() const noexcept { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(char c) noexcept {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail(fmt::format("expected '{}'", c));
  }
  bool take(std::string_view word) noexcept {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  Json any(int depth) {
    if (depth > kDepthMost) fail("arrays and objects are nested too deeply");
    space();
    if (peek() == '{') return object(depth);
    if (peek() == '[') return array(depth);
    if (peek() == '"') return string();
    if (take("true")) return true;
    if (take("false")) return false;
    if (take("null")) return {};
    return number();
  }

  Json object(int depth) {
    Json::Object members;
    expect('{');
    space();
    if (take('}')) return members;
    do {
      space();
      std::string name = string();
      space();
      expect(':');
      members.emplace_back(std::move(name), any(depth + 1));
      space();
    } while (take(','));
    expect('}');
    return members;
  }

  Json array(int depth) {
    Json::Array values;
    expect('[');
    space();
    if (take(']')) return values;
    do {
      values.push_back(any(depth + 1));
      space();
    } while (take(','));
    expect(']');
    return values;
  }

  Json number() {
    const std::string_view rest = text_.substr(at_);
    // from_chars() also accepts "inf", "nan", ".5" and "01", which JSON does not.
    const std::size_t first = rest.starts_with('-') ? 1 : 0;
    const auto digit = [&](std::size_t i) { return i < rest.size() && rest[i] >= '0' && rest[i] <= '9'; };
    if (!digit(first) || (rest[first] == '0' && digit(first + 1))) fail("expected a value");
    double value = 0;
    const auto [end, status] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    if (status != std::errc{}) fail("the number is out of range");
    if (*(end - 1) == '.') fail("expected a digit");
    at_ += static_cast<std::size_t>(end - rest.data());
    return value;
  }

  std::uint32_t four_digits() {
    std::uint32_t code = 0;
    const std::string_view digits = text_.substr(at_, 4);
    const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
    if (status != std::errc{} || end != digits.data() + 4) fail("expected four hexadecimal digits");
    at_ += 4;
    return code;
  }

  std::uint32_t code_point() {
    const std::uint32_t high = four_digits();
    if (high < 0xD800 || high > 0xDFFF) return high;
    if (high > 0xDBFF || !take("\\u")) fail("unpaired surrogate");
    const std::uint32_t low = four_digits();
    if (low < 0xDC00 || low > 0xDFFF) fail("unpaired surrogate");
    return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
  }

  std::string string() {
    expect('"');
    std::string text;
    while (!take('"')) {
      if (at_ >= text_.size()) fail("the string has no closing quote");
      const char c = text_[at_++];
      if (static_cast<unsigned char>(c) < 0x20) fail("a string contains an unescaped control character");
      if (c != '\\') {
        text += c;
        continue;
      }
      constexpr std::string_view kNames = "\"\\/bfnrt";
      constexpr std::string_view kMeant = "\"\\/\b\f\n\r\t";
      const char name = peek();
      ++at_;
      if (name == 'u') {
        append_utf8(text, code_point());
      } else if (const auto which = kNames.find(name); which != std::string_view::npos) {
        text += kMeant[which];
      } else {
        fail("unknown escape sequence");
      }
    }
    return text;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

void write_string(std::string& to, std::string_view text) {
  to += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      to += '\\';
      to += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      to += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      to += c;
    }
  }
  to += '"';
}

}  // namespace

Json Json::parse(std::string_view text) { return Parser(text).whole(); }

const Json* Json::find(std::string_view name) const noexcept {
  if (const Object* members = object()) {
    for (const auto& [key, value] : *members) {
      if (key == name) return &value;
    }
  }
  return nullptr;
}

std::string Json::text(bool indented) const {
  std::string to;
  write(to, indented, 0);
  return to;
}

void Json::write(std::string& to, bool indented, std::size_t depth) const {
  const auto line = [&](std::size_t at) {
    if (indented) to.append(1, '\n').append(2 * at, ' ');
  };
  const auto list = [&](char open, char close, const auto& values, const auto& write_one) {
    to += open;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i > 0) to += indented ? "," : ", ";
      line(depth + 1);
      write_one(values[i]);
    }
    if (!values.empty()) line(depth);
    to += close;
  };
  if (const bool* truth = boolean()) {
    to += *truth ? "true" : "false";
  } else if (const double* value = number(); value != nullptr && std::isfinite(*value)) {
    to += fmt::format("{}", *value);
  } else if (const std::string* words = string()) {
    write_string(to, *words);
  } else if (const Array* values = array()) {
    list('[', ']', *values, [&](const Json& one) { one.write(to, indented, depth + 1); });
  } else if (const Object* members = object()) {
    list('{', '}', *members, [&](const auto& one) {
      write_string(to, one.first);
      to += ": ";
      one.second.write(to, indented, depth + 1);
    });
  } else {
    to += "null";
  }
}

}  // namespace headrace
