#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stop_token>
#include <vector>

#include "headrace/device/buffer.hpp"
#include "headrace/device/stream.hpp"
#include "headrace/ingest/detail/frames.hpp"
#include "ingest/bench/build_bench.hpp"
#include "ingest/bench/parts.hpp"

/// The common part of measurements with a ring in pinned memory, with either control.
namespace headrace::ingest {

/// Takes every frame on a stream of its own, and can keep the first ones for verification.
class BenchConsumer {
 public:
  BenchConsumer(Device device, const RingCase& of)
      : frames_(device, {.frame_bytes = of.frame_bytes, .frame_count = of.frame_count}),
        kept_(device, MemoryKind::pinned, of.frame_bytes * of.frame_count),
        stream_(device) {}

  [[nodiscard]] FrameRing& frames() noexcept { return frames_; }
  [[nodiscard]] StreamRef stream() const noexcept { return stream_; }

  /// Takes complete frames; `keep` copies the first frames to the host.
  void consume(bool keep) {
    const FrameOptions& of = frames_.options();
    while (true) {
      const auto frame = frames_.try_take(stream_).or_throw(kDoing);
      if (!frame) break;
      if (keep && kept_frames_.size() < of.frame_count) {
        std::byte* const to = kept_.data() + kept_frames_.size() * of.frame_bytes;
        stream_.copy(to, frame->data, frame->bytes).or_throw(kDoing);
        kept_frames_.push_back(frame->number);
      }
      frames_.release(frame->number, stream_).or_throw(kDoing);
    }
    frames_.poll().or_throw(kDoing);
  }
  void wait() { stream_.wait().or_throw(kDoing); }

  /// True if `is_right(bytes, stream_offset)` for every kept frame; false if none was kept.
  template <class IsRight>
  [[nodiscard]] bool all_right(IsRight is_right) const {
    const std::size_t bytes = frames_.options().frame_bytes;
    for (std::size_t k = 0; k < kept_frames_.size(); ++k) {
      if (!is_right(kept_.data() + k * bytes, kept_frames_[k] * bytes)) return false;
    }
    return !kept_frames_.empty();
  }

 private:
  FrameRing frames_;
  Buffer kept_;
  std::vector<std::uint64_t> kept_frames_;
  Stream stream_;  ///< Declared after the memory that it uses, so that it is destroyed first.
};

/// Times `runs` runs of `ring`, after a warm-up run whose frames are verified. Each run is followed by a plain copy of
/// as many bytes over the link into `target`, which has at least the ring's size.
template <class Run>
void measure_runs(Run& ring, const Buffer& target, std::size_t runs, const std::stop_token& stop, BuildRuns& found) {
  found.packets = ring.packets();
  Timer timer(ring.stream().device());
  for (std::size_t run = 0; run <= runs && !stop.stop_requested(); ++run) {
    const Duration took = ring.run(run == 0, stop);
    const std::size_t bytes = ring.run_bytes();
    const Duration plain = timer.time(ring.stream(), [&] {
      for (std::size_t done = 0; done < bytes; done += ring.memory().bytes()) {
        ring.stream()
            .copy(target.data(), ring.memory().data(), std::min(ring.memory().bytes(), bytes - done))
            .or_throw(kDoing);
      }
    });
    if (run == 0 || stop.stop_requested()) continue;
    found.payload_bytes = bytes;
    found.times.push_back(took);
    found.plain.push_back(plain);
  }
  found.verified = !found.times.empty() && ring.right();
}

}  // namespace headrace::ingest
