#pragma once

// An operator answers queries. make_operator() makes one of a struct whose answer() is a template over the group that
// runs it; where nvcc compiles the call, the operator runs on CUDA devices as well.
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
//     auto load = [](headrace::Device) { return headrace::serve::make_state(Square::State{}); };
//     headrace::serve::Operator square = headrace::serve::make_operator<Square>({.threads = 32}, load);

#include <array>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "headrace/device/buffer.hpp"
#include "headrace/device/detail/barrier_mailbox.hpp"
#include "headrace/device/detail/mailbox.hpp"
#include "headrace/device/kernel.hpp"
#include "headrace/serve/detail/arrival.hpp"
#include "headrace/serve/detail/dispatch_kernel.hpp"
#include "headrace/serve/detail/persistent_kernel.hpp"
#include "headrace/serve/detail/query_place.hpp"

namespace headrace::serve {

/// The most bytes of an operator's State, which is passed to kernels by value.
inline constexpr std::size_t kStateBytesMax = 256;

/// An operator's state on one device: the bytes of its `State`, whose pointers refer to memory that `owner` keeps
/// alive.
struct LoadedState {
  std::vector<std::byte> bytes;       ///< The bytes of the operator's State.
  std::shared_ptr<const void> owner;  ///< Keeps the memory that the state points to.
  /// Null for an operator that answers every query. Any other writes a value other than 0 there before it answers a
  /// query that it could not answer; the engine then fails all queries with Errc::device_fault. Lies in memory that
  /// `owner` keeps alive.
  const std::atomic<std::uint32_t>* failed = nullptr;

  /// True once a query could not be answered.
  [[nodiscard]] bool has_failed() const noexcept {
    return failed != nullptr && failed->load(std::memory_order_acquire) != 0;
  }
};

/// The LoadedState that holds `state`.
template <class State>
[[nodiscard]] LoadedState make_state(const State& state, std::shared_ptr<const void> owner = nullptr) {
  static_assert(std::is_trivially_copyable_v<State>,
                "the state is copied to the kernel bytewise, so it must be trivially copyable");
  LoadedState loaded{std::vector<std::byte>(sizeof(State)), std::move(owner)};
  std::memcpy(loaded.bytes.data(), &state, sizeof(State));
  return loaded;
}

struct Operator;
/// One of an operator's kernels.
using KernelMember = Kernel Operator::*;

/// An operator with its type erased: everything that an engine needs to answer queries with it. Made by
/// make_operator().
struct Operator {
  std::string name;              ///< The name, as reports show it.
  std::size_t query_bytes = 0;   ///< Size of a query.
  std::size_t answer_bytes = 0;  ///< Size of an answer.
  LaunchShape shape;             ///< Blocks and threads that answer one query; items stays 1.
  Kernel kernel;                 ///< Answers queries that lie at equal distances: AnswerBody.
  Kernel pool;                   ///< For Schedule::dispatched; its arguments are the state and a DispatchView.
  Kernel pool_inline;            ///< The same for Plan::answer_inline; empty without kAnswersInline.
  /// For queries that lie anywhere: (State, const QueryPlace* places, ArrivalCell*), item i answers places[i].
  Kernel scattered_kernel;
  Kernel persistent;          ///< For Schedule::persistent and Doorbell::words: (State, PersistentView<MailboxView>).
  Kernel persistent_barrier;  ///< The same with Doorbell::barrier: (State, PersistentView<BarrierMailboxView>).
  /// Adds code of some kernels for a device to `op`, a copy of this operator, if that code is made at run time.
  /// linked() calls it, perhaps often and from several threads, so it should cache the code.
  std::function<void(Operator& op, Device device, std::span<const KernelMember> kernels)> link;
  /// Loads the state on a device. Throws DeviceError if it does not fit.
  std::function<LoadedState(Device)> load;
  /// Writes query number `index` of an endless, reproducible sequence of valid queries that are all different.
  /// Optional: load tests need it.
  std::function<void(std::uint64_t index, std::byte* query)> sample;
  /// The least number of different samples that a load repeats. 0: some hundreds, which fit in a core's own cache. Set
  /// it higher if caches would otherwise hold everything that these queries read, such as their rows of a large table.
  std::size_t samples_least = 0;
  /// How Python shows answers: a NumPy type, as headrace/dtypes.py writes one. Empty: as bytes.
  std::string answer_type;
  /// The same for queries, which servers need. Empty if not known.
  std::string query_type;
};

/// The kernel body that answers item i of a launch: query at `queries + i * query_stride`, answer likewise. `arrival`
/// may be null.
template <class Op>
struct AnswerBody {
  static constexpr const char* kName = Op::kName;  ///< The operator's own.

  /// Answers the group's item; strides are in bytes.
  template <class Group>
  HEADRACE_HD static void run(Group group, typename Op::State state, const std::byte* queries, std::byte* answers,
                              std::uint64_t query_stride, std::uint64_t answer_stride, ArrivalCell* arrival) {
    detail::begin_telling(group, arrival);
    Op::answer(group, state, reinterpret_cast<const typename Op::Query*>(queries + group.item() * query_stride),
               reinterpret_cast<typename Op::Answer*>(answers + group.item() * answer_stride));
    detail::tell(group, arrival);
  }
};

/// The kernel body that answers item i of a launch at `places[i]`. `arrival` may be null.
template <class Op>
struct ScatteredAnswerBody {
  static constexpr const char* kName = Op::kName;  ///< The operator's own.

