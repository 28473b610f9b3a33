#pragma once

// function() makes an operator of a C function, for answers whose code another compiler makes, such as Numba.
//
//     headrace::operators::AnswerFunction twice = [](const void*, const void* query, void* answer, std::uint32_t,
//                                                    std::uint32_t) -> std::int32_t {
//       *static_cast<float*>(answer) = 2 * *static_cast<const float*>(query);
//       return 0;
//     };
//     headrace::serve::Operator op = headrace::operators::function(
//         {.name = "twice", .query_bytes = sizeof(float), .answer_bytes = sizeof(float), .function = twice});

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

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

/// An array that a function reads, contiguous, in the order of C. Read by code for CUDA devices alone: a function of
/// the host finds its arrays through FunctionOptions::state.
struct FunctionArray {
  std::string name = {};  ///< For errors.
  const void* data = nullptr;
  std::size_t bytes = 0;
  std::vector<std::uint64_t> shape = {};
  /// The number of the CUDA device whose memory it lies in, and is used in place. Empty: in the host's, and each device
  /// gets a copy.
  std::optional<int> cuda = {};
};

struct FunctionOptions {
  std::string name = {};
  std::size_t query_bytes = 0;
  std::size_t answer_bytes = 0;
  AnswerFunction function = nullptr;
  /// Gives the function where `function` is null, so that it need not be compiled for engines on GPUs. Optional. Called
  /// each time that the operator is loaded on a CPU device, perhaps by several threads at once; keeps what it compiles.
  std::function<AnswerFunction()> make_function = {};
  const void* state = nullptr;             ///< Handed to the function, which may not write there.
  std::shared_ptr<const void> owner = {};  ///< Keeps the function and `state` alive as long as the operator.
  /// Writes query number `index`. Optional: load tests need it.
  std::function<void(std::uint64_t index, std::byte* query)> sample = {};
  std::string answer_type = {};  ///< serve::Operator::answer_type
  std::vector<FunctionArray> arrays = {};
  /// Machine code for a CUDA device: a cubin of function_kernels() linked with the function, in which the kernels of
  /// these names have to be. Called when kernels of the operator are first used on a device. Empty: the operator runs
  /// on CPU devices only.
  std::function<std::vector<std::byte>(Device device, std::span<const std::string> kernels)> code = {};
  std::uint32_t blocks = 1;    ///< That answer one query on a CUDA device.
  std::uint32_t threads = 32;  ///< That each block has then.
};

/// The operator that answers by calling a function, under every schedule; on CUDA devices where there is `code`. Where
/// the function says that a query cannot be answered, the engine fails that query and all others from then on
/// (Errc::device_fault), as a GPU does whose kernel traps.
/// Throws UsageError where a size is 0, the function is missing, or the threads are not 1 to 1,024. An engine on a CPU
/// device throws what `make_function` throws, and UsageError where it gives null. On a device that it has no code for,
/// or whose memory does not hold an array that was given in a device's memory, engines throw DeviceError
/// (Errc::not_supported).
[[nodiscard]] serve::Operator function(FunctionOptions options);

/// The kernels that call a function on a CUDA device, as LTO-IR: nvJitLink makes a cubin of them and of
///
///   extern "C" __device__ std::int32_t headrace_answer(void** nothing, const std::uint64_t* words, const void* query,
///                                                      void* answer, std::uint32_t block, std::uint32_t block_count);
///
/// which all threads of a block call, and which returns 0 once they have written their part of the answer. `words` are,
/// for each of FunctionOptions::arrays, the address and the shape; where these are more than kFunctionWordsMost, the
/// first word is the address of all. `nothing` is there for Numba's calling convention.
///
/// @param compute_capability  90 for 9.0
///
/// Throws DeviceError (Errc::not_supported) in a build without CUDA, and for a GPU older than those it was built for.
[[nodiscard]] std::span<const std::byte> function_kernels(int compute_capability);

inline constexpr std::size_t kFunctionWordsMost = 13;

}  // namespace headrace::operators
