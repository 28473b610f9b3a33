#include "operators/lookup/span_lookup.hpp"

#include <fmt/format.h>

#include <utility>

#include "headrace/base/error.hpp"
#include "headrace/device/buffer.hpp"
#include "headrace/device/stream.hpp"
#include "operators/lookup/lookup_checks.hpp"

namespace headrace::operators {

namespace {

LookupState sound_state(const Span* rows, std::uint64_t row_count, std::uint32_t column_count,
                        const LookupOptions& options) {
  const LookupState state = sound_lookup(row_count, column_count, options);
  if (rows == nullptr || rows->data() == nullptr) throw UsageError("lookup: there is no span, or it was released");
  if (options.device_bytes || !options.counts.empty()) {
    throw UsageError("lookup: the rows of a span are already placed; leave out the bytes on the device and the counts");
  }
  if (column_count % kUnit != 0) {
    throw UsageError(
        fmt::format("lookup: rows of a span must have a multiple of {} columns, not {}", kUnit, column_count));
  }
  const std::size_t needed = row_count * lookup_row_bytes(state);
  if (rows->bytes() < needed) {
    throw UsageError(fmt::format("lookup: {} rows of {} columns as {} take {} bytes, but the span has {}", row_count,
                                 column_count, to_string(options.element), needed, rows->bytes()));
  }
  return state;
}

void require_readable(const Span& span, Device device) {
  for (std::size_t page = 0; page < span.page_count(); ++page) {
    if (span.right(device, page) != Right::none) continue;
    throw UsageError(fmt::format("lookup: {} cannot read page {} of the span, which lies on {}", device.name(), page,
                                 span.place(page).name()));
  }
}

}  // namespace

SpanLookup::SpanLookup(std::shared_ptr<const Span> rows, std::uint64_t row_count, std::uint32_t column_count,
                       const LookupOptions& options)
    : state_(sound_state(rows.get(), row_count, column_count, options)), rows_(std::move(rows)) {}

serve::LoadedState SpanLookup::load(std::shared_ptr<const SpanLookup> self, Device device) const {
  if (rows_->data() == nullptr) throw UsageError("lookup: the span was released");
  if (device.properties().host_memory && !rows_->device().properties().host_memory) {
    return copy_to_host(std::move(self), device);
  }
  require_readable(*rows_, device);
  LookupState state = state_;
  state.rows = rows_->data();
  return serve::make_state(state, std::move(self));
}

serve::LoadedState SpanLookup::copy_to_host(std::shared_ptr<const SpanLookup> self, Device device) const {
  const std::size_t bytes = state_.row_count * lookup_row_bytes(state_);
  auto copy = std::make_shared<Buffer>(device, MemoryKind::pageable, bytes);
  Stream stream(self->rows_->device());
  constexpr const char* kCopying = "copying the rows of lookup from their span to the host";
  stream.copy(copy->data(), rows_->data(), bytes).or_throw(kCopying);
  stream.wait().or_throw(kCopying);
  LookupState state = state_;
  state.rows = copy->data();
  return serve::make_state(state, std::move(copy));
}

}  // namespace headrace::operators