  /// Answers the query of the group's item, where `places` says it lies.
  template <class Group>
  HEADRACE_HD static void run(Group group, typename Op::State state, const QueryPlace* places, ArrivalCell* arrival) {
    detail::begin_telling(group, arrival);
    const QueryPlace place = places[group.item()];
    Op::answer(group, state, reinterpret_cast<const typename Op::Query*>(place.query),
               reinterpret_cast<typename Op::Answer*>(place.answer));
    detail::tell(group, arrival);
  }
};

namespace detail {

template <class Op>
concept DescribesItself = requires {
  { Op::kName } -> std::convertible_to<const char*>;
  sizeof(typename Op::Query);
  sizeof(typename Op::Answer);
  sizeof(typename Op::State);
};

template <class Op>
concept AnswersQueries = requires(CpuGroup group, const typename Op::State& state, const typename Op::Query* query,
                                  typename Op::Answer* answer) { Op::answer(group, state, query, answer); };

/// Does not compile if Op is not an operator, with a message that says why. Returns false then.
template <class Op>
[[nodiscard]] consteval bool is_operator() {
  static_assert(DescribesItself<Op>, "an operator needs kName, Query, Answer and State; see make_operator()");
  if constexpr (DescribesItself<Op>) {
    constexpr bool kCopied = std::is_trivially_copyable_v<typename Op::Query> &&
                             std::is_trivially_copyable_v<typename Op::Answer> &&
                             std::is_trivially_copyable_v<typename Op::State>;
    static_assert(kCopied, "an operator's Query, Answer and State are copied bytewise: make them trivially copyable");
    static_assert(sizeof(typename Op::State) <= kStateBytesMax,
                  "an operator's State may have at most 256 bytes: keep the rest behind a pointer in it");
    static_assert(AnswersQueries<Op>,
                  "an operator needs template <class Group> HEADRACE_HD static void answer(Group, const State&, const "
                  "Query*, Answer*); see make_operator()");
    return kCopied && sizeof(typename Op::State) <= kStateBytesMax && AnswersQueries<Op>;
  }
  return false;
}

template <class Op>
[[nodiscard]] constexpr std::size_t query_bytes() {
  if constexpr (DescribesItself<Op>) return sizeof(typename Op::Query);
  return 0;
}

template <class Op>
[[nodiscard]] constexpr std::size_t answer_bytes() {
  if constexpr (DescribesItself<Op>) return sizeof(typename Op::Answer);
  return 0;
}

/// Sets the kernels of `op`.
template <class Op>
static void add_kernels(Operator& op) {
  using State = typename Op::State;
  op.kernel =
      make_kernel<AnswerBody<Op>, State, const std::byte*, std::byte*, std::uint64_t, std::uint64_t, ArrivalCell*>();
  op.pool = make_kernel<DispatchBody<Op>, State, DispatchView>();
  if constexpr (requires { requires Op::kAnswersInline; }) {
    op.pool_inline = make_kernel<InlineDispatchBody<Op>, State, DispatchView>();
  }
  op.scattered_kernel = make_kernel<ScatteredAnswerBody<Op>, State, const QueryPlace*, ArrivalCell*>();
  op.persistent = make_kernel<PersistentBody<Op, MailboxView>, State, PersistentView<MailboxView>>();
  op.persistent_barrier =
      make_kernel<PersistentBody<Op, BarrierMailboxView>, State, PersistentView<BarrierMailboxView>>();
}

}  // namespace detail

/// Erases the type of an operator. `Op` has
///
/// - `static constexpr const char* kName`;
/// - `Query`, `Answer`: trivially copyable; query_bytes and answer_bytes below may make them arrays;
/// - `State`: trivially copyable, at most 256 bytes; passed by value, pointers in it lead to device memory;
/// - `template <class Group> HEADRACE_HD static void answer(Group, const State&, const Query*, Answer*)`;
///
/// and may have
///
/// - `static constexpr bool kAnswersInline = true`: supports Plan::answer_inline, which compiles one more kernel.
///
/// All threads of the group run `answer`, which writes the whole answer and must give the same answer for any number of
/// blocks and threads. Compile the call with nvcc (in a .cu file) to support CUDA devices as well.
template <class Op>
[[nodiscard]] static Operator make_operator(LaunchShape shape, std::function<LoadedState(Device)> load,
                                            std::function<void(std::uint64_t, std::byte*)> sample = {},
                                            std::size_t query_bytes = detail::query_bytes<Op>(),
                                            std::size_t answer_bytes = detail::answer_bytes<Op>()) {
  Operator op;
  if constexpr (detail::is_operator<Op>()) {
    op.name = Op::kName;
    op.query_bytes = query_bytes;
    op.answer_bytes = answer_bytes;
    op.shape = shape;
    detail::add_kernels<Op>(op);
    op.load = std::move(load);
    op.sample = std::move(sample);
  }
  return op;
}

/// The kernels that are launched for a batch of queries.
inline constexpr std::array<KernelMember, 2> kLaunchedKernels{&Operator::kernel, &Operator::scattered_kernel};

/// The operator with code of those kernels for `device`. Throws as Operator::link does.
[[nodiscard]] Operator linked(Operator op, Device device, std::span<const KernelMember> kernels = kLaunchedKernels);

/// Enqueues a launch that answers `items` queries. Queries lie `query_stride` bytes apart, answers `answer_stride`. The
/// device must reach both, and `state` must have been loaded on it.
[[nodiscard]] Status answer(StreamRef stream, const Operator& op, const LoadedState& state, const std::byte* queries,
                            std::byte* answers, std::uint32_t items = 1, std::uint64_t query_stride = 0,
                            std::uint64_t answer_stride = 0) noexcept;

/// Answers one query in the calling thread, on the host. `state` must have been loaded on a CPU device. Check
/// LoadedState::has_failed() before using the answer.
void answer_here(const Operator& op, const LoadedState& state, const std::byte* query, std::byte* answer) noexcept;

}  // namespace headrace::serve
