#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "operators/retrieval/index_format.hpp"

/// Index files that take less room, of version 5. They are unpacked to the bytes of a file of version 3 or 4, the
/// image, which are then read as any other file:
///   PackedHeader
///   IndexHeader     the image's
///   terms           for each: how many bytes it shares with the term before, how many follow, and these
///   counts          for each term: its postings
///   postings        for each list: the first id, then how many ids lie between each and the next
///   lengths         for each document
///   frequencies     for each posting: one less
///   checksum        the image's
/// Numbers are variable bytes: seven bits in each, the least first, and the eighth says that more follow. Each number
/// has its shortest form. The last two of the parts are there where the image has them.
namespace headrace::operators {

struct PackedHeader {
  std::array<char, 8> magic;   ///< IndexHeader::kMagic.
  std::uint32_t version;       ///< kPackedVersion.
  std::uint32_t header_bytes;  ///< This header's bytes and those of the image's.
  std::uint64_t file_bytes;
};
static_assert(sizeof(PackedHeader) == 24);

inline constexpr std::uint32_t kPackedVersion = 5;

/// Whether a file claims to be packed.
[[nodiscard]] bool is_packed(std::span<const std::byte> bytes) noexcept;

/// The packed file of an image that read_index() has accepted.
[[nodiscard]] std::vector<std::byte> pack_index(std::span<const std::byte> image, const IndexSections& sections);

/// The image of a packed file, which is still to be checked by read_index(). Its size is less than 50 times that of the
/// file, whatever the file claims. Throws DataError "<name>: <what is wrong>".
[[nodiscard]] std::vector<std::uint64_t> unpack_index(std::span<const std::byte> bytes, std::string_view name);

}  // namespace headrace::operators
