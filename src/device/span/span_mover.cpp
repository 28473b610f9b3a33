#include "device/span/span_mover.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/error.hpp"

namespace headrace::detail {

PageMover::PageMover(PlacedPages& placed, SparePages& spares, StreamRef stream)
    : placed_(placed),
      spares_(spares),
      stream_(stream),
      batch_pages_(std::max<std::size_t>(kBatchBytes / placed.page_bytes(), 1)),
      events_{Event(stream.device()), Event(stream.device())} {
  under_way_.reserve(events_.size());
}

PageMover::~PageMover() {
  if (!under_way_.empty()) static_cast<void>(stream_.wait());  // copies to pages that are about to be destroyed
}

void PageMover::add(std::size_t page, Place to) {
  auto group = std::find_if(groups_.begin(), groups_.end(), [&](const Group& one) { return one.to == to; });
  if (group == groups_.end()) group = groups_.insert(group, Group{to, {}, 0});
  group->pages.push_back(page);
}

void PageMover::fail(std::string doing, Error error) {
  if (!failure_) failure_ = Failure{std::move(doing), error};
}

void PageMover::run() {
  while (true) {
    while (!failure_ && under_way_.size() < events_.size() && start()) {
    }
    if (under_way_.empty()) break;
    finish(under_way_.front());
    under_way_.erase(under_way_.begin());
  }
  if (failure_) throw_error(failure_->doing, failure_->error);
}

PageMover::Group* PageMover::choose(const std::vector<Group*>& tried) noexcept {
  Group* best = nullptr;
  std::size_t most = 0;
  for (Group& group : groups_) {
    if (group.left() == 0 || std::find(tried.begin(), tried.end(), &group) != tried.end()) continue;
    const std::size_t spare = std::min({spares_.count(group.to), group.left(), batch_pages_});
    if (best != nullptr && (spare < most || (spare == most && !group.to.is_host()))) continue;
    best = &group;
    most = spare;
  }
  return best;
}

bool PageMover::start() {
  std::vector<Group*> tried;
  for (Group* group = choose(tried); group != nullptr; group = choose(tried)) {
    Batch batch{group->to,
                {},
                take_pages(group->to, std::min(group->left(), batch_pages_)),
                &events_[batches_ % events_.size()]};
    if (failure_) return false;
    if (batch.fresh.empty()) {
      tried.push_back(group);
      continue;
    }
    const auto first = group->pages.begin() + static_cast<std::ptrdiff_t>(group->next);
    batch.pages.assign(first, first + static_cast<std::ptrdiff_t>(batch.fresh.size()));
    if (const Status copied = copy(batch); !copied) {
      fail(fmt::format("moving {} pages to {}", batch.pages.size(), batch.to.name()), copied.error());
      restore(batch);
      return false;
    }
    group->next += batch.pages.size();
    ++batches_;
    under_way_.push_back(std::move(batch));
    return true;
  }
  // No place has room, and no pages in flight will free any.
  if (!tried.empty() && under_way_.empty()) {
    const Place to = tried.front()->to;
    fail(fmt::format("creating a page on {} ({} free) to move one of {} pages there", to.name(),
                     format_bytes(free_bytes(to)), tried.front()->left()),
         Error{Errc::out_of_memory, 0});
  }
  return false;
}

std::vector<OwnedPage> PageMover::take_pages(Place to, std::size_t count) {
  std::vector<OwnedPage> pages;
  pages.reserve(count);
  while (pages.size() < count) {
    if (auto spare = spares_.take(to)) {
      pages.push_back(*std::move(spare));
      continue;
    }
    const auto page = with_spares_reclaimed(to, [&] { return placed_.memory().create(to, placed_.options); });
    if (page) {
      pages.emplace_back(placed_.memory(), *page);
      continue;
    }
    if (page.error().code != Errc::out_of_memory) {
      fail(fmt::format("creating a page on {}", to.name()), page.error());
    }
    break;
  }
  return pages;
}

Status PageMover::make_readable(const Batch& batch) {
  const Device reader = stream_.device();
  const auto closed = [&](std::size_t page) {
    return placed_.rights.in_force(placed_.memory(), reader, page, placed_.places[page]) == Right::none;
  };
  const auto alike = [&](std::size_t a, std::size_t b) { return closed(a) == closed(b); };
  return for_each_consecutive(batch.pages, alike, [&](std::size_t from, std::size_t run) -> Status {
    const std::size_t first = batch.pages[from];
    if (!closed(first)) return {};
    return placed_.range.set_access({first, run}, reader, Right::read);
  });
}

Status PageMover::copy(Batch& batch) {
  std::vector<std::byte*> targets;
  for (OwnedPage& page : batch.fresh) {
    const auto target = page.writable_by(stream_.device());
    if (!target) return target.error();
    targets.push_back(*target);
  }
  if (const Status readable = make_readable(batch); !readable) return readable;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const Status copied = stream_.copy(targets[i], placed_.range.at(batch.pages[i]), placed_.page_bytes());
    if (!copied) return copied;
  }
  return stream_.record(*batch.copied);
}

void PageMover::restore(const Batch& batch) noexcept {
  static_cast<void>(stream_.wait());  // wait for copies that were enqueued before the failure
  const Device reader = stream_.device();
  for (const std::size_t page : batch.pages) {
    if (!placed_.range.mapped(page)) static_cast<void>(placed_.range.map(page, placed_.pages[page].page()));
    if (!placed_.range.mapped(page)) continue;
    if (placed_.rights.in_force(placed_.memory(), reader, page, placed_.places[page]) == Right::none) {
      static_cast<void>(placed_.range.set_access({page, 1}, reader, Right::none));
    }
    static_cast<void>(placed_.rights.apply(placed_.range, placed_.places, {page, 1}, Mapped::before));
  }
}

void PageMover::finish(Batch& batch) {
  Status status = batch.copied->wait();
  if (status) {
    for (const std::size_t page : batch.pages) spares_.reserve(placed_.places[page], batch.pages.size());
    const auto joined = [](std::size_t, std::size_t) { return true; };
    status = for_each_consecutive(batch.pages, joined,
                                  [&](std::size_t from, std::size_t count) { return replace(batch, from, count); });
  }
  if (status) return;
  fail(fmt::format("moving {} pages to {}", batch.pages.size(), batch.to.name()), status.error());
  restore(batch);
}

Status PageMover::replace(Batch& batch, std::size_t from, std::size_t count) {
  const std::size_t first = batch.pages[from];
  if (const Status unmapped = placed_.range.unmap({first, count}); !unmapped) return unmapped;
  Status status;
  for (std::size_t i = 0; i < count; ++i) {
    OwnedPage& fresh = batch.fresh[from + i];
    OwnedPage& old = placed_.pages[first + i];
    if (status) status = placed_.range.map(first + i, fresh.page());
    if (!status) {  // this page and the following ones keep their old memory
      static_cast<void>(placed_.range.map(first + i, old.page()));
      continue;
    }
    std::swap(fresh, old);
    spares_.give(std::exchange(placed_.places[first + i], batch.to), std::move(fresh));
    ++moved_;
  }
  const Status applied = placed_.rights.apply(placed_.range, placed_.places, {first, count}, Mapped::just_now);
  return status ? applied : status;
}

}  // namespace headrace::detail
