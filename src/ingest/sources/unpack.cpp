#include "ingest/sources/unpack.hpp"

#include <algorithm>
#include <array>

namespace headrace::ingest {

namespace {

template <std::size_t Count>
[[nodiscard]] bool starts_with(std::span<const std::byte> bytes, const std::array<unsigned char, Count>& magic) {
  return bytes.size() >= Count && std::equal(magic.begin(), magic.end(), bytes.begin(),
                                             [](unsigned char a, std::byte b) { return std::byte{a} == b; });
}

}  // namespace

std::unique_ptr<Unpacker> make_unpacker(std::span<const std::byte> start, const std::string& name) {
  constexpr std::array<unsigned char, 2> kGzip{0x1F, 0x8B};
  constexpr std::array<unsigned char, 4> kZstd{0x28, 0xB5, 0x2F, 0xFD};
  if (starts_with(start, kGzip)) return make_gzip_unpacker(name);
  if (starts_with(start, kZstd)) return make_zstd_unpacker(name);
  return nullptr;
}

}  // namespace headrace::ingest
