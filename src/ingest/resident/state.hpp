#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headrace/device/stream.hpp"
#include "ingest/resident/control.hpp"
#include "ingest/resident/memory.hpp"

namespace headrace::ingest {

/// Words that the kernel writes; pairs with its stores at system scope.
[[nodiscard]] inline std::uint64_t heard(const std::uint64_t& word) noexcept {
  return std::atomic_ref(const_cast<std::uint64_t&>(word)).load(std::memory_order_acquire);
}

/// The host's side: its positions in the rings that it shares with the kernel.
class ResidentControl::State {
 public:
  State(Device device, const Buffer& ring, Layer layer, const ResidentOptions& options);
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  /// Waits for the kernel.
  ~State();

  /// Throws DeviceError unless all blocks start within the limit.
  void wait_running() const;

  void set_time(std::uint64_t now) noexcept;
  [[nodiscard]] Result<std::size_t> post(std::span<const Packet> packets) noexcept;
  [[nodiscard]] std::size_t packet_room() const noexcept;
  [[nodiscard]] Status poll() noexcept;
  [[nodiscard]] std::uint64_t copied() const noexcept;
  [[nodiscard]] std::optional<Reply> next_reply() noexcept;
  [[nodiscard]] Result<std::optional<Event>> next_event() noexcept;
  [[nodiscard]] bool settled() const noexcept;
  std::uint32_t attach(FrameRing& frames);
  [[nodiscard]] Status command(const resident::Command& command) noexcept;
  [[nodiscard]] Result<std::size_t> step(Source& source, Ring& ring, Duration timeout) noexcept;
  [[nodiscard]] Status stop() noexcept;
  [[nodiscard]] std::string failure() const;

  ResidentCounters counters;

 private:
  /// A stream, which may not be open yet, and its frames.
  struct Slot {
    FrameRing* frames = nullptr;  ///< Null: free.
    std::uint32_t connection = 0;
    std::uint32_t stream = 0;
    std::uint64_t next = 0;   ///< The first frame that is not complete.
    std::uint64_t limit = 0;  ///< The limit that the kernel was told.
    bool opened = false;
  };

  [[nodiscard]] const resident::View& view() const noexcept { return memory_.view(); }
  void tell(std::uint64_t& word, std::uint64_t value) const noexcept;
  [[nodiscard]] Status watch() noexcept;
  [[nodiscard]] Status look(Slot& slot) noexcept;
  [[nodiscard]] Status complete(Slot& slot, std::size_t bytes, std::size_t length) noexcept;
  [[nodiscard]] Status end(Slot& slot, const Event& event) noexcept;
  void introduce() noexcept;
  [[nodiscard]] Slot* slot_of(std::uint32_t stream) noexcept;
  [[nodiscard]] Status raise_limit(Slot& slot) noexcept;
  void report() noexcept;
  [[nodiscard]] resident::FrameWord& word_of(const Slot& slot, std::uint64_t number) const noexcept;

  const Device device_;
  const ResidentOptions options_;
  const std::size_t ring_bytes_;
  Stream copies_;  ///< Copies of what the kernel has left behind.
  Stream stream_;  ///< The kernel's.
  resident::Memory memory_;
  std::vector<Slot> slots_;
  std::uint32_t streams_ = 0;       ///< Streams that have frames, or had.
  std::uint32_t streams_told_ = 0;  ///< Those of the streams that the kernel knows of.
  std::uint64_t packets_end_ = 0;
  std::uint64_t commands_end_ = 0;
  std::uint64_t replies_taken_ = 0;
  std::uint64_t events_taken_ = 0;
  std::uint64_t beat_ = 0;
  Time beat_at_ = SteadyClock::now();
  std::uint64_t report_at_ = 0;  ///< The command that was the last to ask for counters, and 1.
  Time reported_ = SteadyClock::now();
  std::vector<Packet> burst_;  ///< The burst of step().
  bool stopped_ = false;
  bool hung_ = false;  ///< It was told to leave, and did not within the limit.
};

}  // namespace headrace::ingest
