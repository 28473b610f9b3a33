#pragma once

#include <cstdint>

#include "headrace/device/group.hpp"
#include "headrace/serve/detail/dispatch.hpp"
#include "headrace/serve/detail/dispatch_worker.hpp"
#include "headrace/serve/detail/dispatcher.hpp"

/// The kernels of Schedule::dispatched, written over a Group.
namespace headrace::serve {

namespace detail {

/// The task of a block of the pool.
enum class Duty : std::uint32_t {
  none,      ///< Exits, because it runs on a multiprocessor outside the pool.
  answer,    ///< Answers queries.
  hand_out,  ///< Hands queries out, as block 0.
};

/// One thread of each block calls it once, if the pool has its own multiprocessors. A block on another multiprocessor
/// stays until all blocks of the launch have begun, so that none of them starts in the room that it leaves. It stays
/// for at most a millisecond, because other kernels may keep some blocks from starting.
template <class Group>
[[nodiscard]] HEADRACE_HD Duty take_place(Group group, DispatchPlaces& places) {
  constexpr std::uint64_t kWaitNs = 1'000'000;
  constexpr std::uint32_t kPauseNs = 100;
  group.fetch_add_relaxed_on_device(places.begun, 1U);
  if (places.own.has(group.multiprocessor())) {
    return group.fetch_add_relaxed_on_device(places.staying, 1U) == 0 ? Duty::hand_out : Duty::answer;
  }
  const std::uint64_t until = group.clock_ns() + kWaitNs;
  while (group.load_on_device(places.begun) < group.block_count() && group.clock_ns() < until) {
    group.pause_ns(kPauseNs);
  }
  return Duty::none;
}

/// Every thread of a block calls it first.
template <class Group>
[[nodiscard]] HEADRACE_HD Duty duty_of(Group group, const DispatchView& view) {
  if (view.places == nullptr) return group.block() == 0 ? Duty::hand_out : Duty::answer;
  Duty duty = Duty::none;
  if (group.rank() == 0) duty = take_place(group, *view.places);
  return group.broadcast(duty);
}

/// Tells the other blocks to leave when block 0 leaves, even if an operator throws there (on a CPU device).
template <class Group>
class Leaving {
 public:
  HEADRACE_HD Leaving(Group group, const DispatchView& view, Duty duty) : group_(group), view_(view), duty_(duty) {}
  Leaving(const Leaving&) = delete;
  Leaving& operator=(const Leaving&) = delete;
  HEADRACE_HD ~Leaving() {
    if (duty_ == Duty::hand_out && group_.rank() == 0) group_.store_on_device(*view_.leave, std::uint32_t{1});
  }

 private:
  Group group_;
  const DispatchView& view_;
  Duty duty_;
};

}  // namespace detail

/// The pool: one launch of 1 + workers blocks that stays until its stop word is set.
template <class Op>
struct DispatchBody {
  static constexpr const char* kName = Op::kName;

  template <class Group>
  HEADRACE_HD static void run(Group group, typename Op::State state, DispatchView view) {
    const detail::Duty duty = detail::duty_of(group, view);
    if (duty == detail::Duty::none) return;
    if (duty == detail::Duty::hand_out) {
      detail::Dispatcher<Group, false> dispatcher(group, view);
      dispatcher.begin();
      if (group.team() != 0) return;
      static_cast<void>(dispatcher.hand_out());
      if (group.team_rank() == 0) group.store_on_device(*view.leave, std::uint32_t{1});
    } else {
      detail::Worker<Op, Group>(group, state, view).run();
    }
  }
};

/// The pool of Plan::answer_inline: block 0 answers lone queries itself, which avoids the queue. A separate kernel,
/// because that takes more registers. One block answers a query.
template <class Op>
struct InlineDispatchBody {
  static constexpr const char* kName = Op::kName;

  template <class Group>
  HEADRACE_HD static void run(Group group, typename Op::State state, DispatchView view) {
    const detail::Duty duty = detail::duty_of(group, view);
    if (duty == detail::Duty::none) return;
    const bool hands_out = duty == detail::Duty::hand_out;
    const detail::Leaving<Group> leaving(group, view, duty);
    detail::Dispatcher<Group, true> dispatcher(group, view);
    detail::Worker<Op, Group> worker(group, state, view);
    if (hands_out) dispatcher.begin();
    for (;;) {
      const detail::Drawn drawn = hands_out ? dispatcher.next() : worker.next();
      if (drawn.is(detail::Drawn::What::leave)) return;
      worker.answer_alone(drawn, drawn.is(detail::Drawn::What::held));
    }
  }
};

}  // namespace headrace::serve
