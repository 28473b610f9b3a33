#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "device/span/span_state.hpp"
#include "headrace/base/detail/bytes.hpp"

namespace headrace::detail {

/// Moves pages of a span, some at a time: fresh pages are filled at addresses of their own and take the place of the
/// old ones, which are spare from then on and serve the next pages. While one batch is copied the one before it changes
/// places.
class PageMover {
 public:
  /// A batch, or one page where that is more: long enough a copy for the link, and few enough pages to be taken twice
  /// over on a full device.
  static constexpr std::size_t kBatchBytes = 32 * kMiB;

  /// Throws DeviceError.
  PageMover(PlacedPages& placed, SparePages& spares, StreamRef stream);
  PageMover(const PageMover&) = delete;
  PageMover& operator=(const PageMover&) = delete;
  ~PageMover();

  /// Page `page` is to lie at `to`, where it does not yet. To be called in order of pages.
  void add(std::size_t page, Place to);
  /// Moves the pages added. Throws DeviceError; then some of them have been moved, and all are whole.
  void run();
  [[nodiscard]] std::size_t moved() const noexcept { return moved_; }

 private:
  /// Pages that go to the same place.
  struct Group {
    Place to;
    std::vector<std::size_t> pages;
    std::size_t next = 0;  ///< Those before are under way or done.
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

  /// The group to go on with: the one that has most spare pages waiting, and the host's where none has, so that a full
  /// device is first given room. Null when all is under way or done.
  [[nodiscard]] Group* choose(const std::vector<Group*>& tried) noexcept;
  /// Starts a batch if one can be. False, with failure_ set unless nothing is left, if not.
  [[nodiscard]] bool start();
  [[nodiscard]] std::vector<OwnedPage> take_pages(Place to, std::size_t count);
  [[nodiscard]] Status copy(Batch& batch);
  [[nodiscard]] Status make_readable(const Batch& batch);
  void finish(Batch& batch);
  /// Replaces the pages `count` from number `from` of the batch, which are neighbours.
  [[nodiscard]] Status replace(Batch& batch, std::size_t from, std::size_t count);
  /// After a failure: the pages of the batch that were not replaced are what they were.
  void restore(const Batch& batch) noexcept;
  void fail(std::string doing, Error error);

  PlacedPages& placed_;
  SparePages& spares_;
  StreamRef stream_;
  const std::size_t batch_pages_;
  std::array<Event, 2> events_;
  std::size_t batches_ = 0;  ///< Started so far.
  std::vector<Group> groups_;
  std::vector<Batch> under_way_;  ///< Oldest first.
  std::optional<Failure> failure_;
  std::size_t moved_ = 0;
};

}  // namespace headrace::detail
