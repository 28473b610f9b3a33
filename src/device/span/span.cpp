#include "headrace/device/span.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>

#include "device/backend.hpp"
#include "device/span/span_state.hpp"
#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/error.hpp"
#include "headrace/device/detail/host_memory.hpp"

namespace headrace {

namespace {

void require_page_size(std::size_t bytes) {
  if (std::has_single_bit(bytes) && bytes >= kPageBytes) return;
  throw UsageError(
      fmt::format("a page of a span must be a power of two of at least {} bytes, not {}", kPageBytes, bytes));
}

/// Also refuses sizes that no placement could hold, before a list of that many pages is made.
std::size_t pages_for(Device device, std::size_t bytes, std::size_t page_bytes) {
  if (bytes == 0) throw UsageError("a span needs at least one byte");
  require_page_size(page_bytes);
  std::size_t most = host_memory().total_bytes + device.memory().total_bytes;
  for (const Device other : Device::list()) {
    if (other.kind() == device.kind()) most += other.memory().total_bytes;
  }
  if (bytes > most) {
    throw DeviceError(Errc::out_of_memory,
                      fmt::format("a span of {} exceeds what all places hold: {} free on {}, {} free on the host",
                                  format_bytes(bytes), format_bytes(device.memory().free_bytes), device.name(),
                                  format_bytes(host_memory().free_bytes)));
  }
  return align_up(bytes, page_bytes) / page_bytes;
}

void require_descriptors(const SharedPages& shared) {
  if (shared.bytes == 0) throw UsageError("shared pages need at least one byte");
  require_page_size(shared.page_bytes);
  const std::size_t count = (shared.bytes - 1) / shared.page_bytes + 1;
  if (shared.descriptors.size() != count) {
    throw UsageError(fmt::format("{} of shared memory need {} pages, but there are {} descriptors",
                                 format_bytes(shared.bytes), count, shared.descriptors.size()));
  }
}

}  // namespace

Span::State::State(Device owner, std::size_t asked, const Placement& placement, const SpanOptions& options)
    : bytes(asked),
      shareable(options.shareable),
      imported(false),
      placed(owner, asked, placement.pages(pages_for(owner, asked, options.page_bytes), options.page_bytes), options),
      spares(std::max<std::size_t>(kSparePages * kPageBytes / options.page_bytes, 1)) {}

Span::State::State(const SharedPages& shared)
    : bytes(shared.bytes), shareable(false), imported(true), placed((require_descriptors(shared), shared)), spares(0) {}

void Span::State::check(std::size_t page) const {
  if (page < placed.places.size()) return;
  throw UsageError(fmt::format("there is no page {} in a span of {} pages", page, placed.places.size()));
}

PageRange Span::State::checked(std::optional<PageRange> pages) const {
  const std::size_t count = placed.places.size();
  if (!pages) return {0, count};
  if (pages->first <= count && pages->count <= count - pages->first) return *pages;
  throw UsageError(
      fmt::format("{} pages from page {} are not in a span of {} pages", pages->count, pages->first, count));
}

void Span::State::allow(detail::Accessor who, Right right, std::optional<PageRange> pages) {
  const PageRange range = checked(pages);
  if (who && who->kind() != placed.device.kind()) {
    throw UsageError(fmt::format("{} cannot reach a span of {}", who->name(), placed.device.name()));
  }
  for (std::size_t page = range.first; page < range.first + range.count; ++page) {
    if (right == Right::none || placed.memory().reaches(who, placed.places[page])) continue;
    throw UsageError(fmt::format("{} cannot reach page {}, which lies on {}", detail::name_of(who), page,
                                 placed.places[page].name()));
  }
  placed.rights.set(who, right, range, placed.range, placed.places)
      .or_throw(fmt::format("setting the rights of {} to {} pages from page {}", detail::name_of(who), range.count,
                            range.first));
}

Span::Span(Device device, std::size_t bytes, const Placement& placement, const SpanOptions& options)
    : state_(std::make_unique<State>(device, bytes, placement, options)) {}
Span::Span(const SharedPages& pages) : state_(std::make_unique<State>(pages)) {}
Span::Span(Span&&) noexcept = default;
Span& Span::operator=(Span&&) noexcept = default;
Span::~Span() = default;

const Span::State& Span::state() const {
  if (state_ == nullptr) throw UsageError("the span was released");
  return *state_;
}
Span::State& Span::state() {
  auto& its = const_cast<State&>(std::as_const(*this).state());
  its.birth.require("changing a span");
  return its;
}

Device Span::device() const { return state().placed.device; }
std::byte* Span::data() const noexcept { return state_ == nullptr ? nullptr : state_->placed.range.at(0); }
std::size_t Span::bytes() const noexcept { return state_ == nullptr ? 0 : state_->bytes; }
std::size_t Span::page_count() const noexcept { return state_ == nullptr ? 0 : state_->placed.places.size(); }
std::size_t Span::page_bytes() const noexcept { return state_ == nullptr ? 0 : state_->placed.page_bytes(); }

Place Span::place(std::size_t page) const {
  state().check(page);
  return state().placed.places[page];
}
const std::vector<Place>& Span::places() const { return state().placed.places; }

Right Span::right(Device device, std::size_t page) const {
  state().check(page);
  const auto& placed = state().placed;
  return device.kind() == placed.device.kind() && placed.memory().reaches(device, placed.places[page])
             ? placed.rights.kept(device, page)
             : Right::none;
}

Right Span::host_right(std::size_t page) const {
  state().check(page);
  const auto& placed = state().placed;
  return placed.memory().reaches({}, placed.places[page]) ? placed.rights.kept({}, page) : Right::none;
}

bool Span::host_readable() const {
  for (std::size_t page = 0; page < page_count(); ++page) {
    if (host_right(page) == Right::none) return false;
  }
  return state_ != nullptr;
}

void Span::allow(Device device, Right right, std::optional<PageRange> pages) { state().allow(device, right, pages); }
void Span::allow_host(Right right, std::optional<PageRange> pages) { state().allow({}, right, pages); }

void Span::move(StreamRef stream, PageRange pages, Place to) {
  const PageRange range = state().checked(pages);
  state().move(stream, range, std::vector<Place>(range.count, to));
}

void Span::move(StreamRef stream, const Placement& placement) {
  state().move(stream, {0, page_count()}, placement.pages(page_count(), page_bytes()));
}

void Span::keep_spare_pages(std::size_t count_per_place) { state().spares.keep(count_per_place); }

void Span::trim() noexcept {
  if (state_ != nullptr) state_->spares.clear();
}

Status Span::used_by(StreamRef stream) { return state().work.add(stream); }

void Span::release() {
  if (state_ == nullptr) return;
  if (!state_->birth.inherited() && !state_->work.done()) {
    throw UsageError("the span is in use: wait for the work on it, or destroy it, which waits");
  }
  state_.reset();
}

SpanStatistics Span::statistics() const {
  const State& it = state();
  return {.places = it.placed.uses(),
          .pages_moved = it.pages_moved,
          .bytes_moved = it.pages_moved * it.placed.page_bytes(),
          .spare_pages = it.spares.count()};
}

SharedPages Span::share() const {
  const State& it = state();
  const auto uses = it.placed.uses();
  const bool on_host = std::any_of(uses.begin(), uses.end(), [](const SpanUse& use) { return use.place.is_host(); });
  if (on_host) throw UsageError("host pages cannot be exported: move them to the device, or share a file");
  if (uses.size() != 1) throw UsageError("a span on several devices cannot be exported");
  if (!it.shareable) throw UsageError("the span was not made shareable (SpanOptions::shareable)");
  SharedPages shared{.bytes = it.bytes,
                     .device = *uses.front().place.device(),
                     .descriptors = {},
                     .page_bytes = it.placed.page_bytes()};
  shared.descriptors.reserve(it.placed.pages.size());
  for (const detail::OwnedPage& page : it.placed.pages) {
    const auto descriptor = it.placed.memory().export_page(page.page());
    if (!descriptor) {
      for (const int open : shared.descriptors) close(open);
      throw_error(fmt::format("exporting page {} of a span", shared.descriptors.size()), descriptor.error());
    }
    shared.descriptors.push_back(*descriptor);
  }
  return shared;
}

}  // namespace headrace
