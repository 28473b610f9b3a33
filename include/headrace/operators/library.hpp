#pragma once

// A shared object exports an operator through this header, so that programs load it by its path: write the struct that
// make_operator() describes, and HEADRACE_OPERATOR(TheStruct) behind it. The CMake function headrace_add_operator() of
// the installed package builds it.
//
//     struct Square {
//       static constexpr const char* kName = "square";
//       using Query = float;
//       using Answer = float;
//       struct State {};
//       template <class Group>
//       HEADRACE_HD static void answer(Group group, const State&, const Query* query, Answer* answer) {
//         if (group.thread() == 0) *answer = *query * *query;
//       }
//     };
//     HEADRACE_OPERATOR(Square);

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <new>
#include <type_traits>

#include "headrace/config.hpp"
#include "headrace/operators/detail/library_abi.hpp"
#include "headrace/serve/operator.hpp"

/// Besides what make_operator() asks for, the struct of an operator in a shared object may have
///
/// - `static constexpr std::uint32_t kThreads, kBlocks`: threads of a block, and blocks, that answer a query on a CUDA
///   device; 32 and 1 by default;
/// - `static constexpr Field kQueryFields[], kAnswerFields[]`: the members of Query and Answer, by HEADRACE_FIELD, for
///   Python and the server. Not needed if these are a number or a std::array of numbers; without, they are bytes;
/// - `static State state()`: called when an engine starts, which passes on its exceptions; by default `State{}`;
/// - `static Query sample(std::uint64_t index)`: query number `index`, for load tests and `headrace check`.
///
/// A query is one Query and an answer one Answer. The shared object needs nothing of libheadrace.a.

