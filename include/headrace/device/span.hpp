#pragma once

// A Span is one range of addresses whose pages lie on devices and on the host, as a Placement says. Kernels see one
// array; pages may be moved while it lives.
//
//     headrace::Device device = headrace::Device::parse("best");
//     headrace::Stream stream(device);
//     headrace::Span span(device, 64 << 20, headrace::Placement::budget(device, 48 << 20));
//     stream.fill(span.data(), 0, span.bytes()).or_throw("clearing the span");
//     span.move(stream, {.first = 0, .count = 4}, headrace::Place::host());  // after the fill
//     std::printf("page 0 is on %s\n", span.place(0).name().c_str());

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "headrace/base/result.hpp"
#include "headrace/device/device.hpp"
#include "headrace/device/placement.hpp"
#include "headrace/device/stream.hpp"

namespace headrace {

struct AccessProfile;
struct MemoryRates;

/// What a device, or the host, may do with a page. An access beyond it is an error of the device (a segmentation fault
/// on a CPU device) rather than silent traffic over a link.
enum class Right : std::uint8_t {
  none,        ///< Every access is an error.
  read,        ///< Reads only.
  read_write,  ///< Reads and writes.
};

/// How the pages of a Span are made and who may use them.
struct SpanOptions {
  /// Devices that may read and write all pages from the start, beside those on which pages lie and the span's own.
  std::vector<Device> accessed_by = {};
  /// Memory node of host pages; by default that nearest to the span's device.
  std::optional<int> numa_node = {};
  /// Makes device pages so that another process can map them; see Span::share().
  bool shareable = false;
  /// Bytes of each page: a power of two, kPageBytes at least. A page is what has a place and rights, and what moves;
  /// large ones are taken, mapped and moved with fewer calls of the driver a byte.
  std::size_t page_bytes = kPageBytes;
};

/// How many pages of kPageBytes a span keeps in each place for its next moves, unless Span::keep_spare_pages() says
/// otherwise: 256 MiB. Of larger ones as many as that is, and one at least.
inline constexpr std::size_t kSparePages = 128;

/// Pages and bytes in one place.
struct SpanUse {
  Place place;                 ///< Where they lie.
  std::size_t page_count = 0;  ///< Pages there.
  std::size_t bytes = 0;       ///< Bytes of those pages.
};

/// Where the pages of a Span lie, and what its moves have cost so far.
struct SpanStatistics {
  std::vector<SpanUse> places;    ///< In the order in which they first appear in the span.
  std::uint64_t pages_moved = 0;  ///< Pages that move() has moved.
  std::uint64_t bytes_moved = 0;  ///< Bytes of those pages.
  std::size_t spare_pages = 0;    ///< Pages kept from moves, for the next ones.
};

/// Device pages of a span of another process, as file descriptors; see Span::share().
struct SharedPages {
  std::size_t bytes = 0;                ///< Bytes of the span.
  Device device;                        ///< On which all of them lie.
  std::vector<int> descriptors;         ///< One a page; owned by whoever holds this.
  std::size_t page_bytes = kPageBytes;  ///< Bytes of each page.
};

/// One contiguous virtual range whose pages, of 2 MiB or more, lie on devices and on the host as a Placement says, and
/// may be moved while it lives (CUDA's virtual memory management; mapped memory files on a CPU device). Contents
/// undefined at first. Not safe to be changed by two threads at once. Once released or moved from, it has no pages, and
/// what needs some throws UsageError.
///
/// All devices of a span are of one kind. CPU devices and the host share one address space, so there the rights of a
/// page that count are the most that any CPU device or the host has.
///
/// Kernels take the range as one array. A copy or fill by a StreamRef or a CopyBatch is cut where the places of its
/// pages change, because CUDA goes by the first bytes of a copy to choose who copies; between two places of the host
/// that is the host itself, with the host's rights. The copies of a Graph, and those of other libraries, are not cut:
/// they stay within pages of one place.
class Span {
 public:
  /// A range of at least `bytes` bytes for `device`. Every device on which a page lies, `device` and `accessed_by` may
  /// read and write all of it; so may the host what it can reach: host pages, and all pages of CPU devices. Throws
  /// UsageError (bytes 0, no such page size, a map of another number of pages, devices of two kinds, a device that
  /// cannot reach a page) or DeviceError (Errc::not_supported where there is no virtual memory management or no such
  /// host memory, Errc::out_of_memory that says where and how much). Whatever was taken before a failure has been given
  /// back.
  Span(Device device, std::size_t bytes, const Placement& placement, const SpanOptions& options = {});
  /// Maps what share() gave in another process. The descriptors may be closed afterwards. Such pages are never moved.
  explicit Span(const SharedPages& pages);

