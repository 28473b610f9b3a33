#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace headrace {

/// A JSON value (RFC 8259), for small files of Headrace's own. Objects keep the order of their members.
class Json {
 public:
  using Array = std::vector<Json>;
  using Object = std::vector<std::pair<std::string, Json>>;

  Json() noexcept : value_(nullptr) {}
  Json(bool value) noexcept : value_(value) {}                    // NOLINT(google-explicit-constructor)
  Json(double value) noexcept : value_(value) {}                  // NOLINT(google-explicit-constructor)
  Json(std::string value) noexcept : value_(std::move(value)) {}  // NOLINT(google-explicit-constructor)
  Json(std::string_view value) : value_(std::string(value)) {}    // NOLINT(google-explicit-constructor)
  Json(const char* value) : value_(std::string(value)) {}         // NOLINT(google-explicit-constructor)
  Json(Array value) noexcept : value_(std::move(value)) {}        // NOLINT(google-explicit-constructor)
  Json(Object value) noexcept : value_(std::move(value)) {}       // NOLINT(google-explicit-constructor)

  /// Throws DataError "JSON, byte N: ..." for anything that is not one JSON value, nested no deeper than 64.
  [[nodiscard]] static Json parse(std::string_view text);

  /// The value if it is of that kind, else null.
  [[nodiscard]] const bool* boolean() const noexcept { return std::get_if<bool>(&value_); }
  [[nodiscard]] const double* number() const noexcept { return std::get_if<double>(&value_); }
  [[nodiscard]] const std::string* string() const noexcept { return std::get_if<std::string>(&value_); }
  [[nodiscard]] const Array* array() const noexcept { return std::get_if<Array>(&value_); }
  [[nodiscard]] const Object* object() const noexcept { return std::get_if<Object>(&value_); }
  [[nodiscard]] bool is_null() const noexcept { return std::holds_alternative<std::nullptr_t>(value_); }
  /// The member of that name. Null if this is not an object or has no such member.
  [[nodiscard]] const Json* find(std::string_view name) const noexcept;

  /// The value as JSON, on one line or indented by two spaces. Numbers read back as the same double; infinities and NaN
  /// are null.
  [[nodiscard]] std::string text(bool indented = false) const;

 private:
  void write(std::string& to, bool indented, std::size_t depth) const;
  std::variant<std::nullptr_t, bool, double, std::string, Array, Object> value_;
};

}  // namespace headrace
