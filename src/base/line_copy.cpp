#include "headrace/base/detail/line_copy.hpp"

#include <cstring>

namespace headrace {

void copy_lines(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  using Line = long long __attribute__((vector_size(kLineBytes)));
  const std::size_t lines = bytes / kLineBytes * kLineBytes;
  for (std::size_t at = 0; at < lines; at += kLineBytes) {
    Line line;
    std::memcpy(&line, from + at, kLineBytes);
    std::memcpy(to + at, &line, kLineBytes);
  }
  std::memcpy(to + lines, from + lines, bytes - lines);
}

}  // namespace headrace