  /// A span of profile.bytes placed as advise() says (headrace/device/advice.hpp). Where it would not choose a span,
  /// the nearest to its choice: all on the host for zero-copy, what fits on the device for managed memory. Without
  /// rates, those of the table for such a device. Throws as the constructor and advise() do, and UsageError for pages
  /// of another size than kPageBytes, of which advise() knows nothing.
  [[nodiscard]] static Span advised(Device device, const AccessProfile& profile, const MemoryRates& rates,
                                    const SpanOptions& options = {});
  /// The same with the rates that memory_rates_of() gives for the device.
  [[nodiscard]] static Span advised(Device device, const AccessProfile& profile, const SpanOptions& options = {});

  Span(Span&&) noexcept;
  Span& operator=(Span&&) noexcept;
  /// Waits for the work that used_by() knows of.
  ~Span();

  /// The device that the span was made for. Throws UsageError once released.
  [[nodiscard]] Device device() const;
  [[nodiscard]] std::byte* data() const noexcept;         ///< Null once released.
  [[nodiscard]] std::size_t bytes() const noexcept;       ///< As asked for; 0 once released.
  [[nodiscard]] std::size_t page_count() const noexcept;  ///< 0 once released.
  /// SpanOptions::page_bytes; 0 once released.
  [[nodiscard]] std::size_t page_bytes() const noexcept;
  /// The range as an array of T; null once released.
  template <class T>
  [[nodiscard]] T* as() const noexcept {
    return reinterpret_cast<T*>(data());
  }

  /// Where a page lies. Throws UsageError for a page outside the span, or once released.
  [[nodiscard]] Place place(std::size_t page) const;
  /// Where each page lies. The reference is valid until the next move. Throws UsageError once released.
  [[nodiscard]] const std::vector<Place>& places() const;
  /// What `device` may do with a page; none if it cannot reach the page. Throws as place() does.
  [[nodiscard]] Right right(Device device, std::size_t page) const;
  /// What the host may do with a page; none if it cannot reach the page. Throws as place() does.
  [[nodiscard]] Right host_right(std::size_t page) const;
  /// True when the host may read every page.
  [[nodiscard]] bool host_readable() const;

  /// Sets what `device` may do with `pages` (by default all). Throws UsageError for a range outside the span, or when
  /// the device cannot reach one of the pages and `right` is not none. Work in flight on those pages must be done.
  void allow(Device device, Right right, std::optional<PageRange> pages = {});
  /// The same for the host, which on CUDA reaches host pages only.
  void allow_host(Right right, std::optional<PageRange> pages = {});

  /// Moves pages: copies them on `stream` after the work enqueued there before, and maps the copies in their place with
  /// the rights kept. Returns when it is done. No other stream may use those pages meanwhile. Pages that are there
  /// already cost nothing. After a failure every page is whole, in its old place or its new one. Throws as the
  /// constructor does.
  void move(StreamRef stream, PageRange pages, Place to);
  /// Moves every page that lies elsewhere than `placement` says. Pages that leave a device make room for those that
  /// come, so that a full device can be rearranged with a few pages to spare.
  void move(StreamRef stream, const Placement& placement);
  /// Keeps at most so many of the pages that moves leave in a place, in each place, for the next moves that come there,
  /// and gives back at once what is kept beyond that. Making a page costs more than copying it: a span that moves
  /// back and forth wants as many as it moves; 0 keeps none. They count as used until a move takes them, trim(), the
  /// end of the span, or until an allocation in their place, of whatever this process makes there, finds no memory.
  void keep_spare_pages(std::size_t count_per_place);
  /// Gives back the pages kept from moves; later moves keep pages again.
  void trim() noexcept;

  /// Work enqueued on `stream` so far uses the span: release() refuses while it runs, and the destructor waits for it.
  [[nodiscard]] Status used_by(StreamRef stream);
  /// Gives everything back now. Throws UsageError, with nothing given back, while work that used_by() knows of runs.
  void release();

  /// Where the pages lie and what has been moved. Throws UsageError once released.
  [[nodiscard]] SpanStatistics statistics() const;

  /// The pages for another process, which needs the descriptors (over a Unix socket, SCM_RIGHTS). Throws UsageError
  /// when the span is not shareable, or has pages on the host or on two devices: host pages cannot be exported.
  [[nodiscard]] SharedPages share() const;

 private:
  class State;
  [[nodiscard]] const State& state() const;
  [[nodiscard]] State& state();
  std::unique_ptr<State> state_;
};

}  // namespace headrace