/// The Field for a member of a struct.
#define HEADRACE_FIELD(Struct, member) \
  ::headrace::operators::field<decltype(Struct::member)>(#member, offsetof(Struct, member))

#ifndef HEADRACE_COMMIT
/// The commit of Headrace that a shared object is built against. headrace_add_operator() sets it; empty if not known.
#define HEADRACE_COMMIT ""
#endif

/// Exports an operator from a shared object: once in it, at the scope of the file.
#define HEADRACE_OPERATOR(...)                                                                    \
  extern "C" __attribute__((visibility("default"))) const ::headrace::operators::OperatorLibrary* \
  headrace_operator() {                                                                           \
    static const ::headrace::operators::OperatorLibrary made =                                    \
        ::headrace::operators::detail::describe<__VA_ARGS__>(HEADRACE_COMMIT);                    \
    return &made;                                                                                 \
  }                                                                                               \
  static_assert(true, "takes the semicolon")

namespace headrace::operators {

namespace detail {

template <class Type>
struct ArrayShape {
  using Item = Type;
  static constexpr void write(Field& /*field*/) {}
};

template <class Type, std::size_t kLength>
struct ArrayShape<Type[kLength]> {
  using Item = typename ArrayShape<Type>::Item;
  static constexpr void write(Field& field) {
    if (field.dimensions < Field::kDimensionsMax) field.lengths[field.dimensions] = kLength;
    ++field.dimensions;
    ArrayShape<Type>::write(field);
  }
};

template <class Type, std::size_t kLength>
struct ArrayShape<std::array<Type, kLength>> : ArrayShape<Type[kLength]> {};

template <class Number>
[[nodiscard]] consteval char kind_of() {
  if (std::is_same_v<Number, bool>) return 'b';
  if (std::is_floating_point_v<Number>) return 'f';
  return std::is_signed_v<Number> ? 'i' : 'u';
}

template <class Type>
inline constexpr bool kIsNumber = std::is_arithmetic_v<typename ArrayShape<Type>::Item>;

}  // namespace detail

/// A field of that type. See HEADRACE_FIELD.
template <class Type>
[[nodiscard]] consteval Field field(const char* name, std::size_t offset) {
  using Item = typename detail::ArrayShape<Type>::Item;
  static_assert(std::is_arithmetic_v<Item> && sizeof(Item) <= 8,
                "a field must be a number of up to 8 bytes, or an array of numbers; leave out other members");
  Field made{name, detail::kind_of<Item>(), static_cast<std::uint32_t>(sizeof(Item)), offset, 0, {}};
  detail::ArrayShape<Type>::write(made);
  if (made.dimensions > Field::kDimensionsMax) throw "a field has at most four dimensions";  // fails to compile
  return made;
}

namespace detail {

struct Fields {
  const Field* first;
  std::uint32_t count;
};

/// The only field of a type that is a number or an array of numbers.
template <class Type>
inline constexpr Field kWhole = field<Type>("", 0);

template <class Op>
[[nodiscard]] Fields query_fields() {
  if constexpr (requires { std::size(Op::kQueryFields); }) {
    return {std::data(Op::kQueryFields), static_cast<std::uint32_t>(std::size(Op::kQueryFields))};
  } else if constexpr (kIsNumber<typename Op::Query>) {
    return {&kWhole<typename Op::Query>, 1};
  } else {
    return {nullptr, 0};
  }
}

template <class Op>
[[nodiscard]] Fields answer_fields() {
  if constexpr (requires { std::size(Op::kAnswerFields); }) {
    return {std::data(Op::kAnswerFields), static_cast<std::uint32_t>(std::size(Op::kAnswerFields))};
  } else if constexpr (kIsNumber<typename Op::Answer>) {
    return {&kWhole<typename Op::Answer>, 1};
  } else {
    return {nullptr, 0};
  }
}

/// Calls `make`, and writes the text of what it throws: no exception may leave the shared object.
template <class Make>
[[nodiscard]] int guarded(const Make& make, char* message, std::size_t message_bytes) noexcept {
  const auto write = [&](const char* text) {
    if (message_bytes == 0) return;
    std::strncpy(message, text, message_bytes - 1);
    message[message_bytes - 1] = '\0';
  };
  try {
    make();
    return 0;
  } catch (const std::exception& error) {
    write(error.what());
  } catch (...) {
    write("it threw something other than a std::exception");
  }
  return 1;
}

template <class Op>
int make_state(void* state, char* message, std::size_t message_bytes) {
  return guarded(
      [state] {
        using State = typename Op::State;
        if constexpr (requires { Op::state(); }) {
          const State made = Op::state();
          std::memcpy(state, &made, sizeof made);
        } else {
          static_assert(std::is_default_constructible_v<State>, "give the operator a static State state()");
          const State made{};
          std::memcpy(state, &made, sizeof made);
        }
      },
      message, message_bytes);
}

template <class Op>
int make_sample(std::uint64_t index, void* query, char* message, std::size_t message_bytes) {
  return guarded(
      [&] {
        const typename Op::Query made = Op::sample(index);
        std::memcpy(query, &made, sizeof made);
      },
      message, message_bytes);
}

#if defined(__CUDACC__)
inline int cuda_kernel(const void* entry, const void** kernel) {
  cudaKernel_t found = nullptr;
  const cudaError_t status = cudaGetKernel(&found, entry);
  *kernel = found;
  return static_cast<int>(status);
}
#endif

template <class Op>
static void add_library_kernels(OperatorLibrary& made) {
  serve::Operator op;
  serve::detail::add_kernels<Op>(op);
  const Kernel kernels[] = {op.kernel,      op.scattered_kernel, op.pool,
                            op.pool_inline, op.persistent,       op.persistent_barrier};
  static_assert(std::size(kernels) == kLibraryKernels);
  for (std::size_t i = 0; i < kLibraryKernels; ++i) made.kernels[i] = kernels[i];
}

/// `static` for the same reason as make_kernel().
template <class Op>
[[nodiscard]] static OperatorLibrary describe(const char* commit) {
  OperatorLibrary made{};
  made.abi = kOperatorAbi;
  made.bytes = sizeof(OperatorLibrary);
  made.version = kVersion;
  made.commit = commit;
#if defined(__clang__)
  made.compiler = __VERSION__;
#else
  made.compiler = "GCC " __VERSION__;
#endif
  made.layouts = kLibraryLayouts;
  made.layout_count = static_cast<std::uint32_t>(std::size(kLibraryLayouts));
  if constexpr (serve::detail::is_operator<Op>()) {
    made.name = Op::kName;
    made.query_bytes = sizeof(typename Op::Query);
    made.answer_bytes = sizeof(typename Op::Answer);
    made.state_bytes = static_cast<std::uint32_t>(sizeof(typename Op::State));
    made.blocks = 1;
    made.threads = 32;
    if constexpr (requires { Op::kBlocks; }) made.blocks = Op::kBlocks;
    if constexpr (requires { Op::kThreads; }) made.threads = Op::kThreads;
    const Fields query = query_fields<Op>();
    const Fields answer = answer_fields<Op>();
    made.query_fields = query.first;
    made.query_field_count = query.count;
    made.answer_fields = answer.first;
    made.answer_field_count = answer.count;
    add_library_kernels<Op>(made);
    made.make_state = &make_state<Op>;
    if constexpr (requires { Op::sample(std::uint64_t{}); }) made.sample = &make_sample<Op>;
#if defined(__CUDACC__)
    made.cuda_kernel = &cuda_kernel;
#endif
  }
  return made;
}

}  // namespace detail

}  // namespace headrace::operators
