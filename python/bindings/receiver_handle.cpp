#include "receiver_handle.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

namespace headrace::python {

namespace {

/// Slots for packets that a kernel has merged, which are mostly empty if packets are not merged.
constexpr std::size_t kWideSlot = 65535;
constexpr std::size_t kSlotsMin = 64;

}  // namespace

Ring ReceiverHandle::make_ring(const FrameTarget& target, const SlotShape& slots) {
  return {target.device, MemoryKind::mapped, slots.bytes,
          std::bit_floor(std::max(target.ring_bytes / slots.bytes, kSlotsMin)), slots.lead};
}

ingest::ReceiverOptions ReceiverHandle::options_for(const FrameTarget& target, const SlotShape& slots) {
  ingest::ReceiverOptions options = target.options;
  // Whole slots would also carry the gaps between packets over the link.
  if (slots.bytes >= kWideSlot && options.builder.ring_access == ingest::RingAccess::automatic &&
      options.control == ingest::Control::host) {
    options.builder.ring_access = ingest::RingAccess::direct;
  }
  return options;
}

namespace {

std::string text_of(const std::uint32_t (&address)[4], std::uint16_t port, std::uint32_t version) {
  if (version == 0) return {};
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(version == 4 ? AF_INET : AF_INET6, &address[0], text.data(), text.size());
  return version == 4 ? fmt::format("{}:{}", text.data(), port) : fmt::format("[{}]:{}", text.data(), port);
}

}  // namespace

std::string peer_of(const ingest::Flow& flow) { return text_of(flow.remote, flow.remote_port, flow.version); }
std::string destination_of(const ingest::Flow& flow) { return text_of(flow.local, flow.local_port, flow.version); }

}  // namespace headrace::python
