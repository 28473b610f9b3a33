#pragma once

#include <xdp/xsk.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "headrace/base/result.hpp"
#include "headrace/ingest/xdp_source.hpp"
#include "ingest/sources/mapping.hpp"

namespace headrace::ingest {

/// An AF_XDP socket of one receive queue, with frames of its own.
class XdpQueue {
 public:
  static constexpr std::uint32_t kFrameBytes = 4096;

  /// Throws SystemError.
  XdpQueue(const XdpOptions& options, std::uint32_t queue, bool sends);
  XdpQueue(const XdpQueue&) = delete;
  XdpQueue& operator=(const XdpQueue&) = delete;
  ~XdpQueue();

  [[nodiscard]] int socket() const noexcept { return xsk_socket__fd(socket_); }
  [[nodiscard]] std::uint64_t dropped() const noexcept;

  /// The result of copying a packet.
  struct Copied {
    std::size_t length = 0;  ///< 0: there is no packet.
    bool cut = false;        ///< The packet was longer than the target.
  };
  /// Copies all parts of the next packet and returns its frames to the kernel.
  [[nodiscard]] Copied take(std::span<std::byte> to) noexcept;
  [[nodiscard]] Status send(std::span<const std::byte> packet) noexcept;

 private:
  void open_socket(const XdpOptions& options, std::uint32_t queue, bool sends);
  void fill(std::uint64_t frame) noexcept;
  void collect_sent() noexcept;

  Mapping frames_;
  xsk_ring_prod fill_{};
  xsk_ring_cons completion_{};
  xsk_ring_cons receive_{};
  xsk_ring_prod transmit_{};
  xsk_umem* memory_ = nullptr;
  xsk_socket* socket_ = nullptr;
  std::uint64_t send_next_ = 0;   ///< Number of frames sent so far.
  std::uint64_t send_back_ = 0;   ///< How many of them have come back.
  std::uint64_t first_send_ = 0;  ///< Address of the first frame for sending.
};

}  // namespace headrace::ingest
