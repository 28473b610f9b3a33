#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "headrace/base/result.hpp"
#include "headrace/device/buffer.hpp"
#include "headrace/device/stream.hpp"
#include "ingest/builder/say_done.hpp"

namespace headrace::ingest {

/// The stream that a builder copies on, in bursts with numbers from 1 on, of which each says itself that it is copied:
/// the blocks of its last kernel write its number to memory of the host, which costs a look no call of the driver. One
/// thread enqueues; any thread may look. A device that faults says nothing more, so that now and then the stream is
/// asked instead.
class BuildStream {
 public:
  /// @param bursts  under way at once at most.
  explicit BuildStream(Device device, std::uint32_t bursts);
  BuildStream(const BuildStream&) = delete;
  BuildStream& operator=(const BuildStream&) = delete;
  /// Waits for what has been enqueued.
  ~BuildStream();

  [[nodiscard]] StreamRef stream() const noexcept { return stream_; }
  /// For the last kernel of burst `number`.
  [[nodiscard]] DoneArgument argument(std::uint64_t number) noexcept { return {words_.as<std::uint64_t>(), number}; }
  /// Burst `number` has been enqueued, and its last kernel has so many blocks that say so; 0: it does not, and another
  /// kernel is enqueued that does. The burst `bursts` before it is done.
  [[nodiscard]] Status close(std::uint64_t number, std::uint32_t blocks) noexcept;

  /// Whether this burst, which is closed, and all before it are copied.
  [[nodiscard]] Result<bool> done(std::uint64_t number) noexcept;
  [[nodiscard]] Status wait(std::uint64_t number) noexcept;

 private:
  [[nodiscard]] bool said(std::uint64_t number) const noexcept;
  [[nodiscard]] Result<bool> ask(std::uint64_t number) noexcept;
  void note_done(std::uint64_t number) noexcept;

  Stream stream_;
  Buffer words_;
  std::uint32_t bursts_;
  /// The blocks of burst number modulo bursts_. Whoever finds the count of a later one asks for one that is done.
  std::unique_ptr<std::atomic<std::uint32_t>[]> blocks_;
  std::atomic<std::uint64_t> done_{0};  ///< All bursts up to here are known to be.
  std::atomic<std::uint32_t> looks_{0};
};

}  // namespace headrace::ingest
