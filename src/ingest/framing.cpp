#include "headrace/ingest/detail/framing.hpp"

#include "ingest/require.hpp"

namespace headrace::ingest {

void check(const LengthPrefix& prefix) {
  constexpr std::string_view kWhat = "length prefix";
  constexpr std::uint64_t kBodyMax = std::uint64_t{1} << 62;
  require(prefix.width >= 1 && prefix.width <= 8, kWhat, "width", prefix.width, "1 to 8");
  require(prefix.offset < LengthPrefix::kHeaderMax, kWhat, "offset", prefix.offset, "at most 63");
  require(prefix.header_bytes >= prefix.offset + prefix.width && prefix.header_bytes <= LengthPrefix::kHeaderMax, kWhat,
          "header_bytes", prefix.header_bytes, "offset + width to 64");
  require(prefix.body_max <= kBodyMax, kWhat, "body_max", prefix.body_max, "at most 2^62");
}

}  // namespace headrace::ingest
