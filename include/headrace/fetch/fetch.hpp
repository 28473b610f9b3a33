#pragma once

// A Fetch brings columns of a Source to a device, in threads of its own, through the Levels that keep chunks.
//
//     auto bring = [](std::shared_ptr<headrace::fetch::Source> source) {
//       headrace::fetch::Levels levels(headrace::Device::parse("best"));
//       headrace::fetch::Fetch fetch(levels, std::move(source), {.columns = {0, 2}});
//       fetch.wait();
//       const headrace::fetch::ColumnView& chunk = fetch.view(1, 0);  // column 2 of fragment 0
//       std::printf("%lld values lie at %p\n", static_cast<long long>(chunk.length), chunk.values);
//     };

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/detail/clock.hpp"
#include "headrace/device/stream.hpp"
#include "headrace/fetch/detail/column.hpp"
#include "headrace/fetch/detail/timeline.hpp"
#include "headrace/fetch/levels.hpp"
#include "headrace/fetch/source.hpp"

namespace headrace::fetch {

/// Whether the threads of a fetch overlap copies with the work on the next chunk.
enum class FetchMode : std::uint8_t {
  async,  ///< A thread adds each chunk to a batch of copies and goes on with the next one.
  sync    ///< A thread waits for the copy of each chunk; for comparison.
};

/// "async" or "sync".
[[nodiscard]] std::string_view to_string(FetchMode mode) noexcept;
/// The mode of that name. Throws UsageError that lists the modes if there is none.
[[nodiscard]] FetchMode parse_fetch_mode(std::string_view text);

/// How columns are fetched.
struct FetchOptions {
  FetchMode mode = FetchMode::async;  ///< See FetchMode.
  /// Threads that read, decode and copy; 0: one for each core, 16 at most (a published fetch gained nothing beyond).
  std::uint32_t threads = 0;
  /// Bytes gathered before copies are submitted, divided among the threads.
  std::size_t flush_bytes = 128 * kMiB;
  /// Spans of the timeline to keep; 0 records nothing and costs nothing.
  std::size_t timeline_spans = 0;
  /// Whether a source that decodes pages with checksums verifies them. The code that makes the source applies this, as
  /// Python's Table does; a fetch itself ignores it.
  bool verify_checksums = false;
};

/// What is fetched.
struct FetchRequest {
  std::vector<std::uint32_t> columns;         ///< Columns of the source, by number; at least one.
  std::vector<std::uint32_t> fragments = {};  ///< Empty: all.
  Level to = Level::device;                   ///< device or cpu.
  /// How they are fetched.
  FetchOptions options = {};
};

/// Traffic through one level.
struct LevelProgress {
  std::uint64_t bytes = 0;   ///< Disk: bytes of the files. CPU, device: bytes of values and validity.
  std::uint64_t chunks = 0;  ///< Chunks made at this level.
  std::uint64_t hits = 0;    ///< Chunks found at this level.
  Duration busy{};           ///< Sum over threads. Device: from a batch's first copy until it was seen to be done.
};

/// How far a fetch is.
struct FetchProgress {
  std::array<LevelProgress, kLevelCount> levels;  ///< By Level.
  std::uint64_t chunks_done = 0;                  ///< Chunks at the requested level, or in flight to it.
  std::uint64_t chunks = 0;                       ///< Chunks that the request asks for.
  Duration elapsed{};                             ///< From construction until now, or until the fetch ended.
};

/// A fetch of columns, in threads of its own from construction on. Its chunks stay in the cache while it lives.
class Fetch {
 public:
  /// Starts to fetch. Throws UsageError for columns or fragments that the source lacks, or options out of range. If
  /// every chunk is on the device already, the fetch has ended when the constructor returns, and starts no threads.
  Fetch(Levels levels, std::shared_ptr<Source> source, FetchRequest request);
  Fetch(Fetch&&) noexcept;
  Fetch& operator=(Fetch&&) noexcept;
  /// Cancels the fetch and waits until its threads have ended. Work that reads the columns must be done.
  ~Fetch();

  /// Asks the fetch to end early, with Errc::cancelled. Threads notice between two chunks.
  void cancel() noexcept;
  /// Waits until every chunk is there. Throws the first failure: an Exception with the code of its cause that names
  /// file, row group and column; UsageError if a chunk alone exceeds a budget; DeviceError (Errc::out_of_memory) if the
  /// columns together exceed the device's budget.
  void wait();
  /// Waits until every copy has been submitted, and holds back later work on `consumer` until they are done. Throws as
  /// wait() does.
  void barrier(StreamRef consumer);
  /// Waits for at most `most`. True if wait() would return at once.
  [[nodiscard]] bool wait_for(Duration most) const;
  /// How far the fetch is. Any thread.
  [[nodiscard]] FetchProgress progress() const;
  /// The steps of the fetch and their times. Waits until it has ended or failed. Empty unless
  /// FetchOptions::timeline_spans is above 0.
  [[nodiscard]] FetchTimeline timeline() const;

  [[nodiscard]] const FetchRequest& request() const noexcept;  ///< With defaults filled in for fragments and threads.
  [[nodiscard]] const std::shared_ptr<Source>& source() const noexcept;  ///< The source that it reads.
  /// The dictionary of a column of strings, by position in the request; null for other columns.
  [[nodiscard]] const std::shared_ptr<Dictionary>& dictionary(std::size_t column) const;
  /// A chunk, by position in the request's columns and fragments. Only after wait() or barrier().
  [[nodiscard]] const ColumnView& view(std::size_t column, std::size_t fragment) const;

 private:
  class State;
  /// Throws in a forked child.
  [[nodiscard]] State& own_state() const;
  std::unique_ptr<State> state_;
};

}  // namespace headrace::fetch
