#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "headrace/base/result.hpp"
#include "headrace/device/buffer.hpp"
#include "headrace/device/stream.hpp"
#include "ingest/builder/say_done.hpp"

namespace headrace::ingest {

/// The stream on which a builder copies, in bursts that are numbered from 1. Each burst reports its own completion: the
/// blocks of its last kernel write its number to host memory, so that polling needs no driver call. One thread
/// enqueues; any thread may poll. A device that faulted writes nothing more, so now and then a poll queries the stream.
class BuildStream {
 public:
  /// @param bursts  most bursts in flight.
  explicit BuildStream(Device device, std::uint32_t bursts);
  BuildStream(const BuildStream&) = delete;
  BuildStream& operator=(const BuildStream&) = delete;
  /// Waits for what has been enqueued.
  ~BuildStream();

  [[nodiscard]] StreamRef stream() const noexcept { return stream_; }
  /// For the last kernel of burst `number`.
  [[nodiscard]] DoneArgument argument(std::uint64_t number) noexcept { return {words_.as<std::uint64_t>(), number}; }
  /// Closes burst `number`, which has been enqueued. `blocks` of its last kernel report its completion; if 0, another
  /// kernel is enqueued that does. Requires: the burst `bursts` before it is done.
  [[nodiscard]] Status close(std::uint64_t number, std::uint32_t blocks) noexcept;

  /// True if this burst, which is closed, and all earlier ones are copied.
  [[nodiscard]] Result<bool> done(std::uint64_t number) noexcept;
  [[nodiscard]] Status wait(std::uint64_t number) noexcept;

 private:
  [[nodiscard]] bool said(std::uint64_t number) const noexcept;
  [[nodiscard]] Result<bool> ask(std::uint64_t number) noexcept;
  void note_done(std::uint64_t number) noexcept;

  Stream stream_;
  Buffer words_;
  std::uint32_t bursts_;
  /// The number of reporting blocks, at burst number modulo bursts_. If a poll finds the count of a later burst, its
  /// own burst is done.
  std::unique_ptr<std::atomic<std::uint32_t>[]> blocks_;
  std::atomic<std::uint64_t> done_{0};  ///< All bursts up to this number are known to be done.
  std::atomic<std::uint32_t> looks_{0};
};

}  // namespace headrace::ingest
