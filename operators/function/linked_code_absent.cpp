#include "operators/function/linked_code.hpp"

namespace headrace::operators {

std::span<const LinkedCode> linked_codes() noexcept { return {}; }

}  // namespace headrace::operators
