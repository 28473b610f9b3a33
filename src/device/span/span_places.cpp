#include "device/span/span_places.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <new>
#include <shared_mutex>

#include "headrace/base/detail/process.hpp"

namespace headrace::detail {

namespace {

struct Pages {
  const std::vector<Place>* places;
  std::size_t page_bytes;
};

struct Spans {
  std::shared_mutex mutex;
  std::map<std::uintptr_t, Pages> pages;  ///< Spans by the address of their first page.
  /// A stale count is fine: a span that is made or destroyed during a copy is not part of that copy.
  std::atomic<std::size_t> count{0};
};

/// Never destroyed, because spans may outlive static objects.
Spans& spans() {
  static Spans& all = make_process_wide<Spans>();
  return all;
}

std::uintptr_t address_of(const void* data) noexcept { return reinterpret_cast<std::uintptr_t>(data); }

/// Calls `use(copies)` with the pieces of the copies, each in one place on either side.
template <class Use>
Status in_places(std::span<const Copy> copies, Use use) noexcept {
  const auto whole = [](const Copy& copy) {
    return is_in_one_place(copy.to, copy.bytes) && is_in_one_place(copy.from, copy.bytes);
  };
  const bool has_spans = spans().count.load(std::memory_order_relaxed) != 0;
  if (!has_spans || std::ranges::all_of(copies, whole)) return use(copies);
  std::vector<Copy> pieces;
  try {
    for (const Copy& copy : copies) {
      static_cast<void>(for_each_place(copy, [&](const Copy& piece) -> Status {
        pieces.push_back(piece);
        return {};
      }));
    }
  } catch (const std::bad_alloc&) {
    return Errc::out_of_memory;
  }
  return use(pieces);
}

}  // namespace

KnownSpan::KnownSpan(const std::byte* begin, const std::vector<Place>& places, std::size_t page_bytes) : begin_(begin) {
  Spans& all = spans();
  const std::unique_lock lock(all.mutex);
  all.pages.emplace(address_of(begin), Pages{&places, page_bytes});
  all.count.store(all.pages.size(), std::memory_order_relaxed);
}

KnownSpan::~KnownSpan() {
  Spans& all = spans();
  const std::unique_lock lock(all.mutex);
  all.pages.erase(address_of(begin_));
  all.count.store(all.pages.size(), std::memory_order_relaxed);
}

std::size_t bytes_to_border(const void* data, std::size_t bytes) noexcept {
  const std::uintptr_t address = address_of(data);
  Spans& all = spans();
  if (all.count.load(std::memory_order_relaxed) == 0) return bytes;
  const std::shared_lock lock(all.mutex);
  const auto behind = all.pages.upper_bound(address);
  if (behind == all.pages.begin()) return bytes;
  const std::uintptr_t begin = std::prev(behind)->first;
  const auto [places, page_bytes] = std::prev(behind)->second;
  const std::size_t first = (address - begin) / page_bytes;
  if (first >= places->size()) return bytes;
  const std::size_t end = std::min(places->size(), (address - begin + bytes - 1) / page_bytes + 1);
  std::size_t next = first + 1;
  while (next < end && (*places)[next] == (*places)[first]) ++next;
  return next == end ? bytes : begin + next * page_bytes - address;
}

Status copy_many_in_places(StreamBackend& stream, std::span<const Copy> copies, CopyRoute route,
                           PageableSink sink) noexcept {
  return in_places(copies, [&](std::span<const Copy> pieces) { return stream.copy_many(pieces, route, sink); });
}

Status copy_and_wait_in_places(StreamBackend& stream, std::span<const Copy> copies, PageableSink sink) noexcept {
  return in_places(copies, [&](std::span<const Copy> pieces) { return stream.copy_and_wait(pieces, sink); });
}

}  // namespace headrace::detail
