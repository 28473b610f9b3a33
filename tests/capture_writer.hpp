#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace headrace::ingest::testing {

/// Writes pcap and pcapng files for tests in either byte order, following the drafts of tcpdump.org and the IETF.
class CaptureWriter {
 public:
  explicit CaptureWriter(bool big) : big_(big) {}

  void put8(unsigned value) { bytes_.push_back(static_cast<std::byte>(value)); }
  void put16(std::uint32_t value) { put(value, 2); }
  void put32(std::uint32_t value) { put(value, 4); }
  void put64(std::uint64_t value) { put(value, 8); }
  void put_bytes(std::span<const std::byte> bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  void pad() {
    while (bytes_.size() % 4 != 0) put8(0);
  }

  void pcap_header(bool nanoseconds, std::uint32_t link_type) {
    put32(nanoseconds ? 0xA1B23C4D : 0xA1B2C3D4);
    put16(2);
    put16(4);
    put64(0);
    put32(65535);
    put32(link_type);
  }
  void pcap_packet(std::uint32_t seconds, std::uint32_t fraction, std::span<const std::byte> packet,
                   std::uint32_t original = 0) {
    put32(seconds);
    put32(fraction);
    put32(static_cast<std::uint32_t>(packet.size()));
    put32(original != 0 ? original : static_cast<std::uint32_t>(packet.size()));
    put_bytes(packet);
  }

  void section() {
    put32(0x0A0D0D0A);
    put32(28);
    put32(0x1A2B3C4D);
    put16(1);
    put16(0);
    put64(~std::uint64_t{0});
    put32(28);
  }
  /// @param resolution  of times: an exponent of 10, or of 2 with the upper bit set; 0: the default, microseconds.
  void interface(std::uint32_t link_type, unsigned resolution = 0, std::uint64_t offset_seconds = 0,
                 std::uint32_t snap_bytes = 0) {
    const std::uint32_t bytes = 20 + (resolution != 0 ? 8 : 0) + (offset_seconds != 0 ? 12 : 0) + 4;
    put32(1);
    put32(bytes);
    put16(link_type);
    put16(0);
    put32(snap_bytes);
    if (resolution != 0) {
      put16(9);
      put16(1);
      put8(resolution);
      pad();
    }
    if (offset_seconds != 0) {
      put16(14);
      put16(8);
      put64(offset_seconds);
    }
    put32(0);  // end of options
    put32(bytes);
  }
  void enhanced(std::uint32_t interface, std::uint64_t time, std::span<const std::byte> packet,
                std::uint32_t original = 0) {
    packet_block(6, interface, time, packet, original);
  }
  /// The block type that the enhanced packet block replaced.
  void old_packet(std::uint32_t interface, std::uint64_t time, std::span<const std::byte> packet) {
    packet_block(2, interface, time, packet, 0);
  }
  void simple(std::span<const std::byte> packet, std::uint32_t original) {
    const auto bytes = static_cast<std::uint32_t>(16 + (packet.size() + 3) / 4 * 4);
    put32(3);
    put32(bytes);
    put32(original);
    put_bytes(packet);
    pad();
    put32(bytes);
  }
  /// A block that readers skip.
  void other(std::uint32_t type, std::uint32_t body_bytes) {
    put32(type);
    put32(12 + body_bytes);
    for (std::uint32_t i = 0; i < body_bytes; ++i) put8(0xEE);
    put32(12 + body_bytes);
  }

  [[nodiscard]] std::vector<std::byte>& bytes() { return bytes_; }

 private:
  void put(std::uint64_t value, unsigned count) {
    for (unsigned i = 0; i < count; ++i) put8(static_cast<unsigned>(value >> 8 * (big_ ? count - 1 - i : i)) & 0xFF);
  }
  void packet_block(std::uint32_t type, std::uint32_t interface, std::uint64_t time, std::span<const std::byte> packet,
                    std::uint32_t original) {
    const auto bytes = static_cast<std::uint32_t>(32 + (packet.size() + 3) / 4 * 4);
    put32(type);
    put32(bytes);
    if (type == 2) {
      put16(interface);
      put16(0);
    } else {
      put32(interface);
    }
    put32(static_cast<std::uint32_t>(time >> 32));
    put32(static_cast<std::uint32_t>(time));
    put32(static_cast<std::uint32_t>(packet.size()));
    put32(original != 0 ? original : static_cast<std::uint32_t>(packet.size()));
    put_bytes(packet);
    pad();
    put32(bytes);
  }

  bool big_;
  std::vector<std::byte> bytes_;
};

}  // namespace headrace::ingest::testing
