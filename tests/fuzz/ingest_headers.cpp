#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include "headrace/ingest/detail/framing.hpp"
#include "ingest/parse.hpp"
#include "ingest/tcp/reply.hpp"

namespace {

using namespace headrace::ingest;

void require(bool right) {
  if (!right) __builtin_trap();
}

void parse(const std::byte* bytes, std::uint32_t length) {
  for (const Layer layer : {Layer::ethernet, Layer::ip}) {
    for (const bool verified : {false, true}) {
      for (const std::uint16_t segment_bytes : {std::uint16_t{0}, std::uint16_t{1448}}) {
        Headers headers;
        const Packet packet{.length = length, .segment_bytes = segment_bytes, .checksum_verified = verified};
        if (parse_headers(bytes, packet, layer, headers) != ParseResult::ok) continue;
        require(headers.payload_offset <= length && headers.payload_length <= length - headers.payload_offset);
        require(headers.link_length <= sizeof(LinkHeader::bytes) && headers.options.window_scale <= 14);
      }
    }
  }
}

/// Messages follow each other without a gap, whatever the bytes. Cutting in parts gives the same messages as in one
/// piece.
void cut(const std::byte* bytes, std::uint64_t length) {
  const LengthPrefix prefix{.offset = 1, .width = 2, .header_bytes = 4, .counts_header = true, .body_max = 1000};
  MessageFraming whole(prefix);
  MessageFraming parts(prefix);
  Message one;
  Message other;
  std::uint64_t end = 0;
  std::uint64_t at = 0;
  while (whole.next(bytes, 0, length, one)) {
    require(one.begin == end && one.body == one.begin + 4 && one.body_bytes <= 1000);
    end = one.body + one.body_bytes;
    while (!parts.next(bytes + at, at, 1, other)) require(++at < length);
    require(other.begin == one.begin && other.body_bytes == one.body_bytes);
  }
}

}  // namespace

/// For any bytes, the parser either finds headers that lie within them or refuses them.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::unique_ptr<std::byte[]> exact(new std::byte[size]);  // a sanitizer sees a read past the end
  if (size != 0) std::memcpy(exact.get(), data, size);
  parse(exact.get(), static_cast<std::uint32_t>(size));
  cut(exact.get(), size);
  return 0;
}
