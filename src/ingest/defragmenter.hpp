#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "headrace/device/ring.hpp"
#include "headrace/ingest/detail/fragments.hpp"
#include "headrace/ingest/detail/packet.hpp"

namespace headrace::ingest {

/// Puts fragments of IPv4 (RFC 791 3.2) and IPv6 (RFC 8200 4.5) together. Time is that of packets. Overlapping
/// fragments are refused with their whole datagram, in both versions (RFC 5722); the same fragment again is passed
/// over. Incomplete datagrams wait for 30 s (IPv6: 60 s) and take 4 MiB at most, as with Linux.
class Defragmenter {
 public:
  /// Takes fragments out of a burst. A datagram that is complete takes the place of its last fragment, in whose slot it
  /// is written, with the headers of the first. Returns how many packets are left, at the front of `packets`.
  [[nodiscard]] std::size_t pass(std::span<Packet> packets, const Ring& ring, Layer layer);
  [[nodiscard]] FragmentCounters counters() const;

 private:
  using Bytes = std::vector<std::byte>;

  struct Key {
    std::uint64_t words[5];
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  /// A fragment, as its headers say.
  struct Fragment {
    Key key{};
    std::size_t link_bytes = 0;
    std::size_t header_end = 0;    ///< The end of what comes before the payload, fragment header included.
    std::size_t header_bytes = 0;  ///< Link and IP headers, without that of the fragment.
    std::size_t next_at = 0;       ///< IPv6: where the header before names the fragment header.
    std::uint8_t next = 0;         ///< IPv6: what follows the fragment header.
    std::uint32_t begin = 0;       ///< Where its payload begins in the datagram's.
    std::uint32_t length = 0;
    bool more = false;
    bool four = true;
  };
  struct Datagram {
    Key key;
    std::uint64_t begun_ns = 0;
    bool four = true;
    bool verified = true;  ///< All of its fragments' checksums were.
    bool refused = false;  ///< Fragments overlap: those that follow are dropped.
    Fragment first{};      ///< The fragment whose headers these are; known once `headers` are there.
    Bytes headers;
    std::map<std::uint32_t, Bytes> parts;  ///< By where they begin: a sender may make thousands, in any order.
    std::uint32_t bytes = 0;               ///< In the parts.
    std::optional<std::uint32_t> end;
  };
  using Datagrams = std::list<Datagram>;

  [[nodiscard]] static bool may_be_fragment(const std::byte* bytes, const Packet& packet, Layer layer) noexcept;
  [[nodiscard]] static bool read(const std::byte* bytes, const Packet& packet, Layer layer, Fragment& fragment,
                                 bool& malformed);
  [[nodiscard]] static bool read_ipv4(const std::byte* ip, std::size_t length, bool verify, Fragment& fragment,
                                      bool& malformed);
  [[nodiscard]] static bool read_ipv6(const std::byte* ip, std::size_t length, Fragment& fragment, bool& malformed);

  /// Whether the packet is to be handed on: it is a datagram now.
  [[nodiscard]] bool take(Packet& packet, const Fragment& fragment, const Ring& ring);
  [[nodiscard]] Datagram& datagram_of(const Fragment& fragment, std::uint64_t now);
  void add(Datagram& datagram, const Fragment& fragment, const std::byte* bytes);
  void refuse(Datagram& datagram);
  [[nodiscard]] bool write(const Datagram& datagram, Packet& packet, const Ring& ring);
  void drop(Datagrams::iterator which);
  void drop_old(std::uint64_t now);
  [[nodiscard]] static std::size_t memory_of(const Datagram& datagram) noexcept;

  Datagrams datagrams_;  ///< The oldest first.
  std::map<Key, Datagrams::iterator> by_key_;
  std::size_t memory_ = 0;
  std::uint64_t now_ = 0;
  FragmentCounters counters_;
};

}  // namespace headrace::ingest
