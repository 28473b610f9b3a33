#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include "headrace/base/detail/process.hpp"
#include "headrace/ingest/receiver.hpp"
#include "ingest/coalescing.hpp"
#include "ingest/defragmenter.hpp"
#include "ingest/deliveries.hpp"
#include "ingest/intake.hpp"
#include "ingest/stream_requests.hpp"
#include "ingest/stream_table.hpp"

namespace headrace::ingest {

/// Most packets of a burst, and most streams.
inline constexpr std::uint32_t kBurstMax = 1U << 16;

/// Whether the peers of streams can be answered, and if not, why.
enum class Answers : std::uint8_t { yes, not_resident, not_datagrams, not_others };

/// The members of a Receiver, and its loop: it passes packets from the source to the intake and delivers frames.
class Receiver::State {
 public:
  /// @param answers  `yes` for TCP connections under host control; otherwise why its streams cannot be answered.
  State(Source& source, Ring& ring, Device device, const ReceiverOptions& options, const FrameOptions& frames,
        std::uint32_t streams, Answers answers);
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { stop(); }

  const Birth birth;

  [[nodiscard]] IntakeParts parts() noexcept {
    return {source_, ring_, streams_, builder_ ? &*builder_ : nullptr, requests_.answer_bytes()};
  }
  void set_intake(std::unique_ptr<Intake> intake) noexcept { intake_ = std::move(intake); }
  /// Reassembles IP fragments from now on.
  void defragment() { defragmenter_.emplace(); }

  bool step(Duration timeout);
  void start();
  void stop() noexcept;
  /// Throws UsageError unless streams can be answered.
  void require_answers() const;
  void require_unconverted() const;
  [[nodiscard]] bool has_parts() const noexcept { return answers_ == Answers::yes && !converts_; }
  [[nodiscard]] StreamRequests& requests() noexcept { return requests_; }
  /// Ends the receiver with an error.
  void fail(const std::exception_ptr& why) noexcept;
  [[nodiscard]] Deliveries& deliveries() noexcept { return deliveries_; }
  [[nodiscard]] ReceiverCounters counters() const;

 private:
  void run(const std::stop_token& token) noexcept;
  [[nodiscard]] std::size_t receive(Duration timeout);
  void note_burst(std::size_t count);
  [[nodiscard]] bool ring_is_full() const noexcept {
    return ring_.published() - ring_.released() == ring_.slot_count();
  }
  [[nodiscard]] Duration wait_at_most(Duration timeout, Time now) const;
  void hand_on();
  void end();
  [[nodiscard]] ReceiverCounters count() const;
  void publish_counters(Time now);

  Source& source_;
  Ring& ring_;
  Answers answers_;
  bool converts_;
  std::vector<Packet> packets_;
  std::optional<Defragmenter> defragmenter_;
  Deliveries deliveries_;
  std::optional<Builder> builder_;  ///< None with resident control.
  StreamTable streams_;
  std::unique_ptr<Intake> intake_;
  StreamRequests requests_;
  bool gathered_ = false;  ///< There may be pieces that have not been submitted.
  bool drained_ = true;    ///< The last burst took all packets that the source had.
  Coalescing coalescing_;
  bool finished_ = false;
  bool handing_on_ = false;
  std::atomic<bool> started_{false};
  mutable std::mutex counters_mutex_;
  ReceiverCounters counters_;
  Time counted_at_{};
  std::jthread thread_;
};

}  // namespace headrace::ingest
