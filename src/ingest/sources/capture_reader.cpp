#include "ingest/sources/capture_reader.hpp"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "headrace/base/error.hpp"

namespace headrace::ingest {

namespace {

constexpr std::uint32_t kMicroseconds = 0xA1B2C3D4;
constexpr std::uint32_t kNanoseconds = 0xA1B23C4D;
constexpr std::uint32_t kModified = 0xA1B2CD34;
constexpr std::size_t kFileHeader = 24;
constexpr std::size_t kRecordHeader = 16;
constexpr std::uint32_t kLinkTypeMask = 0xFFFF;  ///< The bits above it give the length of frame check sequences.

[[nodiscard]] std::uint32_t native32(std::span<const std::byte> bytes, std::size_t at) {
  std::uint32_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

}  // namespace

CaptureReader::CaptureReader(CaptureInput input, std::string name) : input_(std::move(input)), name_(std::move(name)) {
  read_file_header();
}

void CaptureReader::fail(std::uint64_t offset, const std::string& what) const {
  throw DataError(fmt::format("{}: byte {}: {}", name_, offset, what));
}

std::uint64_t CaptureReader::to_ns(const Interface& from, std::uint64_t units) noexcept {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  const std::uint64_t seconds = units / from.units_per_second + from.offset_seconds;
  const unsigned __int128 rest = units % from.units_per_second;
  return seconds * kSecond + static_cast<std::uint64_t>(rest * kSecond / from.units_per_second);
}

std::uint32_t CaptureReader::load32(std::span<const std::byte> bytes, std::size_t at) const {
  const std::uint32_t value = native32(bytes, at);
  return swapped_ ? __builtin_bswap32(value) : value;
}

std::uint16_t CaptureReader::load16(std::span<const std::byte> bytes, std::size_t at) const {
  std::uint16_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return swapped_ ? __builtin_bswap16(value) : value;
}

std::span<const std::byte> CaptureReader::need(std::size_t bytes, std::uint64_t offset, const char* what) {
  const auto got = input_.peek(bytes);
  if (got.size() < bytes) {
    fail(offset, fmt::format("the file ends inside {}: {} of {} bytes are present", what, got.size(), bytes));
  }
  return got;
}

void CaptureReader::read_file_header() {
  const auto start = input_.peek(kFileHeader);
  if (start.size() < 4) fail(0, fmt::format("the file is neither pcap nor pcapng: it has only {} bytes", start.size()));
  const std::uint32_t magic = native32(start, 0);
  if (magic == kCaptureSection) {
    ng_ = true;
    read_to_interface();
    return;
  }
  swapped_ = magic != kMicroseconds && magic != kNanoseconds && magic != kModified;
  const std::uint32_t kind = load32(start, 0);
  if (kind == kModified) fail(0, "the file is in Kuznetzov's variant of pcap, which is not supported");
  if (kind != kMicroseconds && kind != kNanoseconds) {
    fail(0, fmt::format("the file is neither pcap nor pcapng: it starts with {:02x} {:02x} {:02x} {:02x}",
                        std::to_integer<unsigned>(start[0]), std::to_integer<unsigned>(start[1]),
                        std::to_integer<unsigned>(start[2]), std::to_integer<unsigned>(start[3])));
  }
  const auto header = need(kFileHeader, 0, "the file header");
  if (load16(header, 4) != 2)
    fail(4, fmt::format("pcap version {} is not supported, only version 2", load16(header, 4)));
  first_link_type_ = load32(header, 20) & kLinkTypeMask;
  interfaces_.push_back(
      {.link_type = *first_link_type_, .units_per_second = kind == kNanoseconds ? 1'000'000'000U : 1'000'000U});
  input_.skip(kFileHeader);
}

std::optional<CaptureRecord> CaptureReader::next() {
  input_.skip(std::exchange(taken_, 0));
  return ng_ ? next_ng() : next_classic();
}

std::optional<CaptureRecord> CaptureReader::next_classic() {
  const std::uint64_t offset = input_.offset();
  if (input_.peek(1).empty()) return std::nullopt;
  const auto header = need(kRecordHeader, offset, "a packet header");
  const std::uint32_t bytes = load32(header, 8);
  if (bytes > kCapturedMost) {
    fail(offset + 8, fmt::format("a packet of {} bytes is larger than any capture contains; the limit is {}", bytes,
                                 kCapturedMost));
  }
  CaptureRecord record;
  const std::uint64_t units = load32(header, 4);
  record.time_ns = load32(header, 0) * std::uint64_t{1'000'000'000} + to_ns(interfaces_[0], units);
  record.original_bytes = load32(header, 12);
  record.link_type = interfaces_[0].link_type;
  record.offset = offset;
  record.bytes = need(kRecordHeader + bytes, offset, "a packet").subspan(kRecordHeader);
  taken_ = kRecordHeader + bytes;
  return record;
}

}  // namespace headrace::ingest
