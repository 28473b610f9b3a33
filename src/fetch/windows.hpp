#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "headrace/fetch/table.hpp"

/// Columns of a table through the device, some fragments at a time.
namespace headrace::fetch {

using Fragments = std::vector<std::uint32_t>;

/// Bytes that the columns of a fragment take on the device, at most.
[[nodiscard]] std::size_t fragment_bytes(const Source& source, const std::vector<std::uint32_t>& columns,
                                         std::uint32_t fragment);
/// Fragments gathered, in order, while they take no more than so many bytes and rows; each window has one at least.
[[nodiscard]] std::deque<Fragments> cut_windows(const Source& source, const std::vector<std::uint32_t>& columns,
                                                const Fragments& fragments, std::size_t bytes, std::int64_t rows);

/// Waits for a fetch, telling `watch`.
void wait_for(Fetch& fetch, const Watch& watch);
/// Whether the device had no room: of the exception that is being handled. Rethrows any other.
void rethrow_unless_out_of_device_memory();
/// The same for memory of the host as well.
void rethrow_unless_out_of_memory();

/// Windows one after the other, each fetched while the one before it is in use. A window for which there is no room
/// beside the other is fetched alone, and one for which there is none at all is cut in two.
class WindowStream {
 public:
  WindowStream(Levels levels, std::shared_ptr<Source> source, std::vector<std::uint32_t> columns, FetchOptions options,
               std::deque<Fragments> windows);

  /// Lets go of the last window, whose scan must have ended, and waits for the next; null at the end. Throws as
  /// Fetch::wait() does.
  [[nodiscard]] Fetch* next(const Watch& watch);
  [[nodiscard]] Duration waited() const noexcept { return waited_; }

 private:
  [[nodiscard]] std::unique_ptr<Fetch> start(const Fragments& fragments) const;
  [[nodiscard]] Fragments take();
  /// Whether the window came; false where there was no room for it and it can be had otherwise.
  [[nodiscard]] bool arrived(bool alone, const Watch& watch);

  Levels levels_;
  std::shared_ptr<Source> source_;
  std::vector<std::uint32_t> columns_;
  FetchOptions options_;
  std::deque<Fragments> windows_;
  std::size_t most_;  ///< Fragments of a window for which there has been room.
  std::unique_ptr<Fetch> here_;
  std::unique_ptr<Fetch> ahead_;
  Duration waited_{};
};

}  // namespace headrace::fetch
