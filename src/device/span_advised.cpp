#include "headrace/device/advice.hpp"
#include "headrace/device/span.hpp"

namespace headrace {

Span Span::advised(Device device, const AccessProfile& profile, const MemoryRates& rates, const SpanOptions& options) {
  return Span(device, profile.bytes, advise(device, profile, rates).placement, options);
}

Span Span::advised(Device device, const AccessProfile& profile, const SpanOptions& options) {
  return advised(device, profile, memory_rates_of(device), options);
}

}  // namespace headrace
