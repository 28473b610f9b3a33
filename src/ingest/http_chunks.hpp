#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

/// Bodies of HTTP that come in chunks (RFC 9112, section 7.1).
namespace headrace::ingest {

struct HttpChunks {
  std::size_t bytes = 0;              ///< What they take, their heads and ends included.
  std::vector<std::uint64_t> begins;  ///< Where the data of each begins.
  std::vector<std::uint64_t> ends;    ///< Where it ends.
};

/// The chunks that `text` begins with, up to the first that has not come to its last byte, is empty, or has a head of
/// anything but 1 to 4 hexadecimal digits: that one is read byte by byte, so that what is wrong with it can be said.
/// @param offset  the offset of `text` in its stream, from which the places count
[[nodiscard]] HttpChunks find_http_chunks(std::string_view text, std::uint64_t offset);

}  // namespace headrace::ingest
