#include "span_handle.hpp"
#include "gil.hpp"

#include <fmt/format.h>

#include "headrace/base/error.hpp"

namespace headrace::python {

namespace {

/// Whether all rights include writing. Throws UsageError if one does not even include reading.
template <class RightOf>
bool require_readable(const Span& span, const std::string& who, RightOf right_of) {
  if (span.data() == nullptr) throw UsageError("the span was released");
  bool writable = true;
  for (std::size_t page = 0; page < span.page_count(); ++page) {
    const Right right = right_of(page);
    writable = writable && right == Right::read_write;
    if (right != Right::none) continue;
    throw UsageError(
        fmt::format("{} cannot read page {} of the span, which lies on {}", who, page, span.place(page).name()));
  }
  return writable;
}

}  // namespace

Place to_place(const PlaceOrName& place) {
  if (const auto* name = std::get_if<std::string>(&place)) return Place::parse(*name);
  if (const auto* device = std::get_if<Device>(&place)) return Place::on(*device);
  return std::get<Place>(place);
}

Stream& SpanHandle::stream() {
  if (!stream_) stream_.emplace(span_.device());
  return *stream_;
}

void SpanHandle::require_no_view_lost() const {
  if (host_views_ == 0 || span_.data() == nullptr || span_.device().properties().host_memory) return;
  throw UsageError(fmt::format(
      "{} host arrays use the span, and pages that move could leave the host's reach; delete them first", host_views_));
}

void SpanHandle::allow_host(Right right, std::optional<PageRange> pages) {
  if (host_views_ > 0 && right != Right::read_write) {
    throw UsageError(fmt::format("{} host arrays use the span; delete them first", host_views_));
  }
  span_.allow_host(right, pages);
}

void SpanHandle::move(const Placement& placement) {
  require_no_view_lost();
  Stream& mover = stream();
  const GilRelease released;
  span_.move(mover, placement);
}

void SpanHandle::move(PageRange pages, Place to) {
  require_no_view_lost();
  Stream& mover = stream();
  const GilRelease released;
  span_.move(mover, pages, to);
}

void SpanHandle::release() {
  if (const int views = host_views_ + device_views_; views > 0) {
    throw UsageError(fmt::format("{} arrays or operators use the span; delete them first", views));
  }
  span_.release();
}

bool SpanHandle::require_host_readable() const {
  return require_readable(span_, "the host", [&](std::size_t page) { return span_.host_right(page); });
}

bool SpanHandle::require_device_readable() const {
  if (span_.data() == nullptr) throw UsageError("the span was released");
  const Device device = span_.device();
  return require_readable(span_, device.name(), [&](std::size_t page) { return span_.right(device, page); });
}

}  // namespace headrace::python
