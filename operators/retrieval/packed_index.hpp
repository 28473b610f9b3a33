#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "operators/retrieval/index_format.hpp"

/// Packed index files, of version 5, are smaller. They are unpacked to the bytes of a file of version 3 or 4, the
/// image, which is then read like any other file:
///   PackedHeader
///   IndexHeader     that of the image
///   terms           for each term: the number of bytes it shares with the previous one, that of its others, and these
///   counts          for each term: its number of postings
///   postings        for each list: the first id, then the number of ids between each and the next
///   lengths         for each document
///   frequencies     for each posting: one less
///   checksum        that of the image
/// Numbers have variable length: seven bits in each byte, the least significant first, and the eighth bit says that
/// more follow. Each number has its shortest form. Lengths and frequencies exist only if the image has them.
namespace headrace::operators {

struct PackedHeader {
  std::array<char, 8> magic;   ///< IndexHeader::kMagic.
  std::uint32_t version;       ///< kPackedVersion.
  std::uint32_t header_bytes;  ///< Size of this header and that of the image.
  std::uint64_t file_bytes;
};
static_assert(sizeof(PackedHeader) == 24);

inline constexpr std::uint32_t kPackedVersion = 5;

/// Whether the header of a file says that it is packed.
[[nodiscard]] bool is_packed(std::span<const std::byte> bytes) noexcept;

/// The packed file of an image that read_index() has accepted.
[[nodiscard]] std::vector<std::byte> pack_index(std::span<const std::byte> image, const IndexSections& sections);

/// Unpacks the image of a file; read_index() must still check it. Its size is less than 50 times that of the file,
/// whatever the file claims. Throws DataError "<name>: <what is wrong>".
[[nodiscard]] std::vector<std::uint64_t> unpack_index(std::span<const std::byte> bytes, std::string_view name);

}  // namespace headrace::operators
