#include "receiver_handle.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

namespace headrace::python {

namespace {

/// Slots that hold what a kernel has merged: mostly empty where packets are not.
constexpr std::size_t kWideSlot = 65535;
constexpr std::size_t kSlotsMin = 64;

}  // namespace

Ring ReceiverHandle::make_ring(const FrameTarget& target, const SlotShape& slots) {
  return {target.device, MemoryKind::mapped, slots.bytes,
          std::bit_floor(std::max(target.ring_bytes / slots.bytes, kSlotsMin)), slots.lead};
}

ingest::ReceiverOptions ReceiverHandle::options_for(const FrameTarget& target, const SlotShape& slots) {
  ingest::ReceiverOptions options = target.options;
  // Whole slots would carry what lies between packets over the link, too.
  if (slots.bytes >= kWideSlot && options.builder.ring_access == ingest::RingAccess::automatic &&
      options.control == ingest::Control::host) {
    options.builder.ring_access = ingest::RingAccess::direct;
  }
  return options;
}

std::string peer_of(const ingest::Flow& flow) {
  if (flow.version == 0) return {};
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(flow.version == 4 ? AF_INET : AF_INET6, &flow.remote[0], text.data(), text.size());
  return flow.version == 4 ? fmt::format("{}:{}", text.data(), flow.remote_port)
                           : fmt::format("[{}]:{}", text.data(), flow.remote_port);
}

}  // namespace headrace::python
