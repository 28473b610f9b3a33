#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "headrace/serve/engine.hpp"

namespace headrace::python {

/// The Python type of an operator's answers: that of its answer_type, or rows of bytes without one.
class AnswerType {
 public:
  explicit AnswerType(const serve::Operator& op) : AnswerType(op.answer_type, op.answer_bytes) {}
  /// @param type  in the format of Operator::answer_type
  AnswerType(const std::string& type, std::size_t bytes);

  /// An array that takes ownership of `answers`.
  [[nodiscard]] nanobind::object array(std::unique_ptr<std::uint8_t[]> answers, std::size_t count) const;
  /// An array with a copy of `answers`.
  [[nodiscard]] nanobind::object copy(const std::uint8_t* answers, std::size_t count) const;

 private:
  std::size_t bytes_;
  nanobind::object array_class_;  ///< numpy.ndarray
  nanobind::object base_;         ///< The type of an answer's items.
  nanobind::object shape_;        ///< The shape of an answer in such items.
};

/// A status as one byte in an array: 0 for an answer, else 1 + the Errc.
[[nodiscard]] std::uint8_t status_byte(Status status) noexcept;

/// Throws the reason why a query has no answer. CPU devices do not fail, so on them the operator did.
[[noreturn]] void throw_failed(Errc code, const serve::Engine& engine);

}  // namespace headrace::python
