#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "headrace/serve/engine.hpp"

namespace headrace::python {

/// How an operator's answers look in Python: as its answer_type says, or as rows of bytes where it has none.
class AnswerType {
 public:
  explicit AnswerType(const serve::Operator& op) : AnswerType(op.answer_type, op.answer_bytes) {}
  /// @param type  as Operator::answer_type
  AnswerType(const std::string& type, std::size_t bytes);

  /// The array that owns `answers` from now on.
  [[nodiscard]] nanobind::object array(std::unique_ptr<std::uint8_t[]> answers, std::size_t count) const;
  /// The array of a copy of `answers`.
  [[nodiscard]] nanobind::object copy(const std::uint8_t* answers, std::size_t count) const;

 private:
  std::size_t bytes_;
  nanobind::object array_class_;  ///< numpy.ndarray
  nanobind::object base_;         ///< The type of an answer's items.
  nanobind::object shape_;        ///< The shape of an answer of such items.
};

/// A status as one byte in an array: 0 for an answer, else 1 + the Errc.
[[nodiscard]] std::uint8_t status_byte(Status status) noexcept;

/// Throws what became of a query without an answer. CPU devices do not fail: there the operator did.
[[noreturn]] void throw_failed(Errc code, const serve::Engine& engine);

}  // namespace headrace::python
