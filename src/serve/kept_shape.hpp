#pragma once

#include "headrace/serve/operator.hpp"

namespace headrace::serve {

/// Whether an operator is answered by the threads and blocks of Operator::shape alone. Code that is made at run time
/// is: its author has chosen them, and may have sized memory that threads share by them, which nothing can check.
[[nodiscard]] inline bool keeps_shape(const Operator& op) noexcept { return op.link != nullptr; }

}  // namespace headrace::serve
