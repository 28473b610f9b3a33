#include <fmt/format.h>

#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/error.hpp"
#include "headrace/device/advice.hpp"
#include "headrace/device/span.hpp"

namespace headrace {

Span Span::advised(Device device, const AccessProfile& profile, const MemoryRates& rates, const SpanOptions& options) {
  if (options.page_bytes != kPageBytes) {
    throw UsageError(fmt::format("advice works only for pages of {}, not {}", format_bytes(kPageBytes),
                                 format_bytes(options.page_bytes)));
  }
  return Span(device, profile.bytes, advise(device, profile, rates).placement, options);
}

Span Span::advised(Device device, const AccessProfile& profile, const SpanOptions& options) {
  return advised(device, profile, memory_rates_of(device), options);
}

}  // namespace headrace
