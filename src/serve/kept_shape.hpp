#pragma once

#include "headrace/serve/operator.hpp"

namespace headrace::serve {

/// Whether an operator works only with the threads and blocks of Operator::shape. That holds for code that is made at
/// run time: its author chose the shape and may have sized shared memory by it, which cannot be checked.
[[nodiscard]] inline bool keeps_shape(const Operator& op) noexcept { return op.link != nullptr; }

}  // namespace headrace::serve
