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

/// A C function that answers one query on a CPU device, for code from another compiler: Numba, or a C compiler at run
/// time.
///
/// @param state FunctionOptions::state
/// @param query, answer as many bytes as FunctionOptions says, aligned to 64 bytes if batches hold one query, otherwise
///   to the largest power of two that divides their size
/// @param block, block_count the caller's share of the work, as in CpuGroup::block() and CpuGroup::block_count()
/// @return 0 once the answer is written; anything else if the query cannot be answered
///
/// Several threads may call it at the same time. It must not throw.
using AnswerFunction = std::int32_t (*)(const void* state, const void* query, void* answer, std::uint32_t block,
                                        std::uint32_t block_count);

/// A contiguous array in C order that a function reads. Only code for CUDA devices uses it: a function of the host
/// finds its arrays through FunctionOptions::state.
struct FunctionArray {
  std::string name = {};       ///< For errors.
  const void* data = nullptr;  ///< Its first element.
  std::size_t bytes = 0;       ///< Its size.
  /// Elements along each dimension.
  std::vector<std::uint64_t> shape = {};
  /// The number of the CUDA device that holds the array, which is used in place. Empty if the array is in host memory,
  /// and each device gets a copy.
  std::optional<int> cuda = {};
};

/// A function, and what an operator needs to know about it.
struct FunctionOptions {
  std::string name = {};              ///< The name of the operator.
  std::size_t query_bytes = 0;        ///< Size of a query; above 0.
  std::size_t answer_bytes = 0;       ///< Size of an answer; above 0.
  AnswerFunction function = nullptr;  ///< The function for CPU devices.
  /// Returns the function if `function` is null, so that it need not be compiled for engines on GPUs. Called each time
  /// that the operator is loaded on a CPU device, perhaps by several threads at once; it should keep what it compiles.
  std::function<AnswerFunction()> make_function = {};
  const void* state = nullptr;             ///< Passed to the function, which must not write to it.
  std::shared_ptr<const void> owner = {};  ///< Keeps the function and `state` alive as long as the operator.
  /// Writes query number `index`, see serve::Operator::sample. Optional: load tests need it.
  std::function<void(std::uint64_t index, std::byte* query)> sample = {};
  std::string answer_type = {};            ///< serve::Operator::answer_type
  std::vector<FunctionArray> arrays = {};  ///< Arrays for the code of CUDA devices.
  /// Returns machine code for a CUDA device: a cubin of function_kernels() linked with the function, with at least the
  /// kernels of these names. Called when kernels of the operator are first used on a device. Empty: the operator runs
  /// on CPU devices only.
  std::function<std::vector<std::byte>(Device device, std::span<const std::string> kernels)> code = {};
  std::uint32_t blocks = 1;    ///< Blocks that answer one query on a CUDA device.
  std::uint32_t threads = 32;  ///< Threads of each of those blocks.
};

/// The operator that answers by calling a function, under every schedule; on CUDA devices if there is `code`. If the
/// function reports that a query cannot be answered, the engine fails that query and all later ones
/// (Errc::device_fault), as it does when a kernel traps on a GPU. Throws UsageError if a size is 0, the function is
/// missing, or threads are not 1 to 1,024. Engines on CPU devices throw what `make_function` throws, and UsageError if
/// it returns null. Engines throw DeviceError (Errc::not_supported) on a device for which there is no code, or whose
/// memory does not hold an array given in a device's memory.
[[nodiscard]] serve::Operator function(FunctionOptions options);

/// The kernels that call a function on a CUDA device, as LTO-IR: nvJitLink makes a cubin of them and of
///
///   extern "C" __device__ std::int32_t headrace_answer(void** nothing, const std::uint64_t* words, const void* query,
///                                                      void* answer, std::uint32_t block, std::uint32_t block_count);
///
/// which all threads of a block call, and which returns 0 once they have written their part of the answer. `words` has
/// the address and the shape of each of FunctionOptions::arrays; if these are more than kFunctionWordsMost words, the
/// first word is the address of all. `nothing` is required by Numba's calling convention.
///
/// @param compute_capability  90 for 9.0
///
/// Throws DeviceError (Errc::not_supported) in a build without CUDA, and for GPUs older than those of the build.
[[nodiscard]] std::span<const std::byte> function_kernels(int compute_capability);

/// Most words of arrays that a kernel takes as arguments, see function_kernels().
inline constexpr std::size_t kFunctionWordsMost = 13;

}  // namespace headrace::operators
