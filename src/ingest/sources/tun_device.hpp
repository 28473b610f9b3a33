#pragma once

#include <cstdint>
#include <string>

#include "base/file_descriptor.hpp"
#include "ingest/net/subnet.hpp"

namespace headrace::ingest {

/// A TUN device with virtio headers. It is removed when its descriptor is closed.
struct TunDevice {
  FileDescriptor file;
  std::string name;
};

/// Makes a device that is not up yet. Throws SystemError that names the missing capability or module.
[[nodiscard]] TunDevice make_tun(const std::string& name, bool offloads);

/// Sets the MTU, brings the device up, and gives it the kernel's address. Throws SystemError, also if IPv6 is disabled.
void start_tun(const TunDevice& device, const HostPair& hosts, std::uint32_t mtu);

/// Packets that the kernel dropped because they were not taken in time.
[[nodiscard]] std::uint64_t tun_drops(const std::string& name) noexcept;

}  // namespace headrace::ingest
