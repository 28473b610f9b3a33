#include "headrace/device/detail/page_heat.hpp"

#include <bit>
#include <limits>

#include "headrace/base/error.hpp"

namespace headrace {

namespace {

std::size_t counter_bytes(std::size_t page_count, std::size_t page_bytes) {
  if (page_count == 0) throw UsageError("page heat: there must be at least one page to count");
  if (page_bytes == 0 || !std::has_single_bit(page_bytes))
    throw UsageError("page heat: the page size must be a power of two");
  if (page_count > std::numeric_limits<std::size_t>::max() / page_bytes) {
    throw UsageError("page heat: the pages exceed the address space");
  }
  return page_count * sizeof(std::uint32_t);
}

}  // namespace

PageHeat::PageHeat(StreamRef stream, const std::byte* base, std::size_t page_count, std::size_t page_bytes)
    : base_(base),
      page_count_(page_count),
      page_bytes_(page_bytes),
      counts_(stream, MemoryKind::stream_ordered, counter_bytes(page_count, page_bytes)) {
  clear(stream).or_throw("clearing the page counts");
}

PageCounter PageHeat::counter() const noexcept {
  return {.base = base_,
          .counts = counts_.as<std::uint32_t>(),
          .page_bits = static_cast<std::uint32_t>(std::countr_zero(page_bytes_))};
}

std::vector<std::uint64_t> PageHeat::read(StreamRef stream) const {
  const Buffer host(stream.device(), MemoryKind::pinned, counts_.bytes());
  stream.copy(host.data(), counts_.data(), counts_.bytes()).or_throw("reading the page counts");
  stream.wait().or_throw("reading the page counts");
  const auto* counts = host.as<std::uint32_t>();
  return {counts, counts + page_count_};
}

Status PageHeat::clear(StreamRef stream) noexcept { return stream.fill(counts_.data(), 0, counts_.bytes()); }

}  // namespace headrace
