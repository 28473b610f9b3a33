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

enum class FetchMode : std::uint8_t {
  async,  ///< A thread adds what it has made to a batch and makes the next chunk meanwhile.
  sync    ///< A thread waits for the copy of each chunk; for comparison.
};

[[nodiscard]] std::string_view to_string(FetchMode mode) noexcept;
/// Throws UsageError that lists the modes.
[[nodiscard]] FetchMode parse_fetch_mode(std::string_view text);

/// How columns are fetched.
struct FetchOptions {
  FetchMode mode = FetchMode::async;
  /// 0: by the machine, a thread a core, 16 at most (a published fetch gained nothing beyond).
  std::uint32_t threads = 0;
  /// Copies are submitted once this much is gathered, shared out over the threads.
  std::size_t flush_bytes = 128 * kMiB;
  /// Spans of its timeline that are kept; 0: nothing is recorded, which costs nothing.
  std::size_t timeline_spans = 0;
  /// Whether a source that decodes pages with checksums is to verify them: for whoever makes the source, as Python's
  /// Table does. A fetch itself reads through whatever source it is given.
  bool verify_checksums = false;
};

/// What is fetched.
struct FetchRequest {
  std::vector<std::uint32_t> columns;         ///< Columns of the source, by number; at least one.
  std::vector<std::uint32_t> fragments = {};  ///< Empty: all.
  Level to = Level::device;                   ///< device or cpu.
  FetchOptions options = {};
};

/// What came through one level.
struct LevelProgress {
  std::uint64_t bytes = 0;   ///< Disk: of the files. CPU, device: of values and validity.
  std::uint64_t chunks = 0;  ///< Made.
  std::uint64_t hits = 0;    ///< Found there.
  Duration busy{};           ///< Sum over threads. Device: from a batch's first copy until it was seen to be done.
};

struct FetchProgress {
  std::array<LevelProgress, kLevelCount> levels;  ///< By Level.
  std::uint64_t chunks_done = 0;                  ///< At the level asked for, or on the way there from the one above.
  std::uint64_t chunks = 0;
  Duration elapsed{};  ///< Until now, or until it ended.
};

/// A fetch of columns, in threads of its own from construction on. What it brought is pinned while it lives.
class Fetch {
 public:
  /// Throws UsageError for columns or fragments that the source has not, or options out of range. Where every chunk
  /// lies on the device already it has ended when it returns, and there are no threads.
  Fetch(Levels levels, std::shared_ptr<Source> source, FetchRequest request);
  Fetch(Fetch&&) noexcept;
  Fetch& operator=(Fetch&&) noexcept;
  /// Cancels it and waits until its threads have ended. Work that reads the columns must be done.
  ~Fetch();

  /// Asks it to end early, with Errc::cancelled: threads look between two chunks.
  void cancel() noexcept;
  /// Waits until every chunk is there. Throws the first failure: an Exception that names file, row group and column, of
  /// the code of its cause; UsageError for a budget that one chunk does not fit; DeviceError (Errc::out_of_memory) when
  /// the columns do not fit the device's budget together.
  void wait();
  /// Waits until every copy has been submitted, and holds back later work on `consumer` until they are done. Throws as
  /// wait() does.
  void barrier(StreamRef consumer);
  /// Waits for so long at most. Whether wait() would return at once.
  [[nodiscard]] bool wait_for(Duration most) const;
  [[nodiscard]] FetchProgress progress() const;
  /// What it did when: waits for its end, be that a failure. Empty unless spans were asked for.
  [[nodiscard]] FetchTimeline timeline() const;

  [[nodiscard]] const FetchRequest& request() const noexcept;  ///< With the fragments and threads that stand for none.
  [[nodiscard]] const std::shared_ptr<Source>& source() const noexcept;
  /// What the indices of a column of strings stand for, by position in the request; null for other columns.
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
