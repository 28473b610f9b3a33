#include "fetch/windows.hpp"

#include <chrono>
#include <limits>
#include <utility>

#include "fetch/host_chunk.hpp"
#include "fetch/slabs.hpp"
#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/error.hpp"

namespace headrace::fetch {

std::size_t fragment_bytes(const Source& source, const std::vector<std::uint32_t>& columns, std::uint32_t fragment) {
  std::size_t bytes = 0;
  for (const std::uint32_t number : columns) {
    const bool nullable = source.column_of(number).nullable;
    const ChunkShape bound = shape_bound(source.type_of(number), source.fragments()[fragment].rows, nullable);
    bytes += align_up(bound.bytes(), Slabs::kAlignment);
  }
  return bytes;
}

std::deque<Fragments> cut_windows(const Source& source, const std::vector<std::uint32_t>& columns,
                                  const Fragments& fragments, std::size_t bytes, std::int64_t rows) {
  std::deque<Fragments> windows;
  std::size_t taken_bytes = 0;
  std::int64_t taken_rows = 0;
  for (const std::uint32_t fragment : fragments) {
    const std::size_t more_bytes = fragment_bytes(source, columns, fragment);
    const std::int64_t more_rows = source.fragments()[fragment].rows;
    if (windows.empty() || taken_bytes + more_bytes > bytes || taken_rows + more_rows > rows) {
      windows.emplace_back();
      taken_bytes = 0;
      taken_rows = 0;
    }
    windows.back().push_back(fragment);
    taken_bytes += more_bytes;
    taken_rows += more_rows;
  }
  return windows;
}

void wait_for(Fetch& fetch, const Watch& watch) {
  constexpr auto kLook = std::chrono::milliseconds(50);
  while (watch && !fetch.wait_for(kLook)) watch(fetch.progress());
  fetch.wait();
}

void rethrow_unless_out_of_device_memory() {
  try {
    throw;
  } catch (const DeviceError& error) {
    if (error.code() != Errc::out_of_memory) throw;
  }
}

void rethrow_unless_out_of_memory() {
  try {
    throw;
  } catch (const Exception& error) {
    if (error.code() != Errc::out_of_memory) throw;
  }
}

WindowStream::WindowStream(Levels levels, std::shared_ptr<Source> source, std::vector<std::uint32_t> columns,
                           FetchOptions options, std::deque<Fragments> windows)
    : levels_(std::move(levels)),
      source_(std::move(source)),
      columns_(std::move(columns)),
      options_(options),
      windows_(std::move(windows)),
      most_(std::numeric_limits<std::size_t>::max()) {}

std::unique_ptr<Fetch> WindowStream::start(const Fragments& fragments) const {
  return std::make_unique<Fetch>(levels_, source_,
                                 FetchRequest{.columns = columns_, .fragments = fragments, .options = options_});
}

Fragments WindowStream::take() {
  Fragments first = std::move(windows_.front());
  windows_.pop_front();
  if (first.size() <= most_) return first;
  const auto cut = first.begin() + static_cast<std::ptrdiff_t>(most_);
  windows_.emplace_front(cut, first.end());
  first.erase(cut, first.end());
  return first;
}

Fetch* WindowStream::next(const Watch& watch) {
  const Time started = SteadyClock::now();
  here_ = nullptr;  // frees its room for the next window
  here_ = std::move(ahead_);
  bool alone = here_ == nullptr;
  if (alone && windows_.empty()) return nullptr;
  if (alone) here_ = start(take());
  while (!arrived(alone, watch)) {
    Fragments fragments = here_->request().fragments;
    here_ = nullptr;
    // If it did not fit beside the other window, tries it alone; if it did not fit alone, halves the fragments.
    if (alone) most_ = fragments.size() / 2;
    alone = true;
    windows_.push_front(std::move(fragments));
    here_ = start(take());
  }
  if (!windows_.empty()) ahead_ = start(take());
  waited_ += SteadyClock::now() - started;
  return here_.get();
}

bool WindowStream::arrived(bool alone, const Watch& watch) {
  try {
    wait_for(*here_, watch);
    return true;
  } catch (...) {
    if (alone && here_->request().fragments.size() == 1) throw;
    rethrow_unless_out_of_device_memory();
    return false;
  }
}

}  // namespace headrace::fetch
