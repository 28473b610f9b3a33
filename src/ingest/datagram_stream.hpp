#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "headrace/device/buffer.hpp"
#include "ingest/datagram_packet.hpp"
#include "ingest/datagram_sequencer.hpp"

namespace headrace::ingest {

/// Datagrams of a packet that have not been processed, and the ring position of its slot, which stays in use for them.
struct WaitingRun {
  DatagramRun run;
  std::uint64_t position = 0;
};

/// One sender of numbered datagrams: the state of its sequencer, and its waiting datagrams.
class DatagramStream {
 public:
  /// @param frame_count  frames in the stream's ring.
  DatagramStream(const Flow& sender, const DatagramConfig& config, std::uint32_t frame_count, std::uint32_t number);

  /// Resets the sequencer's state, so that the sender's next datagram begins stream `number`.
  void begin_anew(std::uint32_t number);
  [[nodiscard]] const DatagramView& view() const noexcept { return view_; }
  [[nodiscard]] const DatagramCounters& counters() const noexcept { return view_.shared->counters; }
  /// The oldest ring position that the stream still needs; empty if it needs none.
  [[nodiscard]] std::optional<std::uint64_t> oldest_position() const noexcept;

  Flow sender;
  std::uint32_t number;                 ///< The number of its stream.
  std::optional<std::uint32_t> place;   ///< The stream's place in the StreamTable, once it is open.
  std::optional<std::uint32_t> before;  ///< The sender's previous stream, which ends before this one opens.
  std::uint64_t heard_at = 0;           ///< When its last packet came, by Packet::received_ns.
  std::deque<WaitingRun> waiting;       ///< In order of arrival.
  std::uint64_t suspect_position = 0;   ///< The ring position of the sequencer's suspect, if it has one.

 private:
  DatagramConfig config_;
  std::uint32_t presence_frames_;
  std::uint32_t frame_count_;
  Buffer memory_;
  DatagramView view_;
};

}  // namespace headrace::ingest
