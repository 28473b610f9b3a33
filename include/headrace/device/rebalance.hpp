#pragma once

// rebalance() moves the pages of a Span that kernels use most to the device, by counts of their accesses.
//
//     headrace::Stream stream(headrace::Device::parse("best"));
//     headrace::Span span(stream.device(), 64 << 20, headrace::Placement::all(headrace::Place::host()));
//     headrace::PageHeat heat(stream, span.data(), span.page_count());
//     headrace::PageCounter counter = heat.counter();  // launch kernels that call counter.touch(group, address), then:
//     std::size_t moved = headrace::rebalance(span, stream, heat, 32 << 20);

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "headrace/device/advice.hpp"
#include "headrace/device/detail/page_heat.hpp"
#include "headrace/device/span.hpp"

namespace headrace {

/// Where the pages of a span should lie so that at most `budget_bytes` of them are on `device`, the hottest, with no
/// move that brings nothing: pages change places only where one on the host was used more often than one on the device
/// by more than chance explains (two standard deviations of the difference of two counts). Room that is left goes to
/// the hottest host pages that were used at all; what is over the budget leaves coldest first. Pages on other devices
/// stay. Pages are of `page_bytes`. Throws UsageError unless there is a count for each page.
[[nodiscard]] std::vector<Place> rebalanced(const std::vector<Place>& places, Device device, std::size_t budget_bytes,
                                            const std::vector<std::uint64_t>& heat,
                                            std::size_t page_bytes = kPageBytes);

/// Moves the pages of `span` to where rebalanced() says for its device and the counts so far, and returns how many have
/// moved. Waits for the work enqueued on `stream` before; no other stream may use the span meanwhile. Throws as
/// Span::move() and PageHeat::read() do.
std::size_t rebalance(Span& span, StreamRef stream, const PageHeat& heat, std::size_t budget_bytes);

/// Fills a new span and enqueues the kernel whose accesses are to be counted, once, on the stream.
using Sample = std::function<Status(StreamRef stream, Span& span, PageCounter counter)>;

/// A span for data whose use is not known: pages are dealt evenly at first, `sample` runs, and the hottest pages are
/// moved to the device of the stream within profile.budget_bytes. The span holds what `sample` has put there. Throws as
/// Span, PageHeat and rebalance() do, and what `sample` returns.
[[nodiscard]] Span sampled_span(StreamRef stream, const AccessProfile& profile, const Sample& sample,
                                const SpanOptions& options = {});

}  // namespace headrace
