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

/// Reassembles fragments of IPv4 (RFC 791 3.2) and IPv6 (RFC 8200 4.5). Time is that of packets. If fragments overlap,
/// it refuses their whole datagram, in both versions (RFC 5722); it ignores an exact duplicate of a fragment.
/// Incomplete datagrams wait for 30 s (IPv6: 60 s) and take at most 4 MiB, as with Linux.
class Defragmenter {
 public:
  /// Takes fragments out of a burst. A complete datagram replaces the fragment that completed it: it is written to that
  /// fragment's slot, with the headers of the first. Returns how many packets are left, at the front of `packets`.
  [[nodiscard]] std::size_t pass(std::span<Packet> packets, const Ring& ring, Layer layer);
  [[nodiscard]] FragmentCounters counters() const;

 private:
  using Bytes = std::vector<std::byte>;

  struct Key {
    std::uint64_t words[5];
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  /// The headers of a fragment.
  struct Fragment {
    Key key{};
    std::size_t link_bytes = 0;
    std::size_t header_end = 0;    ///< Where the payload begins: after all headers, that of the fragment included.
    std::size_t header_bytes = 0;  ///< Link and IP headers, without that of the fragment.
    std::size_t next_at = 0;       ///< IPv6: where the previous header names the fragment header.
    std::uint8_t next = 0;         ///< IPv6: the header type that follows the fragment header.
    std::uint32_t begin = 0;       ///< Offset of its payload in the datagram's payload.
    std::uint32_t length = 0;
    bool more = false;
    bool four = true;
  };
  struct Datagram {
    Key key;
    std::uint64_t begun_ns = 0;
    bool four = true;
    bool verified = true;  ///< The checksums of all its fragments were verified.
    bool refused = false;  ///< Fragments overlap: later ones are dropped.
    Fragment first{};      ///< The fragment that `headers` come from; valid once they are known.
    Bytes headers;
    std::map<std::uint32_t, Bytes> parts;  ///< By offset; a map, because a sender may make thousands in any order.
    std::uint32_t bytes = 0;               ///< Bytes of all parts.
    std::optional<std::uint32_t> end;
  };
  using Datagrams = std::list<Datagram>;

  [[nodiscard]] static bool may_be_fragment(const std::byte* bytes, const Packet& packet, Layer layer) noexcept;
  [[nodiscard]] static bool read(const std::byte* bytes, const Packet& packet, Layer layer, Fragment& fragment,
                                 bool& malformed);
  [[nodiscard]] static bool read_ipv4(const std::byte* ip, std::size_t length, bool verify, Fragment& fragment,
                                      bool& malformed);
  [[nodiscard]] static bool read_ipv6(const std::byte* ip, std::size_t length, Fragment& fragment, bool& malformed);

  /// True if the packet now holds a complete datagram and is to be handed on.
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
