#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "headrace/device/buffer.hpp"
#include "ingest/datagram_packet.hpp"
#include "ingest/datagram_sequencer.hpp"

namespace headrace::ingest {

/// Datagrams of a packet that are still to be taken, and the ring position of its slot, which they keep.
struct WaitingRun {
  DatagramRun run;
  std::uint64_t position = 0;
};

/// One sender of numbered datagrams: the state of its sequencer, and what waits of it.
class DatagramStream {
 public:
  /// @param frame_count  of its ring of frames.
  DatagramStream(const Flow& sender, const DatagramConfig& config, std::uint32_t frame_count, std::uint32_t number);

  /// What the sequencer knew of the sender is forgotten, and its next datagram begins stream `number`.
  void begin_anew(std::uint32_t number);
  [[nodiscard]] const DatagramView& view() const noexcept { return view_; }
  [[nodiscard]] const DatagramCounters& counters() const noexcept { return view_.shared->counters; }
  /// The oldest ring position that it needs; empty where it needs none.
  [[nodiscard]] std::optional<std::uint64_t> oldest_position() const noexcept;

  Flow sender;
  std::uint32_t number;                 ///< The number of its stream.
  std::optional<std::uint32_t> place;   ///< The place of its stream in the StreamTable, once that is open.
  std::optional<std::uint32_t> before;  ///< The sender's stream before it, which ends before this one is opened.
  std::uint64_t heard_at = 0;           ///< By Packet::received_ns.
  std::deque<WaitingRun> waiting;       ///< In order of arrival.
  std::uint64_t suspect_position = 0;   ///< The ring position of the sequencer's suspect, where it has one.

 private:
  DatagramConfig config_;
  std::uint32_t presence_frames_;
  std::uint32_t frame_count_;
  Buffer memory_;
  DatagramView view_;
};

}  // namespace headrace::ingest
