#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/device/group.hpp"
#include "headrace/serve/detail/query_place.hpp"

namespace headrace::serve {

/// When a box began and ended its last request, by Group::clock_ns(). Zero before the first request.
struct BoxTimes {
  std::uint64_t began;
  std::uint64_t ended;
};

/// The argument of a resident kernel of Schedule::persistent besides the operator's state.
/// @tparam Mail  MailboxView or BarrierMailboxView
///
/// A request holds up to batch_max queries. Its payload is either the queries themselves, query_stride apart from
/// kPayload on, with answers in the box's answer memory; or, by address, a QueryPlace for each query from kPayload on.
/// If batch_max is above 1, its first word is the number of queries.
template <class Mail>
struct PersistentView {
  static constexpr std::size_t kPayload = 256;

  Mail mail;
  std::uint32_t batch_max = 1;
  std::uint32_t by_address = 0;
  std::uint64_t query_stride = 0;
  std::uint64_t answer_stride = 0;
  BoxTimes* times = nullptr;  ///< One per box, in host memory; null to take no times.
};

/// The kernel body that stays and answers the requests of box i with the blocks of item i, until it is told to leave.
template <class Op, class Mail>
struct PersistentBody {
  static constexpr const char* kName = Op::kName;

  template <class Group>
  HEADRACE_HD static void run(Group group, typename Op::State state, PersistentView<Mail> view) {
    const std::uint32_t box = group.item();
    const bool first = group.block() == 0 && group.rank() == 0;
    std::uint32_t served = 0;
    view.mail.enter(group);
    while (true) {
      const std::uint32_t sequence = view.mail.wait(group, box, served);
      if (sequence == Mail::kStopped) return;
      if (first && view.times != nullptr) view.times[box].began = group.clock_ns();
      answer_request(group, state, view, box);
      if (first && view.times != nullptr) view.times[box].ended = group.clock_ns();
      view.mail.reply(group, box, sequence);
      served = sequence;
    }
  }

 private:
  template <class Group>
  HEADRACE_HD static void answer_request(Group group, const typename Op::State& state, const PersistentView<Mail>& view,
                                         std::uint32_t box) {
    const std::byte* request = view.mail.request(box);
    std::uint32_t count = 1;
    if (view.batch_max > 1) {
      count = group.broadcast(group.rank() == 0 ? *reinterpret_cast<const std::uint32_t*>(request) : 0U);
    }
    for (std::uint32_t i = 0; i < count; ++i) {
      if (i > 0) group.sync();  // the block's shared memory is reused
      const QueryPlace place = place_of(group, view, box, i);
      Op::answer(group, state, reinterpret_cast<const typename Op::Query*>(place.query),
                 reinterpret_cast<typename Op::Answer*>(place.answer));
    }
  }

  template <class Group>
  [[nodiscard]] HEADRACE_HD static QueryPlace place_of(Group group, const PersistentView<Mail>& view, std::uint32_t box,
                                                       std::uint32_t index) {
    const std::byte* payload = view.mail.request(box) + PersistentView<Mail>::kPayload;
    if (view.by_address == 0) {
      return {payload + index * view.query_stride, view.mail.answer(box) + index * view.answer_stride};
    }
    QueryPlace place{nullptr, nullptr};
    if (group.rank() == 0) place = reinterpret_cast<const QueryPlace*>(payload)[index];  // one read for all threads
    return group.broadcast(place);
  }
};

}  // namespace headrace::serve
