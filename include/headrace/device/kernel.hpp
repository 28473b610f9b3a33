#pragma once

// A kernel is code that streams launch on devices of any kind. make_kernel() makes one of a template over the group
// that runs it; where nvcc compiles the call, the kernel runs on CUDA devices as well.
//
//     struct Double {
//       static constexpr const char* kName = "double";
//       template <class Group>
//       HEADRACE_HD static void run(Group group, float* values) {
//         if (group.thread() == 0) values[group.item()] *= 2;
//       }
//     };
//     std::vector<float> values(1000, 1.0F);
//     headrace::Stream stream(headrace::Device::parse("cpu"));
//     auto kernel = headrace::make_kernel<Double, float*>();
//     headrace::launch(stream, kernel, {.items = 1000}, values.data()).or_throw("doubling");

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

#include "headrace/base/result.hpp"
#include "headrace/device/detail/flush_to_zero.hpp"
#include "headrace/device/device.hpp"
#include "headrace/device/group.hpp"
#include "headrace/device/stream.hpp"

#if defined(__CUDACC__)
#include "headrace/device/detail/group.cuh"
#endif

namespace headrace {

/// Most arguments of a kernel.
inline constexpr std::size_t kKernelArgumentsMax = 8;
/// Most bytes of all arguments of a kernel together.
inline constexpr std::size_t kKernelArgumentBytesMax = 640;

/// A function that can be launched on a stream, with its type erased: an entry for each kind of device.
struct Kernel {
  /// The code of a kernel on a CPU device: runs one item, with the addresses of the arguments.
  using CpuEntry = void (*)(const CpuGroup& group, void* const* arguments);

  const char* name = "";  ///< For messages.
  /// The code for each kind of device, by DeviceKind: a CpuEntry for the CPU, the address of a __global__ function for
  /// CUDA. Null if the kernel was compiled without that kind's compiler.
  std::array<const void*, kDeviceKinds> entries{};
  std::uint32_t argument_count = 0;  ///< Arguments that the kernel takes.
  /// The size of each argument.
  std::array<std::uint32_t, kKernelArgumentsMax> argument_bytes{};

