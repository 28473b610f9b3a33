#include "ingest/sources/packet_socket.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <sys/socket.h>

#include <array>

#include "headrace/base/error.hpp"
#include "ingest/net/address.hpp"
#include "ingest/sources/rights.hpp"

namespace headrace::ingest {

namespace {

constexpr const char* kPacketRight = "CAP_NET_RAW";
constexpr std::uint32_t kFrameBytes = 2048;  // unused in version 3, but validated

template <class T>
void set(int socket, int option, const T& value, const char* doing) {
  if (::setsockopt(socket, SOL_PACKET, option, &value, sizeof value) != 0) throw_rights(doing, kPacketRight);
}

void check(const PacketSocketOptions& options) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  // A block holds at least one packet of 64 KiB with the kernel's headers.
  constexpr std::size_t kLeast = std::size_t{128} << 10;
  constexpr std::size_t kMost = std::size_t{1} << 30;
  if (options.block_bytes % page != 0 || options.block_bytes < kLeast || options.block_bytes > kMost) {
    throw UsageError(fmt::format(
        "the size of a block in a packet socket's ring must be a multiple of {} from {} to {} bytes, not {}", page,
        kLeast, kMost, options.block_bytes));
  }
  if (options.block_count < 2 || options.block_count > kMost / kFrameBytes) {
    throw UsageError(fmt::format("a packet socket's ring must have 2 to 524,288 blocks, not {}", options.block_count));
  }
  if (options.block_timeout_ms == 0) throw UsageError("a block's timeout must be at least 1 ms, not 0");
}

/// Lets through UDP over IPv4 and IPv6 to one port, and every fragment, because the port is known only after
/// reassembly. The kernel keeps VLAN tags outside the packet.
void filter_port(int socket, std::uint16_t port) {
  constexpr std::uint32_t kWhole = 0x40000;
  constexpr std::uint32_t kUdp = IPPROTO_UDP;
  constexpr std::uint32_t kFragment = IPPROTO_FRAGMENT;
  std::array<sock_filter, 17> whole{{
      BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 12),                 //  0: ethertype
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_IP, 0, 6),    //  1: else to 8
      BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 23),                 //  2: protocol
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kUdp, 0, 11),       //  3: else to 15
      BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 20),                 //  4: more fragments, fragment offset
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x3FFF, 10, 0),    //  5: if any, to 16
      BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 14),                //  6: length of the IPv4 header
      BPF_STMT(BPF_JMP | BPF_JA, 5),                          //  7: to 13
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_IPV6, 0, 6),  //  8: else to 15
      BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 20),                 //  9: next header
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kFragment, 5, 0),   // 10: if so, to 16
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kUdp, 0, 3),        // 11: else to 15
      BPF_STMT(BPF_LDX | BPF_IMM, 40),                        // 12: length of the IPv6 header
      BPF_STMT(BPF_LD | BPF_H | BPF_IND, 16),                 // 13: port sent to
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, port, 1, 0),        // 14: if it is that one, to 16
      BPF_STMT(BPF_RET | BPF_K, 0),                           // 15
      BPF_STMT(BPF_RET | BPF_K, kWhole),                      // 16
  }};
  const sock_fprog attached{.len = whole.size(), .filter = whole.data()};
  if (::setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &attached, sizeof attached) != 0) {
    throw_errno("attaching a filter to a packet socket");
  }
}

Mapping map_ring(int socket, const PacketSocketOptions& options) {
  set(socket, PACKET_VERSION, int{TPACKET_V3}, "selecting TPACKET_V3");
  set(socket, PACKET_VNET_HDR, int{1}, "enabling PACKET_VNET_HDR");
  tpacket_req3 request{};
  request.tp_block_size = static_cast<unsigned>(options.block_bytes);
  request.tp_block_nr = options.block_count;
  request.tp_frame_size = kFrameBytes;
  request.tp_frame_nr = static_cast<unsigned>(options.block_bytes / kFrameBytes) * options.block_count;
  request.tp_retire_blk_tov = options.block_timeout_ms;
  set(socket, PACKET_RX_RING, request, "creating a packet socket's ring");
  const std::size_t bytes = options.block_bytes * options.block_count;
  Mapping ring(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, socket, 0), bytes);
  if (!ring.valid()) throw_errno("mapping a packet socket's ring");
  return ring;
}

void join_group(int socket, std::uint16_t group, Fanout fanout) {
  int how = PACKET_FANOUT_HASH;
  if (fanout == Fanout::round_robin) how = PACKET_FANOUT_LB;
  if (fanout == Fanout::cpu) how = PACKET_FANOUT_CPU;
  const int value = group | how << 16;
  if (::setsockopt(socket, SOL_PACKET, PACKET_FANOUT, &value, sizeof value) == 0) return;
  if (errno == EINVAL) {
    throw UsageError(
        fmt::format("fanout group {} already exists with another fanout mode or on another interface", group));
  }
  throw_rights("joining a fanout group", kPacketRight);
}

}  // namespace

PacketSocket make_packet_socket(const PacketSocketOptions& options) {
  check(options);
  const unsigned index = receiving_interface(options.interface);
  // Protocol 0 until the socket is bound: otherwise it would receive packets of every interface until then.
  PacketSocket made{.file = FileDescriptor(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)),
                    .ring = {}};
  if (!made.file.valid()) throw_rights("creating a packet socket", kPacketRight);
  const int socket = made.file.get();
  made.ring = map_ring(socket, options);
  set(socket, PACKET_IGNORE_OUTGOING, int{1}, "ignoring outgoing packets");
  if (options.udp_port != 0) filter_port(socket, options.udp_port);
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(ETH_P_ALL);
  address.sll_ifindex = static_cast<int>(index);
  if (::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    throw_errno("binding a packet socket to " + options.interface);
  }
  if (options.promiscuous) {
    packet_mreq request{};
    request.mr_ifindex = static_cast<int>(index);
    request.mr_type = PACKET_MR_PROMISC;
    set(socket, PACKET_ADD_MEMBERSHIP, request, "enabling promiscuous mode");
  }
  if (options.group) join_group(socket, *options.group, options.fanout);
  return made;
}

}  // namespace headrace::ingest
