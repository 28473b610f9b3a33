#include <stop_token>
#include <thread>

#include "ingest/bench/build_bench.hpp"
#include "ingest/bench/connection.hpp"
#include "ingest/bench/consumer.hpp"

namespace headrace::ingest {

namespace {

/// A connection whose packets always wait, and a consumer that takes every frame.
class ResidentRun {
 public:
  ResidentRun(Device device, const RingCase& of)
      : of_(of),
        consumer_(device, of),
        connection_(device, of, consumer_.frames()),
        packets_(std::max<std::uint64_t>(of.packets.total_bytes / connection_.slot_bytes(), 1)) {}

  /// Continues where the last run ended. `keep` copies the first frames of the run to the host.
  [[nodiscard]] Duration run(bool keep, const std::stop_token& stop) {
    const std::uint64_t last = connection_.position() + packets_;
    const Time start = SteadyClock::now();
    Time moved = start;
    while (!stop.stop_requested()) {
      const std::uint64_t copied = connection_.copied();
      if (copied == last) break;
      const std::size_t gathered = connection_.gather(last * of_.packets.payload_bytes);
      connection_.post();
      connection_.turn();
      consumer_.consume(keep);
      if (gathered != 0 || copied != seen_) moved = SteadyClock::now();
      seen_ = copied;
      if (SteadyClock::now() - moved > kPatience) {
        throw DeviceError(Errc::hung, fmt::format("{}: packets are no longer copied", kDoing));
      }
      if (gathered == 0) std::this_thread::yield();
    }
    connection_.turn();
    consumer_.consume(keep);
    consumer_.wait();
    return SteadyClock::now() - start;
  }

  [[nodiscard]] std::uint64_t run_bytes() const noexcept { return packets_ * of_.packets.payload_bytes; }
  [[nodiscard]] std::uint64_t packets() const noexcept { return packets_; }
  [[nodiscard]] StreamRef stream() const noexcept { return consumer_.stream(); }
  [[nodiscard]] const Buffer& memory() const noexcept { return connection_.memory(); }

  /// True if the kept frames hold the payloads of their packets.
  [[nodiscard]] bool right() const {
    return consumer_.all_right([this](const std::byte* frame, std::uint64_t begin) {
      return connection_.holds(frame, begin, of_.frame_bytes);
    });
  }

 private:
  RingCase of_;
  BenchConsumer consumer_;
  BenchConnection connection_;
  std::uint64_t packets_;
  std::uint64_t seen_ = 0;
};

}  // namespace

BuildRuns measure_resident_build(Device device, const RingCase& of, std::size_t runs, const std::stop_token& stop) {
  if (of.burst == 0) throw UsageError("a burst must have at least 1 packet, not 0");
  // Allocated before the resident kernel starts.
  const Buffer target(device, MemoryKind::device, BenchConnection::memory_bytes(of));
  ResidentRun ring(device, of);
  BuildRuns found;
  measure_runs(ring, target, runs, stop, found);
  return found;
}

}  // namespace headrace::ingest
