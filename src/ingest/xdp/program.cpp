#include "ingest/xdp/program.hpp"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <fmt/format.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <netinet/in.h>

#include <cerrno>
#include <cstddef>
#include <vector>

#include "headrace/base/error.hpp"
#include "ingest/sources/rights.hpp"

namespace headrace::ingest {

namespace {

constexpr const char* kProgramRights = "CAP_NET_ADMIN and CAP_BPF";
constexpr std::uint32_t kWithFragments = 1U << 5;  ///< BPF_F_XDP_HAS_FRAGS of Linux 5.18.

/// The code of an operation: its class, its operation and its operand kind.
constexpr int operation(int kind, int what, int with) { return kind | what | with; }

/// Assembles a BPF program. The program is small enough to write here, which saves a BPF compiler and an object file.
class Assembler {
 public:
  void load(int size, std::uint8_t to, std::uint8_t from, std::int16_t offset) {
    add(operation(BPF_LDX, BPF_MEM, size), to, from, offset, 0);
  }
  void move(std::uint8_t to, std::uint8_t from) { add(operation(BPF_ALU64, BPF_MOV, BPF_X), to, from, 0, 0); }
  void set(std::uint8_t to, std::int32_t value) { add(operation(BPF_ALU64, BPF_MOV, BPF_K), to, 0, 0, value); }
  void increase(std::uint8_t to, std::int32_t by) { add(operation(BPF_ALU64, BPF_ADD, BPF_K), to, 0, 0, by); }
  void mask(std::uint8_t to, std::int32_t bits) { add(operation(BPF_ALU64, BPF_AND, BPF_K), to, 0, 0, bits); }
  /// Loads a map's descriptor, which takes two instructions.
  void load_table(std::uint8_t to, int descriptor) {
    add(operation(BPF_LD, BPF_DW, BPF_IMM), to, BPF_PSEUDO_MAP_FD, 0, descriptor);
    add(0, 0, 0, 0, 0);
  }
  void call(int function) { add(BPF_JMP | BPF_CALL, 0, 0, 0, function); }
  void leave() { add(BPF_JMP | BPF_EXIT, 0, 0, 0, 0); }
  /// Leaves the packet to the kernel if `to` is above `from`, or is not `value` (32 bits).
  void pass_if_above(std::uint8_t to, std::uint8_t from) { jump(operation(BPF_JMP, BPF_JGT, BPF_X), to, from, 0); }
  void pass_unless(std::uint8_t to, std::uint32_t value) {
    jump(operation(BPF_JMP32, BPF_JNE, BPF_K), to, 0, static_cast<std::int32_t>(value));
  }

  /// Ends the program with the target of the jumps, if there are any: the kernel refuses unreachable instructions.
  [[nodiscard]] const std::vector<bpf_insn>& finish() {
    if (jumps_.empty()) return code_;
    for (const std::size_t at : jumps_) code_[at].off = static_cast<std::int16_t>(code_.size() - at - 1);
    set(BPF_REG_0, XDP_PASS);
    leave();
    return code_;
  }

 private:
  void add(int code, std::uint8_t to, std::uint8_t from, std::int16_t offset, std::int32_t value) {
    bpf_insn one{};
    one.code = static_cast<std::uint8_t>(code);
    one.dst_reg = to & 0xF;
    one.src_reg = from & 0xF;
    one.off = offset;
    one.imm = value;
    code_.push_back(one);
  }
  void jump(int code, std::uint8_t to, std::uint8_t from, std::int32_t value) {
    jumps_.push_back(code_.size());
    add(code, to, from, 0, value);
  }

