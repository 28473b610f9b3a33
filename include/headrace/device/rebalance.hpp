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

/// Computes where the pages of a span should lie so that the hottest, at most `budget_bytes`, are on `device`, without
/// pointless moves: a host page and a device page swap only if the host page was used more often by more than chance
/// explains (two standard deviations of the difference of two counts). Free room goes to the hottest host pages that
/// were used at all; pages over the budget leave, coldest first. Pages on other devices stay. Every page has
/// `page_bytes` bytes. Throws UsageError unless there is a count for each page.
[[nodiscard]] std::vector<Place> rebalanced(const std::vector<Place>& places, Device device, std::size_t budget_bytes,
                                            const std::vector<std::uint64_t>& heat,
                                            std::size_t page_bytes = kPageBytes);

/// Moves the pages of `span` to where rebalanced() puts them for its device and the counts so far, and returns how many
/// pages moved. Waits for the work enqueued on `stream` before; no other stream may use the span meanwhile. Throws as
/// Span::move() and PageHeat::read() do.
std::size_t rebalance(Span& span, StreamRef stream, const PageHeat& heat, std::size_t budget_bytes);

/// A function that fills a new span and enqueues, once on the stream, the kernel whose accesses are counted.
using Sample = std::function<Status(StreamRef stream, Span& span, PageCounter counter)>;

/// Makes a span for data whose use is not known: it deals pages evenly, runs `sample`, and moves the hottest pages to
/// the device of the stream, within profile.budget_bytes. The span holds what `sample` wrote. Throws as Span, PageHeat
/// and rebalance() do, and the error that `sample` returns.
[[nodiscard]] Span sampled_span(StreamRef stream, const AccessProfile& profile, const Sample& sample,
                                const SpanOptions& options = {});

}  // namespace headrace
