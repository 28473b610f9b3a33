#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "headrace/fetch/table.hpp"

/// Streams columns of a table through the device, some fragments at a time.
namespace headrace::fetch {

using Fragments = std::vector<std::uint32_t>;

/// Upper bound on the device memory of a fragment's columns.
[[nodiscard]] std::size_t fragment_bytes(const Source& source, const std::vector<std::uint32_t>& columns,
                                         std::uint32_t fragment);
/// Groups fragments, in order, into windows of at most `bytes` bytes and `rows` rows. Each window has at least one
/// fragment.
[[nodiscard]] std::deque<Fragments> cut_windows(const Source& source, const std::vector<std::uint32_t>& columns,
                                                const Fragments& fragments, std::size_t bytes, std::int64_t rows);

/// Waits for a fetch and reports its progress to `watch`.
void wait_for(Fetch& fetch, const Watch& watch);
/// Returns if the exception being handled says that the device is out of memory. Rethrows any other exception.
void rethrow_unless_out_of_device_memory();
/// The same for out of memory on the host or the device.
void rethrow_unless_out_of_memory();

/// Fetches windows in order, each while the previous one is in use. A window that does not fit beside the previous one
/// is fetched alone; a window that does not fit alone is cut in two.
class WindowStream {
 public:
  WindowStream(Levels levels, std::shared_ptr<Source> source, std::vector<std::uint32_t> columns, FetchOptions options,
               std::deque<Fragments> windows);

  /// Releases the last window, whose scan must have ended, and waits for the next one; null at the end. Throws as
  /// Fetch::wait() does.
  [[nodiscard]] Fetch* next(const Watch& watch);
  [[nodiscard]] Duration waited() const noexcept { return waited_; }

 private:
  [[nodiscard]] std::unique_ptr<Fetch> start(const Fragments& fragments) const;
  [[nodiscard]] Fragments take();
  /// Waits for the window. Returns false if there was no room for it, but there may be alone or with fewer fragments.
  [[nodiscard]] bool arrived(bool alone, const Watch& watch);

  Levels levels_;
  std::shared_ptr<Source> source_;
  std::vector<std::uint32_t> columns_;
  FetchOptions options_;
  std::deque<Fragments> windows_;
  std::size_t most_;  ///< Most fragments per window; lowered when a window does not fit.
  std::unique_ptr<Fetch> here_;
  std::unique_ptr<Fetch> ahead_;
  Duration waited_{};
};

}  // namespace headrace::fetch
