#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "headrace/ingest/builder.hpp"
#include "ingest/bench/connection.hpp"
#include "ingest/bench/latency_bench.hpp"
#include "ingest/bench/ring.hpp"

/// A feed is a ring of packets and what builds frames from them during a latency measurement:
///
///   position(), stream_offset()  packets gathered so far, and the bytes of their payloads
///   gather(stream_end)           gathers the next packets, none of which ends beyond that; returns how many
///   submit()                     hands over the gathered packets
///   flush()                      submits everything that waits for more
///   try_flush()                  called when no packet is waiting
///   look()                       completes frames, if that needs polling
///   wait()                       waits until all submitted bytes are in frames
///   bursts(), burst_bytes()      submitted bursts, and the bytes of their payloads
///   holds(bytes, offset, count)  true if these are bytes of the stream
namespace headrace::ingest {

/// Control by the host.
class BuilderFeed {
 public:
  BuilderFeed(Device device, const LatencyCase& of, FrameRing& frames)
      : frames_(frames),
        burst_(of.ring.burst),
        ring_(device, of.ring),
        builder_(device, ring_.memory(),
                 {.way = of.ring.packets.way,
                  .ring_access = of.ring.ring_access,
                  .list_count = of.list_count,
                  .flush_bytes = of.ring.flush_bytes,
                  .prompt_count = of.prompt_count}) {
    builder_.attach(0, frames);
    pieces_.reserve(burst_);
  }

  [[nodiscard]] std::uint64_t position() const noexcept { return ring_.position(); }
  [[nodiscard]] std::uint64_t stream_offset() const noexcept { return ring_.stream_offset(); }
  [[nodiscard]] std::size_t gather(std::uint64_t stream_end) {
    ring_.gather({.packets = burst_,
                  .copied = builder_.copied().or_throw(kDoing),
                  .stream_end = std::min(stream_end, frames_.reserved_end())},
                 pieces_);
    return pieces_.size();
  }
  void submit() { builder_.place(pieces_, ring_.position()).or_throw(kDoing); }
  void flush() { builder_.flush().or_throw(kDoing); }
  void try_flush() { builder_.try_flush().or_throw(kDoing); }
  void look() noexcept {}
  void wait() { builder_.wait().or_throw(kDoing); }
  [[nodiscard]] std::uint64_t bursts() const noexcept { return builder_.counters().submissions; }
  [[nodiscard]] std::uint64_t burst_bytes() const noexcept { return builder_.counters().bytes; }
  [[nodiscard]] bool holds(const std::byte* bytes, std::uint64_t offset, std::size_t count) const {
    return ring_.holds(bytes, offset, count);
  }

 private:
  FrameRing& frames_;
  std::uint32_t burst_;
  BenchRing ring_;
  Builder builder_;
  std::vector<Piece> pieces_;
};

/// Control by a kernel that stays on the device.
class ResidentFeed {
 public:
  ResidentFeed(Device device, const LatencyCase& of, FrameRing& frames) : connection_(device, of.ring, frames) {}

  [[nodiscard]] std::uint64_t position() const noexcept { return connection_.position(); }
  [[nodiscard]] std::uint64_t stream_offset() const noexcept { return connection_.stream_offset(); }
  [[nodiscard]] std::size_t gather(std::uint64_t stream_end) { return connection_.gather(stream_end); }
  void submit() {
    connection_.post();
    ++bursts_;
    connection_.turn();
  }
  void flush() { connection_.turn(); }
  void try_flush() { connection_.turn(); }
  void look() { connection_.turn(); }
  void wait() {
    connection_.turn_until([&] { return connection_.copied() == connection_.position(); });
    connection_.turn();  // frames that became whole meanwhile
  }
  [[nodiscard]] std::uint64_t bursts() const noexcept { return bursts_; }
  [[nodiscard]] std::uint64_t burst_bytes() const noexcept { return connection_.stream_offset(); }
  [[nodiscard]] bool holds(const std::byte* bytes, std::uint64_t offset, std::size_t count) const {
    return connection_.holds(bytes, offset, count);
  }

 private:
  BenchConnection connection_;
  std::uint64_t bursts_ = 0;
};

}  // namespace headrace::ingest
