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

/// What a device, or the host, may do with a page. Any other access is an error of the device (a segmentation fault on
/// a CPU device) rather than silent traffic over a link.
enum class Right : std::uint8_t {
  none,        ///< Every access is an error.
  read,        ///< Reads only.
  read_write,  ///< Reads and writes.
};

/// How the pages of a Span are made and who may use them.
struct SpanOptions {
  /// Further devices that may read and write all pages from the start. The span's own, and those on which pages lie,
  /// always may.
  std::vector<Device> accessed_by = {};
  /// NUMA node of host pages; by default the one nearest to the span's device.
  std::optional<int> numa_node = {};
  /// Makes device pages so that another process can map them; see Span::share().
  bool shareable = false;
  /// Bytes of each page: a power of two, at least kPageBytes. Places, rights and moves are per page; larger pages need
  /// fewer calls of the driver per byte.
  std::size_t page_bytes = kPageBytes;
};

/// Pages of kPageBytes that a span keeps in each place for its next moves by default, 256 MiB; of larger pages as many
/// as make 256 MiB, at least one. Span::keep_spare_pages() changes it.
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
  Device device;                        ///< The device on which all pages lie.
  std::vector<int> descriptors;         ///< One for each page; the owner of this struct must close them.
  std::size_t page_bytes = kPageBytes;  ///< Bytes of each page.
};

/// One contiguous virtual range whose pages, of 2 MiB or more, lie on devices and on the host as a Placement says, and
/// may be moved while it lives (CUDA's virtual memory management; mapped memory files on a CPU device). Contents are
/// undefined at first. Two threads must not change it at the same time. Once released or moved from, it has no pages,
/// and functions that need pages throw UsageError.
///
/// All devices of a span are of one kind. CPU devices and the host share one address space, so the effective rights of
/// a page there are the widest of any CPU device or the host.
///
/// Kernels use the range as one array. StreamRef and CopyBatch cut copies and fills where the places of pages change,
/// because CUDA chooses the copying device by the first bytes; between two places of the host the host itself copies,
/// with the host's rights. Copies of a Graph and of other libraries are not cut: they must stay within pages of one
/// place.
class Span {
 public:
  /// Makes a range of at least `bytes` bytes for `device`. `device`, SpanOptions::accessed_by and every device on which
  /// a page lies may read and write all of it; the host may read and write the pages that it can reach: host pages, and
  /// all pages of CPU devices. Throws UsageError (bytes 0, an invalid page size, a map of another number of pages,
  /// devices of two kinds, a device that cannot reach a page) or DeviceError (Errc::not_supported without virtual
  /// memory management or such host memory, Errc::out_of_memory that says where and how much). A failure releases
  /// everything allocated before it.
  Span(Device device, std::size_t bytes, const Placement& placement, const SpanOptions& options = {});
  /// Maps the pages that share() returned in another process. The descriptors may be closed afterwards. Such pages
  /// cannot be moved.
  explicit Span(const SharedPages& pages);

  /// Makes a span of profile.bytes placed as advise() says (headrace/device/advice.hpp). If advise() does not choose a
  /// span, the placement nearest to its choice is used: all on the host for zero-copy, as much as fits on the device
  /// for managed memory. Throws as the constructor and advise() do, and UsageError for pages of another size than
  /// kPageBytes, which advise() does not model.
  [[nodiscard]] static Span advised(Device device, const AccessProfile& profile, const MemoryRates& rates,
                                    const SpanOptions& options = {});
  /// The same with the rates that memory_rates_of() gives for the device.
  [[nodiscard]] static Span advised(Device device, const AccessProfile& profile, const SpanOptions& options = {});

  Span(Span&&) noexcept;
  Span& operator=(Span&&) noexcept;
  /// Waits for the work noted by used_by().
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
  /// True if the host may read every page.
  [[nodiscard]] bool host_readable() const;

  /// Sets what `device` may do with `pages` (by default all). Throws UsageError for a range outside the span, or when
  /// the device cannot reach one of the pages and `right` is not none. Work in flight on those pages must be done.
  void allow(Device device, Right right, std::optional<PageRange> pages = {});
  /// The same for the host, which on CUDA reaches host pages only.
  void allow_host(Right right, std::optional<PageRange> pages = {});

  /// Moves pages: copies them on `stream` after the work enqueued there before, maps the copies at the same addresses
  /// with the same rights, and returns when that is done. No other stream may use those pages meanwhile. Pages already
  /// in place cost nothing. After a failure every page is intact, in its old place or its new one. Throws as the
  /// constructor does.
  void move(StreamRef stream, PageRange pages, Place to);
  /// Moves every page to where `placement` puts it. Pages that leave a device make room for those that arrive, so a
  /// full device can be rearranged with a few free pages.
  void move(StreamRef stream, const Placement& placement);
  /// Sets how many pages that moves vacate are kept in each place for later moves to it, and releases those beyond that
  /// at once; 0 keeps none. Making a page costs more than copying it, so a span that moves pages back and forth should
  /// keep as many as it moves. Spare pages count as used memory until a move takes them, trim(), the span's
  /// destruction, or an allocation of this process in that place that would otherwise fail.
  void keep_spare_pages(std::size_t count_per_place);
  /// Releases all spare pages; later moves keep pages again.
  void trim() noexcept;

  /// Notes that work enqueued on `stream` so far uses the span: release() refuses while it runs, and the destructor
  /// waits for it.
  [[nodiscard]] Status used_by(StreamRef stream);
  /// Releases the whole span now. Throws UsageError, without releasing anything, while work noted by used_by() runs.
  void release();

  /// Where the pages lie and what has been moved. Throws UsageError once released.
  [[nodiscard]] SpanStatistics statistics() const;

  /// Exports the pages for another process, to which the descriptors must be sent (over a Unix socket, SCM_RIGHTS).
  /// Throws UsageError if the span is not shareable, or has pages on two devices or on the host: host pages cannot be
  /// exported.
  [[nodiscard]] SharedPages share() const;

 private:
  class State;
  [[nodiscard]] const State& state() const;
  [[nodiscard]] State& state();
  std::unique_ptr<State> state_;
};

}  // namespace headrace
