#pragma once

#include "headrace/device/stream.hpp"
#include "operators/spmv/spmv.hpp"

namespace headrace::operators {

/// Enqueues y = A x for the rows of `part` on a stream of their device.
template <class Value>
[[nodiscard]] Status launch_spmv(StreamRef stream, const SpmvPart<Value>& part, const Value* x, Value* y);

/// Enqueues a copy of `count` values to memory of the stream's device, by a kernel that reads them in place.
template <class Value>
[[nodiscard]] Status launch_gather(StreamRef stream, Value* to, const Value* from, std::uint64_t count);

}  // namespace headrace::operators