  /// The code for devices of that kind; null if it was not compiled for them.
  [[nodiscard]] const void* entry(DeviceKind kind) const noexcept { return entries[static_cast<std::size_t>(kind)]; }
  /// Whether devices of that kind can run it.
  [[nodiscard]] bool runs_on(DeviceKind kind) const noexcept { return entry(kind) != nullptr; }
  /// Sets the code for devices of that kind.
  void set_entry(DeviceKind kind, const void* code) noexcept { entries[static_cast<std::size_t>(kind)] = code; }
  /// The entry for CPU devices; null if there is none.
  [[nodiscard]] CpuEntry cpu_entry() const noexcept {
    return reinterpret_cast<CpuEntry>(const_cast<void*>(entry(DeviceKind::cpu)));
  }
};

/// A Kernel that knows the types of its arguments, so that launch() can check and convert the given ones. The
/// conversion to a Kernel loses the types; a Kernel is launched through StreamRef::launch().
template <class... Arguments>
struct TypedKernel : Kernel {};

/// How many threads run a kernel: `items` independent pieces of work, each by `blocks` blocks of `threads` threads. A
/// CUDA device takes at most 65,535 items per launch and refuses more (Errc::invalid_argument). A CPU device runs each
/// item with one thread, whatever the shape says; a resident launch there has one thread per block.
struct LaunchShape {
  std::uint32_t blocks = 1;   ///< Blocks that work on one item.
  std::uint32_t threads = 1;  ///< Threads of each block.
  std::uint32_t items = 1;    ///< Independent pieces of work.
  /// Starts the kernel as soon as all blocks of the kernel enqueued just before it have ended or called
  /// launch_dependents() of their group, although the earlier kernel's writes may not be done or visible: the kernels
  /// must order those themselves (CUDA C++ Programming Guide, "Programmatic Dependent Launch and Synchronization"). No
  /// effect below compute capability 9.0 and in graphs.
  bool early = false;
  /// launch_resident(): the kernel stays on multiprocessors that an OwnMultiprocessors has taken, which no other
  /// resident kernel uses, so it takes nothing from the share of others.
  bool on_own_multiprocessors = false;
  friend bool operator==(const LaunchShape&, const LaunchShape&) = default;
};

namespace detail {

/// Most threads of a block that runs Body: Body::kThreadsMax, or 1,024.
template <class Body>
[[nodiscard]] consteval int threads_max() {
  if constexpr (requires { Body::kThreadsMax; }) {
    return Body::kThreadsMax;
  } else {
    return 1024;
  }
}

/// Blocks that a multiprocessor must be able to hold: Body::kBlocksMin, or 1.
template <class Body>
[[nodiscard]] consteval int blocks_min() {
  if constexpr (requires { Body::kBlocksMin; }) {
    return Body::kBlocksMin;
  } else {
    return 1;
  }
}

#if defined(__CUDACC__)
/// Bounded, so that no body uses more registers than a block of its threads has: 64 per thread for 1,024 threads.
/// Bodies take arguments by reference. As grid constants they are read where they are; otherwise each thread copies
/// them to its local memory first, if the compiler does not see through every reference.
template <class Body, class... Arguments>
__global__ void __launch_bounds__(threads_max<Body>(), blocks_min<Body>())
    cuda_entry(const __grid_constant__ Arguments... arguments) {
  Body::run(CudaGroup{}, arguments...);
}
#endif

/// Whether a body runs with a group and these arguments.
template <class Body, class... Arguments>
concept RunsWith = requires(const CpuGroup& group, Arguments&... arguments) { Body::run(group, arguments...); };

template <class Body, class... Arguments, std::size_t... Index>
void cpu_entry_unpacked(const CpuGroup& group, void* const* arguments, std::index_sequence<Index...>) {
  Body::run(group, *static_cast<Arguments*>(arguments[Index])...);
}

/// Whether a body says that subnormal values count as 0.
template <class Body>
[[nodiscard]] consteval bool flushes_to_zero() {
  if constexpr (requires { Body::kFlushToZero; }) {
    return Body::kFlushToZero;
  } else {
    return false;
  }
}

struct KeepSubnormals {};

template <class Body, class... Arguments>
void cpu_entry(const CpuGroup& group, void* const* arguments) {
  [[maybe_unused]] const std::conditional_t<flushes_to_zero<Body>(), FlushToZero, KeepSubnormals> subnormals;
  cpu_entry_unpacked<Body, Arguments...>(group, arguments, std::index_sequence_for<Arguments...>{});
}

}  // namespace detail

/// The kernel whose code is `Body::run(group, arguments...)`, a HEADRACE_HD template over the group. It always has a
/// CPU entry, and a CUDA entry if nvcc compiles this call. `static`, because the same call compiled by nvcc and by a
/// C++ compiler gives different kernels. Body::kThreadsMax, if the body has it, is the most threads of a block: it
/// bounds the registers of a thread, as does Body::kBlocksMin, the number of such blocks that must fit a
/// multiprocessor. A CUDA device refuses a shape with more threads. With Body::kFlushToZero true, subnormal values
/// count as 0 on CPU devices, which are slow otherwise; nvcc does the same for float with -ftz=true. Requires:
/// Body::kName; every argument trivially copyable; at most 8 arguments of 640 bytes together.
template <class Body, class... Arguments>
[[nodiscard]] static TypedKernel<Arguments...> make_kernel() {
  static_assert((std::is_trivially_copyable_v<Arguments> && ...),
                "kernel arguments are copied bytewise, so they must be trivially copyable");
  static_assert(sizeof...(Arguments) <= kKernelArgumentsMax, "a kernel takes at most 8 arguments");
  static_assert((std::size_t{0} + ... + sizeof(Arguments)) <= kKernelArgumentBytesMax,
                "the arguments of a kernel may take at most 640 bytes together");
  static_assert(((alignof(Arguments) <= 64) && ...), "kernel arguments may be aligned to at most 64 bytes");
  static_assert(detail::RunsWith<Body, Arguments...>,
                "a kernel's body needs template <class Group> HEADRACE_HD static void run(Group, arguments...) with "
                "the arguments that make_kernel() names");
  TypedKernel<Arguments...> kernel;
  if constexpr (detail::RunsWith<Body, Arguments...>) {
    kernel.name = Body::kName;
    kernel.set_entry(DeviceKind::cpu, reinterpret_cast<const void*>(&detail::cpu_entry<Body, Arguments...>));
#if defined(__CUDACC__)
    kernel.set_entry(DeviceKind::cuda, reinterpret_cast<const void*>(&detail::cuda_entry<Body, Arguments...>));
#endif
    kernel.argument_count = sizeof...(Arguments);
    kernel.argument_bytes = {static_cast<std::uint32_t>(sizeof(Arguments))...};
  }
  return kernel;
}

namespace detail {

/// Whether launch() takes a Given for a kernel's Wanted: what a function call would convert implicitly, except a
/// floating-point number given for an integer.
template <class Wanted, class Given>
inline constexpr bool kTakes =
    std::is_convertible_v<Given, Wanted> && !(std::is_integral_v<Wanted> && std::is_floating_point_v<Given>);

template <class Value>
[[nodiscard]] constexpr bool is_negative(const Value& value) noexcept {
  if constexpr (std::is_signed_v<Value>) {
    return value < 0;
  } else {
    return false;
  }
}

/// Whether an integer keeps its value as a Wanted. Every other conversion that kTakes allows does.
template <class Wanted, class Given>
[[nodiscard]] constexpr bool keeps_value(const Given& given) noexcept {
  if constexpr (std::is_integral_v<Wanted> && std::is_integral_v<Given> && !std::is_same_v<Wanted, Given>) {
    const auto wanted = static_cast<Wanted>(given);
    return static_cast<Given>(wanted) == given && is_negative(wanted) == is_negative(given);
  } else {
    return true;
  }
}

/// Calls `enqueue` with the addresses of the arguments, converted to the types that the kernel was made with.
template <class... Wanted, class Enqueue, class... Given>
[[nodiscard]] Status with_arguments(const TypedKernel<Wanted...>& /*kernel*/, const Enqueue& enqueue,
                                    const Given&... given) {
  static_assert(sizeof...(Given) == sizeof...(Wanted), "launch() needs as many arguments as the kernel was made with");
  if constexpr (sizeof...(Given) != sizeof...(Wanted)) {
    return Errc::invalid_argument;
  } else if constexpr (!(kTakes<Wanted, Given> && ...)) {
    static_assert((kTakes<Wanted, Given> && ...),
                  "an argument of launch() does not convert to the type that the kernel was made with");
    return Errc::invalid_argument;
  } else {
    if (!(keeps_value<Wanted>(given) && ...)) return Errc::invalid_argument;
    return [&enqueue](std::remove_cv_t<Wanted>... values) {
      const std::array<void*, sizeof...(Wanted) + 1> addresses{static_cast<void*>(&values)..., nullptr};
      return enqueue(std::span<void* const>(addresses.data(), sizeof...(Wanted)));
    }(static_cast<std::remove_cv_t<Wanted>>(given)...);
  }
}

}  // namespace detail

/// Enqueues `kernel` on `stream`. The arguments are converted to the types that the kernel was made with, as in a
/// function call, and copied before the call returns. A wrong number of arguments, a pointer to another type and a
/// floating-point number for an integer do not compile. Returns Errc::invalid_argument, without enqueueing, for an
/// integer that its parameter cannot hold, such as -1 for a std::uint32_t.
template <class... Wanted, class... Given>
[[nodiscard]] Status launch(StreamRef stream, const TypedKernel<Wanted...>& kernel, LaunchShape shape,
                            const Given&... arguments) {
  return detail::with_arguments(
      kernel, [&](std::span<void* const> addresses) { return stream.launch(kernel, shape, addresses); }, arguments...);
}

/// Enqueues a kernel that stays until it is told to stop, such as one that serves a Mailbox. All its blocks are
/// resident at once: a CPU device gives each block its own thread, a CUDA device refuses a shape that does not fit
/// (Errc::not_supported, native code = the most blocks that would). Arguments are taken as by launch().
template <class... Wanted, class... Given>
[[nodiscard]] Status launch_resident(StreamRef stream, const TypedKernel<Wanted...>& kernel, LaunchShape shape,
                                     const Given&... arguments) {
  return detail::with_arguments(
      kernel, [&](std::span<void* const> addresses) { return stream.launch_resident(kernel, shape, addresses); },
      arguments...);
}

/// A Kernel has lost the types of its arguments: keep the TypedKernel that make_kernel() returns (`auto`), or call
/// StreamRef::launch() with the arguments' addresses.
template <class... Given>
Status launch(StreamRef stream, const Kernel& kernel, LaunchShape shape, const Given&... arguments) = delete;
template <class... Given>
Status launch_resident(StreamRef stream, const Kernel& kernel, LaunchShape shape, const Given&... arguments) = delete;

}  // namespace headrace
