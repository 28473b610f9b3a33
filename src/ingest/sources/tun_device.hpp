#pragma once

#include <cstdint>
#include <string>

#include "base/file_descriptor.hpp"
#include "ingest/net/subnet.hpp"

namespace headrace::ingest {

/// A TUN device with virtio headers, which goes when its descriptor does.
struct TunDevice {
  FileDescriptor file;
  std::string name;
};

/// Makes a device that is not up yet. Throws SystemError that names what is lacking.
[[nodiscard]] TunDevice make_tun(const std::string& name, bool offloads);

/// Gives it an MTU, puts it up, and gives it the kernel's address. Throws SystemError, also where IPv6 is switched off.
void start_tun(const TunDevice& device, const HostPair& hosts, std::uint32_t mtu);

/// Packets that the kernel dropped since they were not taken in time.
[[nodiscard]] std::uint64_t tun_drops(const std::string& name) noexcept;

}  // namespace headrace::ingest
