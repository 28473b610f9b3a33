#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "headrace/base/error.hpp"
#include "ingest/resident/state.hpp"

/// Whether the kernel of a ResidentControl is there, gets on and leaves, and what it has counted.
namespace headrace::ingest {

using resident::CommandKind;
using resident::Leave;

namespace {

constexpr Duration kReportEvery = std::chrono::milliseconds(50);
constexpr Duration kSilent = std::chrono::milliseconds(100);
constexpr Duration kBetween = std::chrono::microseconds(50);

}  // namespace

void ResidentControl::State::wait_running() const {
  const Time until = SteadyClock::now() + options_.wait_limit;
  while (heard(*view().running) == 0) {
    if (SteadyClock::now() > until) {
      throw DeviceError(Errc::hung, fmt::format("resident control: its blocks did not all start on {}: is another "
                                                "resident kernel there?",
                                                device_.name()));
    }
    std::this_thread::sleep_for(kBetween);
  }
}

/// Asks for counters, and takes those that were asked for.
void ResidentControl::State::report() noexcept {
  if (report_at_ != 0) {
    if (heard(*view().commands_done) < report_at_) return;
    counters.tcp = *view().counters;
    counters.window_least_bytes = *view().window_least;
    report_at_ = 0;
  }
  const Time now = SteadyClock::now();
  if (stopped_ || now - reported_ < kReportEvery || !command({.kind = CommandKind::report})) return;
  reported_ = now;
  report_at_ = commands_end_;
}

/// Whether the kernel is there and gets on.
Status ResidentControl::State::watch() noexcept {
  if (heard(*view().left) != 0) return Errc::hung;
  const Time now = SteadyClock::now();
  const std::uint64_t beat = heard(*view().heartbeat);
  if (beat != beat_) {
    beat_ = beat;
    beat_at_ = now;
    return {};
  }
  if (now - beat_at_ < kSilent) return {};
  const auto ended = stream_.ready();
  if (!ended) return ended.error();
  if (*ended) return heard(*view().left) != 0 ? Errc::hung : Errc::device_fault;
  return now - beat_at_ > options_.wait_limit ? Status{Errc::hung} : Status{};
}

Status ResidentControl::State::stop() noexcept {
  if (stopped_) return {};
  tell(view().host[resident::kStop], 1);
  const Time until = SteadyClock::now() + (hung_ ? Duration::zero() : options_.wait_limit);
  while (true) {
    const auto ended = stream_.ready();
    if (!ended) return ended.error();
    if (*ended) break;
    if (SteadyClock::now() > until) {
      hung_ = true;
      return Errc::hung;
    }
    std::this_thread::sleep_for(kBetween);
  }
  stopped_ = true;
  report_at_ = 0;
  Status brought = copies_.copy(view().counters, &view().tcp.shared->counters, sizeof(TcpCounters));
  if (brought) brought = copies_.wait();
  if (brought) counters.tcp = *view().counters;
  counters.window_least_bytes = 0;
  return brought ? poll() : brought;
}

std::string ResidentControl::State::failure() const {
  const auto why = static_cast<Leave>(heard(*view().left));
  const auto waited = [&](std::string_view what) {
    return fmt::format("resident control on {} has left: for {} s {}", device_.name(),
                       std::chrono::duration<double>(options_.wait_limit).count(), what);
  };
  switch (why) {
    case Leave::no: break;
    case Leave::told: return {};
    case Leave::no_room_for_replies: return waited("nobody took replies, of which its ring is full");
    case Leave::no_room_for_events: return waited("nobody took events, of which their ring is full");
    case Leave::parts_not_copied: return waited("payloads were not copied: the blocks that build do not get on");
  }
  return fmt::format("resident control on {} does not answer", device_.name());
}

}  // namespace headrace::ingest
