#pragma once

#include <cstdint>

#include "headrace/device/kernel.hpp"
#include "headrace/ingest/detail/framing.hpp"
#include "ingest/datagram_sequencer.hpp"
#include "tests/ingest_steps.hpp"

/// Sequencers that run on a device.
namespace headrace::ingest::testing {

/// The result of one step: how far each array of the output was filled.
struct Filled {
  std::uint32_t pieces;
  std::uint32_t replies;
  std::uint32_t events;
};

/// (TcpView, const std::byte* ring, const Step*, uint32_t step_count, Output* all, Filled* after): takes every step in
/// turn, each into the rest of the output's arrays, with as much room as the step says.
[[nodiscard]] TypedKernel<TcpView, const std::byte*, const Step*, std::uint32_t, Output*, Filled*> tcp_steps_kernel();

/// (DatagramView, const std::byte* ring, const Packet*, uint32_t count, DatagramOutput*): takes every packet, each 1 us
/// after the one before, with a tick before each, and closes what is left.
[[nodiscard]] TypedKernel<DatagramView, const std::byte*, const Packet*, std::uint32_t, DatagramOutput*>
datagrams_kernel();

/// (LengthPrefix, const std::byte* stream, uint64_t length, uint32_t part, Message*, uint32_t* count): cuts the stream,
/// given in parts of that size.
[[nodiscard]] TypedKernel<LengthPrefix, const std::byte*, std::uint64_t, std::uint32_t, Message*, std::uint32_t*>
messages_kernel();

}  // namespace headrace::ingest::testing
