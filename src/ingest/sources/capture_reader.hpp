#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ingest/sources/capture_input.hpp"

namespace headrace::ingest {

/// The type of the block that begins a section of a pcapng file: the same in either byte order.
inline constexpr std::uint32_t kCaptureSection = 0x0A0D0D0A;

/// A packet of a capture.
struct CaptureRecord {
  std::uint64_t time_ns = 0;  ///< Since 1970.
  std::uint32_t link_type = 0;
  std::uint32_t original_bytes = 0;  ///< Its length on the wire.
  std::span<const std::byte> bytes;  ///< The captured bytes; valid until the next call.
  std::uint64_t offset = 0;          ///< Where its block begins in the file.
};

/// libpcap's limit, too; a longer packet means that the file is damaged.
inline constexpr std::uint32_t kCapturedMost = 262144;

/// Reads pcap (draft-ietf-opsawg-pcap) and pcapng (draft-ietf-opsawg-pcapng) files. Whatever the bytes, it terminates,
/// never reads beyond them, and throws DataError "<name>: byte <offset>: ..." if they are invalid.
class CaptureReader {
 public:
  CaptureReader(CaptureInput input, std::string name);

  /// The link type of the first interface; empty for a pcapng file that has none.
  [[nodiscard]] std::optional<std::uint32_t> first_link_type() const noexcept { return first_link_type_; }
  /// The next packet, or empty at the end. Throws as CaptureInput::peek() does.
  [[nodiscard]] std::optional<CaptureRecord> next();
  /// How long next() waits for a pipe; without a limit at first.
  void wait_for(Duration patience) noexcept { input_.wait_for(patience); }

 private:
  struct Interface {
    std::uint32_t link_type = 0;
    std::uint32_t snap_bytes = 0;
    std::uint64_t units_per_second = 1'000'000;
    std::uint64_t offset_seconds = 0;
  };
  struct Block {
    std::uint64_t offset = 0;
    std::uint32_t type = 0;
    std::uint32_t bytes = 0;
  };

  [[noreturn]] void fail(std::uint64_t offset, const std::string& what) const;
  [[nodiscard]] std::uint16_t load16(std::span<const std::byte> bytes, std::size_t at) const;
  [[nodiscard]] std::uint32_t load32(std::span<const std::byte> bytes, std::size_t at) const;
  [[nodiscard]] std::span<const std::byte> need(std::size_t bytes, std::uint64_t offset, const char* what);

  void read_file_header();
  [[nodiscard]] std::optional<CaptureRecord> next_classic();

  void read_to_interface();
  [[nodiscard]] std::optional<CaptureRecord> next_ng();
  [[nodiscard]] std::optional<Block> next_block();
  void pass(const Block& block);
  void read_section(const Block& block);
  void read_interface(const Block& block);
  void read_options(std::span<const std::byte> options, Interface& to, std::uint64_t offset) const;
  [[nodiscard]] CaptureRecord read_packet(const Block& block, std::span<const std::byte> bytes);
  [[nodiscard]] CaptureRecord read_simple(const Block& block, std::span<const std::byte> bytes) const;
  [[nodiscard]] const Interface& interface_of(const Block& block, std::uint32_t number) const;
  void check_end(const Block& block, std::span<const std::byte> last) const;

  [[nodiscard]] static std::uint64_t to_ns(const Interface& from, std::uint64_t units) noexcept;

  CaptureInput input_;
  std::string name_;
  bool ng_ = false;  ///< pcapng.
  bool swapped_ = false;
  std::uint64_t taken_ = 0;  ///< Bytes of the last returned record, which the next call skips.
  std::uint64_t last_ns_ = 0;
  std::vector<Interface> interfaces_;  ///< A pcap file has one.
  std::optional<std::uint32_t> first_link_type_;
};

}  // namespace headrace::ingest