  std::vector<bpf_insn> code_;
  std::vector<std::size_t> jumps_;
};

/// Sends packets that match the filter to the socket of their queue. Packets of a queue without a socket, and all
/// others, go to the kernel. With a port, packets with IPv4 options do not match.
std::vector<bpf_insn> assemble(const XdpFilter& filter, int sockets) {
  constexpr std::int16_t kEthertype = 12;
  constexpr std::int16_t kVersion = 14;
  constexpr std::int16_t kFragment = 20;
  constexpr std::int16_t kProtocol = 23;
  constexpr std::int16_t kDestination = 30;
  constexpr std::int16_t kPort = 36;
  constexpr std::int32_t kHeaders = 42;
  Assembler code;
  code.move(BPF_REG_6, BPF_REG_1);
  if (filter.address || filter.udp_port != 0) {
    code.load(BPF_W, BPF_REG_2, BPF_REG_1, offsetof(xdp_md, data));
    code.load(BPF_W, BPF_REG_3, BPF_REG_1, offsetof(xdp_md, data_end));
    code.move(BPF_REG_4, BPF_REG_2);
    code.increase(BPF_REG_4, filter.udp_port != 0 ? kHeaders : kPort - 2);
    code.pass_if_above(BPF_REG_4, BPF_REG_3);
    code.load(BPF_H, BPF_REG_5, BPF_REG_2, kEthertype);
    code.pass_unless(BPF_REG_5, htons(ETH_P_IP));
  }
  if (filter.address) {
    code.load(BPF_W, BPF_REG_5, BPF_REG_2, kDestination);
    code.pass_unless(BPF_REG_5, htonl(*filter.address));
  }
  if (filter.udp_port != 0) {
    code.load(BPF_B, BPF_REG_5, BPF_REG_2, kVersion);
    code.pass_unless(BPF_REG_5, 0x45);
    code.load(BPF_B, BPF_REG_5, BPF_REG_2, kProtocol);
    code.pass_unless(BPF_REG_5, IPPROTO_UDP);
    code.load(BPF_H, BPF_REG_5, BPF_REG_2, kFragment);
    code.mask(BPF_REG_5, htons(0x1FFF));
    code.pass_unless(BPF_REG_5, 0);
    code.load(BPF_H, BPF_REG_5, BPF_REG_2, kPort);
    code.pass_unless(BPF_REG_5, htons(filter.udp_port));
  }
  code.load(BPF_W, BPF_REG_2, BPF_REG_6, offsetof(xdp_md, rx_queue_index));
  code.load_table(BPF_REG_1, sockets);
  code.set(BPF_REG_3, XDP_PASS);  // for a queue that has no socket
  code.call(BPF_FUNC_redirect_map);
  code.leave();
  return code.finish();
}

}  // namespace

XdpProgram::XdpProgram(const XdpFilter& filter, std::uint32_t queue_end)
    : sockets_(bpf_map_create(BPF_MAP_TYPE_XSKMAP, "headrace_queues", sizeof(int), sizeof(int), queue_end, nullptr)) {
  if (!sockets_.valid()) throw_rights("creating the socket map of an XDP program", kProgramRights, errno);
  const std::vector<bpf_insn> code = assemble(filter, sockets_.get());
  LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = BPF_XDP, .prog_flags = kWithFragments);
  const auto load = [&] {
    return bpf_prog_load(BPF_PROG_TYPE_XDP, "headrace", "GPL", code.data(), code.size(), &options);
  };
  int loaded = load();
  if (loaded == -EINVAL) {  // the kernel does not support multi-buffer packets
    options.prog_flags = 0;
    loaded = load();
  }
  if (loaded < 0) throw_rights("loading an XDP program", kProgramRights, -loaded);
  program_ = FileDescriptor(loaded);
}

void XdpProgram::set_socket(std::uint32_t queue, int socket) const {
  if (bpf_map_update_elem(sockets_.get(), &queue, &socket, BPF_ANY) != 0)
    throw_errno("adding a socket to the map of an XDP program");
}

void XdpProgram::attach(unsigned interface, const XdpOptions& options) {
  const auto attach_at = [&](std::uint32_t flags) {
    LIBBPF_OPTS(bpf_link_create_opts, link, .flags = flags);
    return bpf_link_create(program_.get(), static_cast<int>(interface), BPF_XDP, &link);
  };
  int attached = attach_at(options.hook == XdpHook::generic ? XDP_FLAGS_SKB_MODE : XDP_FLAGS_DRV_MODE);
  const bool other_way = options.hook == XdpHook::automatic && attached != -EBUSY && attached != -EPERM;
  if (attached < 0 && other_way) attached = attach_at(XDP_FLAGS_SKB_MODE);
  if (attached == -EBUSY || attached == -EEXIST) {
    throw SystemError(Errc::system, options.interface + " already has another XDP program", -attached);
  }
  if (attached == -EOPNOTSUPP) {
    throw SystemError(Errc::not_supported,
                      "the driver of " + options.interface + " does not support native XDP; use generic XDP",
                      -attached);
  }
  if (attached < 0) throw_rights("attaching an XDP program to " + options.interface, kProgramRights, -attached);
  link_ = FileDescriptor(attached);
}

}  // namespace headrace::ingest
