#include "ingest/http_chunks.hpp"

#include <charconv>

namespace headrace::ingest {

namespace {

constexpr std::size_t kSizeDigitsMax = 4;
constexpr std::string_view kLineEnd = "\r\n";

}  // namespace

HttpChunks find_http_chunks(std::string_view text, std::uint64_t offset) {
  HttpChunks found;
  while (true) {
    const std::string_view rest = text.substr(found.bytes);
    std::size_t size = 0;
    const std::string_view digits = rest.substr(0, kSizeDigitsMax);
    const auto head = std::from_chars(digits.data(), digits.data() + digits.size(), size, 16);
    if (head.ec != std::errc() || size == 0) return found;
    const std::size_t begin = static_cast<std::size_t>(head.ptr - digits.data()) + kLineEnd.size();
    if (!rest.substr(begin - kLineEnd.size()).starts_with(kLineEnd)) return found;
    if (rest.size() < begin + size || !rest.substr(begin + size).starts_with(kLineEnd)) return found;
    found.begins.push_back(offset + found.bytes + begin);
    found.ends.push_back(offset + found.bytes + begin + size);
    found.bytes += begin + size + kLineEnd.size();
  }
}

}  // namespace headrace::ingest
