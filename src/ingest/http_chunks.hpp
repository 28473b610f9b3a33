#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

/// HTTP bodies in chunked transfer coding (RFC 9112, section 7.1).
namespace headrace::ingest {

struct HttpChunks {
  std::size_t bytes = 0;              ///< Bytes of all chunks, with their heads and line ends.
  std::vector<std::uint64_t> begins;  ///< Where the data of each chunk begins.
  std::vector<std::uint64_t> ends;    ///< Where the data of each chunk ends.
};

/// The chunks that `text` begins with, up to the first that is incomplete, is empty, or has a head other than 1 to 4
/// hexadecimal digits: the caller reads that one byte by byte, so that it can report what is wrong.
/// @param offset  the offset of `text` in its stream; it is added to the places
[[nodiscard]] HttpChunks find_http_chunks(std::string_view text, std::uint64_t offset);

}  // namespace headrace::ingest
