#pragma once

#include <cstdint>

#include "headrace/device/group.hpp"
#include "headrace/serve/detail/dispatch.hpp"
#include "headrace/serve/detail/dispatch_worker.hpp"
#include "headrace/serve/detail/dispatcher.hpp"

/// The kernels of Schedule::dispatched, written over a Group.
namespace headrace::serve {

namespace detail {

/// Tells the other blocks to leave when block 0 does, be it because an operator throws there (on a CPU device).
template <class Group>
class Leaving {
 public:
  HEADRACE_HD Leaving(Group group, const DispatchView& view) : group_(group), view_(view) {}
  Leaving(const Leaving&) = delete;
  Leaving& operator=(const Leaving&) = delete;
  HEADRACE_HD ~Leaving() {
    if (group_.block() == 0 && group_.rank() == 0) group_.store_on_device(*view_.leave, std::uint32_t{1});
  }

 private:
  Group group_;
  const DispatchView& view_;
};

}  // namespace detail

/// The pool: one launch of 1 + workers blocks that stays until its stop word is set.
template <class Op>
struct DispatchBody {
  static constexpr const char* kName = Op::kName;

  template <class Group>
  HEADRACE_HD static void run(Group group, typename Op::State state, DispatchView view) {
    if (group.block() == 0) {
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

/// The pool of Plan::answer_inline: block 0 answers a query that comes alone itself, which spares the way through the
/// queue. A kernel of its own, because that takes more registers. One block answers a query.
template <class Op>
struct InlineDispatchBody {
  static constexpr const char* kName = Op::kName;

  template <class Group>
  HEADRACE_HD static void run(Group group, typename Op::State state, DispatchView view) {
    const detail::Leaving<Group> leaving(group, view);
    detail::Dispatcher<Group, true> dispatcher(group, view);
    detail::Worker<Op, Group> worker(group, state, view);
    if (group.block() == 0) dispatcher.begin();
    for (;;) {
      const detail::Drawn drawn = group.block() == 0 ? dispatcher.next() : worker.next();
      if (drawn.is(detail::Drawn::What::leave)) return;
      worker.answer_alone(drawn, drawn.is(detail::Drawn::What::held));
    }
  }
};

}  // namespace headrace::serve
