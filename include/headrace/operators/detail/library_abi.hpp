#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/device/detail/barrier_mailbox.hpp"
#include "headrace/device/detail/mailbox.hpp"
#include "headrace/device/group.hpp"
#include "headrace/device/kernel.hpp"
#include "headrace/serve/detail/dispatch.hpp"
#include "headrace/serve/detail/persistent_kernel.hpp"
#include "headrace/serve/detail/query_place.hpp"

/// What a shared object with an operator and the program that loads it agree on. Operators include
/// headrace/operators/library.hpp, and programs headrace/operators/load_library.hpp.
///
/// Only plain memory and C functions cross the boundary, and neither side needs a symbol of the other: several copies
/// of Headrace may be in one process (docs/decisions/0084).
namespace headrace::operators {

/// Increase it whenever OperatorLibrary changes, or what engines and kernels write to their shared memory.
inline constexpr std::uint32_t kOperatorAbi = 4;
/// The one function that an operator's shared object exports, an OperatorLibraryFunction.
inline constexpr const char* kOperatorSymbol = "headrace_operator";

/// The size of a type that both the kernels in the shared object and the program's engines use.
struct LibraryLayout {
  const char* name;
  std::uint32_t bytes;
  std::uint32_t alignment;
};

namespace detail {

template <class Type>
[[nodiscard]] consteval LibraryLayout layout_of(const char* name) {
  return {name, static_cast<std::uint32_t>(sizeof(Type)), static_cast<std::uint32_t>(alignof(Type))};
}

}  // namespace detail

/// Each side has the sizes that it was compiled with. Not inline: a shared object and its program must not share them.
static constexpr LibraryLayout kLibraryLayouts[] = {
    detail::layout_of<Kernel>("Kernel"),
    detail::layout_of<CpuGroup>("CpuGroup"),
    detail::layout_of<SealedUnit>("SealedUnit"),
    detail::layout_of<BarrierCell>("BarrierCell"),
    detail::layout_of<serve::QueryPlace>("QueryPlace"),
    detail::layout_of<serve::DispatchStamps>("DispatchStamps"),
    detail::layout_of<serve::DispatchView>("DispatchView"),
    detail::layout_of<serve::BoxTimes>("BoxTimes"),
    detail::layout_of<serve::PersistentView<MailboxView>>("PersistentView<MailboxView>"),
    detail::layout_of<serve::PersistentView<BarrierMailboxView>>("PersistentView<BarrierMailboxView>"),
};

/// A member of a query or an answer: a number, or an array of numbers in C order.
struct Field {
  static constexpr std::uint32_t kDimensionsMax = 4;

  const char* name;          ///< Empty if this field is the whole value.
  char kind;                 ///< NumPy's kind: b boolean, i signed, u unsigned, f floating-point.
  std::uint32_t item_bytes;  ///< Size of a number.
  std::uint64_t offset;      ///< Offset from the beginning, in bytes.
  std::uint32_t dimensions;  ///< 0 for a single number.
  std::uint64_t lengths[kDimensionsMax];
};

/// The kernels of serve::Operator, in the order of OperatorLibrary::kernels.
enum class LibraryKernel : std::uint8_t { plain, scattered, pool, pool_inline, persistent, persistent_barrier };
inline constexpr std::size_t kLibraryKernels = 6;

/// A shared object's description of its operator. Valid while the object is loaded.
struct OperatorLibrary {
  // These members keep their offsets in every ABI, so that every version of Headrace can report a mismatch.
  std::uint32_t abi;
  std::uint32_t bytes;   ///< The size of this struct.
  const char* version;   ///< The version of the Headrace headers that it was compiled with.
  const char* commit;    ///< The commit of those headers; empty if unknown.
  const char* compiler;  ///< Name and version.

  // Everything below depends on `abi`.
  const LibraryLayout* layouts;  ///< kLibraryLayouts
  std::uint32_t layout_count;

  const char* name;
  std::uint64_t query_bytes;
  std::uint64_t answer_bytes;
  std::uint32_t state_bytes;
  std::uint32_t blocks;   ///< Blocks that answer one query on a CUDA device.
  std::uint32_t threads;  ///< Threads of each of these blocks.
  const Field* query_fields;
  std::uint32_t query_field_count;  ///< 0 for plain bytes.
  const Field* answer_fields;
  std::uint32_t answer_field_count;
  Kernel kernels[kLibraryKernels];

  /// Writes `state_bytes` bytes. Returns 0, or 1 if the operator's state() threw an exception, and writes its text.
  int (*make_state)(void* state, char* message, std::size_t message_bytes);
  /// Writes query number `index`. Returns 0 or 1, like make_state(). Null if the operator has no sample().
  int (*sample)(std::uint64_t index, void* query, char* message, std::size_t message_bytes);
  /// Returns the cudaKernel_t of a CUDA entry in `kernels`, the only handle that another copy of the CUDA runtime can
  /// launch. Returns 0 or CUDA's error code. Null unless nvcc compiled the operator.
  int (*cuda_kernel)(const void* entry, const void** kernel);
};

using OperatorLibraryFunction = const OperatorLibrary* (*)();

}  // namespace headrace::operators
