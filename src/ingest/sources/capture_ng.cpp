// The blocks of a pcapng file.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "ingest/sources/capture_reader.hpp"

namespace headrace::ingest {

namespace {

constexpr std::uint32_t kByteOrder = 0x1A2B3C4D;
constexpr std::uint32_t kInterface = 1;
constexpr std::uint32_t kOldPacket = 2;
constexpr std::uint32_t kSimplePacket = 3;
constexpr std::uint32_t kEnhancedPacket = 6;

constexpr std::uint32_t kBlockLeast = 12;      ///< Type, length, length again.
constexpr std::uint32_t kSectionLeast = 28;    ///< And byte order, version, section length.
constexpr std::uint32_t kInterfaceLeast = 20;  ///< And link type, snap length.
constexpr std::uint32_t kPacketLeast = 32;     ///< And interface, time, both lengths.
constexpr std::uint32_t kPacketFields = 28;    ///< Before the packet's bytes.
constexpr std::uint32_t kSimpleLeast = 16;
constexpr std::uint32_t kSimpleFields = 12;
constexpr std::uint32_t kTrailer = 4;
/// Most bytes of a block that is read as a whole: the largest packet, and options.
constexpr std::uint32_t kBlockMost = CaptureInput::kWindow;

constexpr std::uint16_t kTimeResolution = 9;
constexpr std::uint16_t kTimeOffset = 14;

[[nodiscard]] bool is_packet(std::uint32_t type) noexcept {
  return type == kOldPacket || type == kSimplePacket || type == kEnhancedPacket;
}

/// The least length of a block of this type.
[[nodiscard]] std::uint32_t least_bytes(std::uint32_t type) noexcept {
  switch (type) {
    case kCaptureSection: return kSectionLeast;
    case kInterface: return kInterfaceLeast;
    case kOldPacket:
    case kEnhancedPacket: return kPacketLeast;
    case kSimplePacket: return kSimpleLeast;
    default: return kBlockLeast;
  }
}

}  // namespace

void CaptureReader::read_to_interface() {
  while (!first_link_type_) {
    const auto block = next_block();
    if (!block || is_packet(block->type)) return;  // next() reports a packet without an interface
    pass(*block);
  }
}

std::optional<CaptureRecord> CaptureReader::next_ng() {
  while (const auto block = next_block()) {
    if (!is_packet(block->type)) {
      pass(*block);
      continue;
    }
    const auto bytes = need(block->bytes, block->offset, "a packet block");
    check_end(*block, bytes.last(kTrailer));
    taken_ = block->bytes;
    return block->type == kSimplePacket ? read_simple(*block, bytes) : read_packet(*block, bytes);
  }
  return std::nullopt;
}

std::optional<CaptureReader::Block> CaptureReader::next_block() {
  Block block{.offset = input_.offset()};
  if (input_.peek(1).empty()) return std::nullopt;
  const auto header = need(kBlockLeast, block.offset, "a block header");
  block.type = load32(header, 0);
  if (block.type ==
      kCaptureSection) {  // the type is the same in either byte order; the byte order comes after the length
    if (load32(header, 8) != kByteOrder) swapped_ = !swapped_;
    if (load32(header, 8) != kByteOrder) fail(block.offset + 8, "the section has no byte-order magic");
  }
  block.bytes = load32(header, 4);
  if (block.bytes < least_bytes(block.type) || block.bytes % 4 != 0) {
    fail(block.offset + 4, fmt::format("a block of type {} cannot have {} bytes", block.type, block.bytes));
  }
  if (block.bytes > kBlockMost && (is_packet(block.type) || block.type == kInterface)) {
    fail(block.offset + 4, fmt::format("a block of type {} has {} bytes, more than the {} that can be read", block.type,
                                       block.bytes, kBlockMost));
  }
  return block;
}

void CaptureReader::pass(const Block& block) {
  if (block.bytes <= kBlockMost) static_cast<void>(input_.peek(block.bytes));  // waits for all of it, if this is a pipe
  if (block.type == kCaptureSection) read_section(block);
  if (block.type == kInterface) read_interface(block);
  if (!input_.skip(block.bytes - kTrailer)) fail(block.offset, "the file ends inside a block");
  check_end(block, need(kTrailer, block.offset, "a block"));
  input_.skip(kTrailer);
}

void CaptureReader::check_end(const Block& block, std::span<const std::byte> last) const {
  const std::uint32_t again = load32(last, 0);
  if (again == block.bytes) return;
  fail(block.offset + block.bytes - kTrailer,
       fmt::format("the block's length is {} bytes at its start, but {} at its end", block.bytes, again));
}

void CaptureReader::read_section(const Block& block) {
  const auto bytes = need(kSectionLeast, block.offset, "a section header");
  const std::uint16_t version = load16(bytes, 12);
  if (version != 1) fail(block.offset + 12, fmt::format("pcapng version {} is not supported, only version 1", version));
  interfaces_.clear();
}

void CaptureReader::read_interface(const Block& block) {
  const auto bytes = need(block.bytes, block.offset, "an interface block");
  Interface one{.link_type = load16(bytes, 8), .snap_bytes = load32(bytes, 12)};
  read_options(bytes.subspan(16, block.bytes - kInterfaceLeast), one, block.offset + 16);
  if (!first_link_type_) first_link_type_ = one.link_type;
  interfaces_.push_back(one);
}

void CaptureReader::read_options(std::span<const std::byte> options, Interface& to, std::uint64_t offset) const {
  constexpr std::size_t kHeader = 4;
  while (options.size() >= kHeader) {
    const std::uint16_t code = load16(options, 0);
    const std::uint16_t bytes = load16(options, 2);
    const std::size_t padded = kHeader + (std::size_t{bytes} + 3) / 4 * 4;
    if (code == 0) return;
    if (padded > options.size())
      fail(offset, fmt::format("option {} of {} bytes extends past the end of its block", code, bytes));
    if (code == kTimeResolution && bytes == 1) {
      constexpr unsigned kBinary = 0x80;
      const auto resolution = std::to_integer<unsigned>(options[kHeader]);
      const unsigned exponent = resolution & ~kBinary;
      const bool binary = (resolution & kBinary) != 0;
      if (exponent > (binary ? 63U : 19U))
        fail(offset, fmt::format("the time resolution {} is out of range", resolution));
      to.units_per_second = 1;
      for (unsigned i = 0; i < exponent; ++i) to.units_per_second *= binary ? 2 : 10;
    } else if (code == kTimeOffset && bytes == 8) {
      std::memcpy(&to.offset_seconds, options.data() + kHeader, sizeof to.offset_seconds);
      if (swapped_) to.offset_seconds = __builtin_bswap64(to.offset_seconds);
    }
    options = options.subspan(padded);
    offset += padded;
  }
}

const CaptureReader::Interface& CaptureReader::interface_of(const Block& block, std::uint32_t number) const {
  if (number >= interfaces_.size()) {
    fail(block.offset + 8,
         fmt::format("the packet is from interface {}, but the section has {} interfaces", number, interfaces_.size()));
  }
  return interfaces_[number];
}

CaptureRecord CaptureReader::read_packet(const Block& block, std::span<const std::byte> bytes) {
  const std::uint32_t number = block.type == kOldPacket ? load16(bytes, 8) : load32(bytes, 8);
  const Interface& from = interface_of(block, number);
  const std::uint32_t captured = load32(bytes, 20);
  if (captured > std::min(kCapturedMost, block.bytes - kPacketLeast)) {
    fail(block.offset + 20, fmt::format("a packet cannot have {} bytes in a block of {} bytes", captured, block.bytes));
  }
  last_ns_ = to_ns(from, std::uint64_t{load32(bytes, 12)} << 32 | load32(bytes, 16));
  return {.time_ns = last_ns_,
          .link_type = from.link_type,
          .original_bytes = load32(bytes, 24),
          .bytes = bytes.subspan(kPacketFields, captured),
          .offset = block.offset};
}

/// A simple packet block has no time: its packet gets the time of the previous one.
CaptureRecord CaptureReader::read_simple(const Block& block, std::span<const std::byte> bytes) const {
  const Interface& from = interface_of(block, 0);
  const std::uint32_t original = load32(bytes, 8);
  std::uint32_t captured = std::min(original, block.bytes - kSimpleLeast);
  if (from.snap_bytes != 0) captured = std::min(captured, from.snap_bytes);
  if (captured > kCapturedMost)
    fail(block.offset + 8, fmt::format("a packet of {} bytes is larger than any capture contains", captured));
  return {.time_ns = last_ns_,
          .link_type = from.link_type,
          .original_bytes = original,
          .bytes = bytes.subspan(kSimpleFields, captured),
          .offset = block.offset};
}

}  // namespace headrace::ingest
