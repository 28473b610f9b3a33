#include "device/span/span_pages.hpp"

#include <fmt/format.h>

#include "headrace/base/detail/bytes.hpp"

namespace headrace::detail {

OwnedPage::~OwnedPage() {
  if (memory_ == nullptr) return;
  if (own_address_ != nullptr) {
    static_cast<void>(memory_->unmap(own_address_, page_.bytes));
    memory_->release(own_address_, page_.bytes);
  }
  memory_->destroy(page_);
}

Result<std::byte*> OwnedPage::writable_by(Device device) noexcept {
  if (own_address_ == nullptr) {
    const auto reserved = memory_->reserve(page_.bytes);
    if (!reserved) return reserved;
    if (const Status mapped = memory_->map(*reserved, page_); !mapped) {
      memory_->release(*reserved, page_.bytes);
      return mapped.error();
    }
    own_address_ = *reserved;
  }
  if (writer_ != device) {
    if (const Status set = memory_->set_access(own_address_, page_.bytes, device, Right::read_write); !set) {
      return set.error();
    }
    writer_ = device;
  }
  return own_address_;
}

AddressRange::AddressRange(PageMemory& memory, std::size_t page_count, std::size_t page_bytes)
    : memory_(memory), page_bytes_(page_bytes), mapped_(page_count) {
  data_ = memory.reserve(page_count * page_bytes)
              .or_throw(fmt::format("reserving {} of address space", format_bytes(page_count * page_bytes)));
}

AddressRange::~AddressRange() {
  // A destructor cannot report a failure, and releasing the range ends all remaining mappings.
  static_cast<void>(unmap({0, mapped_.size()}));
  memory_.release(data_, mapped_.size() * page_bytes_);
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
  const Status status = memory_.unmap(at(run.first), run.count * page_bytes_);
  if (status) std::fill_n(mapped_.begin() + static_cast<std::ptrdiff_t>(run.first), run.count, false);
  return status;
}

}  // namespace headrace::detail
