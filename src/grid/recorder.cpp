#include "grid/recorder.hpp"

namespace headrace::grid {

namespace {

struct Between {
  Work work;
  Recorder::Moment begin;
  Recorder::Moment end;
};
constexpr std::array kWork{
    Between{Work::body, Recorder::begin, Recorder::body_end},
    Between{Work::border, Recorder::border_begin, Recorder::border_end},
    Between{Work::push, Recorder::push_begin, Recorder::push_end},
    Between{Work::messages, Recorder::messages_begin, Recorder::messages_end},
    Between{Work::receive, Recorder::receive_begin, Recorder::receive_end},
    Between{Work::interior, Recorder::body_end, Recorder::interior_end},
};

}  // namespace

Recorder::Recorder(Device device, std::size_t cycles) : cycles_(cycles), marked_(cycles) {
  for (auto& cycle : cycles_) {
    for (auto& event : cycle) event.emplace(device, EventTiming::on);
  }
}

Status Recorder::mark(StreamRef stream, Moment moment) noexcept {
  if (cycle_ >= cycles_.size()) return {};
  marked_[cycle_][moment] = true;
  return stream.record(*cycles_[cycle_][moment]);
}

std::vector<WorkSpan> Recorder::spans(std::size_t part) const {
  constexpr const char* kDoing = "reading the timeline of a grid";
  std::vector<WorkSpan> found;
  for (std::size_t cycle = 0; cycle < cycles_.size(); ++cycle) {
    for (const Between& between : kWork) {
      if (!marked_[cycle][between.begin] || !marked_[cycle][between.end]) continue;
      const Event& first = *cycles_.front()[begin];
      found.push_back({.part = part,
                       .cycle = cycle,
                       .work = between.work,
                       .begin = cycles_[cycle][between.begin]->since(first).or_throw(kDoing),
                       .end = cycles_[cycle][between.end]->since(first).or_throw(kDoing)});
    }
  }
  return found;
}

}  // namespace headrace::grid
