#include "device/span_pages.hpp"

#include <fmt/format.h>

#include "headrace/base/bytes.hpp"

namespace headrace::detail {

AddressRange::AddressRange(PageMemory& memory, std::size_t page_count) : memory_(memory), mapped_(page_count) {
  data_ = memory.reserve(page_count * kPageBytes)
              .or_throw(fmt::format("reserving {} of addresses", format_bytes(page_count * kPageBytes)));
}

AddressRange::~AddressRange() {
  // Nobody can be told of a failure here, and releasing the range ends what mappings there still are.
  static_cast<void>(unmap({0, mapped_.size()}));
  memory_.release(data_, mapped_.size() * kPageBytes);
}

Status AddressRange::map(std::size_t page, Page physical) noexcept {
  const Status status = memory_.map(at(page), physical);
  if (status) mapped_[page] = true;
  return status;
}

Status AddressRange::unmap(PageRange pages) noexcept {
  return for_each_run(
      pages, [&](std::size_t page) -> bool { return mapped_[page]; },
      [&](PageRange run) -> Status {
        if (!mapped_[run.first]) return {};
        const Status status = unmap_run(run);
        if (status || status.error().code != Errc::invalid_argument || run.count == 1) return status;
        for (std::size_t page = run.first; page < run.first + run.count; ++page) {
          if (const Status one = unmap_run({page, 1}); !one) return one;
        }
        return {};
      });
}

Status AddressRange::unmap_run(PageRange run) noexcept {
  const Status status = memory_.unmap(at(run.first), run.count);
  if (status) std::fill_n(mapped_.begin() + static_cast<std::ptrdiff_t>(run.first), run.count, false);
  return status;
}

}  // namespace headrace::detail
