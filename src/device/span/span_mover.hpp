#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "device/span/span_state.hpp"
#include "headrace/base/detail/bytes.hpp"

namespace headrace::detail {

/// Moves pages of a span in batches: it fills fresh pages at their own addresses and then maps them in place of the old
/// ones, which become spare and serve the next pages. While one batch is copied, the previous one is remapped.
class PageMover {
 public:
  /// Bytes of a batch, or one page if that is larger: long enough to saturate the link, and few enough pages that a
  /// full device has room for two batches.
  static constexpr std::size_t kBatchBytes = 32 * kMiB;

  /// Throws DeviceError.
  PageMover(PlacedPages& placed, SparePages& spares, StreamRef stream);
  PageMover(const PageMover&) = delete;
  PageMover& operator=(const PageMover&) = delete;
  ~PageMover();

  /// Adds page `page`, which must move to `to` and does not lie there yet. Call it in order of pages.
  void add(std::size_t page, Place to);
  /// Moves the added pages. Throws DeviceError; then some pages have moved, and the contents of all are intact.
  void run();
  [[nodiscard]] std::size_t moved() const noexcept { return moved_; }

 private:
  /// Pages that go to the same place.
  struct Group {
    Place to;
    std::vector<std::size_t> pages;
    std::size_t next = 0;  ///< Pages before it are in flight or done.
    [[nodiscard]] std::size_t left() const noexcept { return pages.size() - next; }
  };
  struct Batch {
    Place to;
    std::vector<std::size_t> pages;
    std::vector<OwnedPage> fresh;  ///< One for each of `pages`.
    const Event* copied;
  };

  struct Failure {
    std::string doing;
    Error error;
  };

  /// The group to continue with: the one with the most spare pages, or the host's if none has any, so that a full
  /// device first gets room. Null if all pages are in flight or done.
  [[nodiscard]] Group* choose(const std::vector<Group*>& tried) noexcept;
  /// Starts a batch if possible. Otherwise returns false, with failure_ set unless no page is left.
  [[nodiscard]] bool start();
  [[nodiscard]] std::vector<OwnedPage> take_pages(Place to, std::size_t count);
  [[nodiscard]] Status copy(Batch& batch);
  [[nodiscard]] Status make_readable(const Batch& batch);
  void finish(Batch& batch);
  /// Replaces `count` neighbouring pages of the batch, from index `from` on.
  [[nodiscard]] Status replace(Batch& batch, std::size_t from, std::size_t count);
  /// After a failure: restores the pages of the batch that were not replaced.
  void restore(const Batch& batch) noexcept;
  void fail(std::string doing, Error error);

  PlacedPages& placed_;
  SparePages& spares_;
  StreamRef stream_;
  const std::size_t batch_pages_;
  std::array<Event, 2> events_;
  std::size_t batches_ = 0;  ///< Batches started so far.
  std::vector<Group> groups_;
  std::vector<Batch> under_way_;  ///< Oldest first.
  std::optional<Failure> failure_;
  std::size_t moved_ = 0;
};

}  // namespace headrace::detail
