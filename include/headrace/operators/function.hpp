#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "headrace/serve/operator.hpp"

namespace headrace::operators {

/// A C function that answers one query on a CPU device, for operators that another compiler makes: Numba, or a C
/// compiler at run time.
///
/// @param state FunctionOptions::state
/// @param query, answer as many bytes as FunctionOptions says, aligned as a slot is (64 bytes) where batches hold one
///   query, and else by the largest power of two that divides the bytes
/// @param block, block_count the caller's part in the work, as CpuGroup::block() and CpuGroup::block_count() say
/// @return 0 once the answer is written; anything else where the query cannot be answered
///
/// Threads call it at the same time. It must not throw.
using AnswerFunction = std::int32_t (*)(const void* state, const void* query, void* answer, std::uint32_t block,
                                        std::uint32_t block_count);

struct FunctionOptions {
  std::string name = {};
  std::size_t query_bytes = 0;
  std::size_t answer_bytes = 0;
  AnswerFunction function = nullptr;
  const void* state = nullptr;             ///< Handed to `function`, which may not write there.
  std::shared_ptr<const void> owner = {};  ///< Keeps `function` and `state` alive as long as the operator.
  /// Writes query number `index`. Optional: load tests need it.
  std::function<void(std::uint64_t index, std::byte* query)> sample = {};
  std::string answer_type = {};  ///< serve::Operator::answer_type
};

/// The operator that answers by calling a function, on CPU devices, under every schedule. Where the function says that
/// a query cannot be answered, the engine fails that query and all others from then on (Errc::device_fault), as a
/// GPU does whose kernel traps.
/// Throws UsageError where a size is 0 or the function is missing. `load` throws DeviceError for a CUDA device.
[[nodiscard]] serve::Operator function(FunctionOptions options);

}  // namespace headrace::operators
