#include "grid/mpi/watch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "headrace/base/detail/threads.hpp"

namespace headrace::grid {

namespace {

constexpr Duration kBeat = std::chrono::milliseconds(250);
/// A failure notice is short, so MPI accepts it at once. This bounds the time to send it.
constexpr Duration kTellMax = std::chrono::milliseconds(500);
constexpr std::size_t kTextMax = 1000;

}  // namespace

Watch::Watch(Duration silence_max)
    : ranks_(MPI_COMM_WORLD),
      rank_(ranks_.rank()),
      count_(ranks_.count()),
      next_((rank_ + 1) % count_),
      before_((rank_ + count_ - 1) % count_),
      silence_max_(silence_max),
      left_(static_cast<std::size_t>(count_)) {
  if (count_ == 1) return;
  start_each("threads that watch ranks", 1, [this](std::size_t) { thread_ = std::thread([this] { work(); }); });
}

Watch::~Watch() { leave(); }

void Watch::leave() noexcept {
  {
    const std::lock_guard lock(mutex_);
    leaving_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::optional<std::string> Watch::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

bool Watch::note(const std::string& failure) noexcept {
  const std::lock_guard lock(mutex_);
  if (failure_) return false;
  failure_ = failure;
  failed_.store(true, std::memory_order_release);
  return true;
}

void Watch::note_and_tell(const std::string& failure) noexcept {
  // failure_ never changes again, so it lives as long as MPI may read it.
  if (note(failure)) send_to_all(std::string_view(*failure_).substr(0, kTextMax), Tag::failing);
}

void Watch::fail(std::string_view why) noexcept {
  note_and_tell(fmt::format("rank {} of {} failed: {}", rank_, count_, why));
}

void Watch::miss(int rank) noexcept {
  note_and_tell(
      fmt::format("rank {} of {} has left while rank {} waits for it: it ended before the others, because of an error "
                  "of its own or because it made fewer calls",
                  rank, count_, rank_));
}

void Watch::note_left(int rank) noexcept {
  left_[static_cast<std::size_t>(rank)].store(true, std::memory_order_release);
  any_left_.store(true, std::memory_order_release);
}

void Watch::send_to_all(std::string_view text, Tag tag) noexcept {
  std::vector<MPI_Request> told;
  for (int rank = 0; rank < count_; ++rank) {
    if (rank == rank_) continue;
    MPI_Isend(text.data(), static_cast<int>(text.size()), MPI_CHAR, rank, tag, ranks_.get(),
              &told.emplace_back(MPI_REQUEST_NULL));
  }
  const Time until = SteadyClock::now() + kTellMax;
  int done = 0;
  while (done == 0 && SteadyClock::now() < until) {
    if (MPI_Testall(static_cast<int>(told.size()), told.data(), &done, MPI_STATUSES_IGNORE) != MPI_SUCCESS) return;
    if (done == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void Watch::work() noexcept {
  Time last = SteadyClock::now();
  bool said_that_it_leaves = false;
  while (!failed() && !(said_that_it_leaves && has_left(before_))) {
    if (!said_that_it_leaves) say_that_it_lives();
    read_messages();
    const Time now = SteadyClock::now();
    listen(now - last);
    last = now;
    std::unique_lock lock(mutex_);
    const bool leaves = changed_.wait_for(lock, said_that_it_leaves ? std::chrono::milliseconds(1) : kBeat,
                                          [this] { return leaving_; });
    if (!leaves || said_that_it_leaves) continue;
    lock.unlock();
    if (said_ != MPI_REQUEST_NULL) MPI_Request_free(&said_);
    send_to_all({}, Tag::leaving);
    said_that_it_leaves = true;
  }
}

bool Watch::wait_until_all_left(Duration limit) noexcept {
  leave();  // the thread has ended and reads no more messages
  send_to_all({}, Tag::leaving);
  const auto others_left = [this] {
    for (int rank = 0; rank < count_; ++rank) {
      if (rank != rank_ && !has_left(rank)) return false;
    }
    return true;
  };
  const Time until = SteadyClock::now() + limit;
  while (!others_left()) {
    if (SteadyClock::now() >= until) return false;
    read_messages();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

void Watch::say_that_it_lives() noexcept {
  int done = 1;
  MPI_Test(&said_, &done, MPI_STATUS_IGNORE);
  if (done != 0) MPI_Isend(nullptr, 0, MPI_CHAR, next_, Tag::beat, ranks_.get(), &said_);
}

void Watch::read_messages() noexcept {
  for (;;) {
    int there = 0;
    MPI_Status status;
    if (MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, ranks_.get(), &there, &status) != MPI_SUCCESS || there == 0) return;
    std::string text(kTextMax, '\0');
    int length = 0;
    MPI_Get_count(&status, MPI_CHAR, &length);
    MPI_Recv(text.data(), static_cast<int>(text.size()), MPI_CHAR, status.MPI_SOURCE, status.MPI_TAG, ranks_.get(),
             MPI_STATUS_IGNORE);
    if (status.MPI_TAG == Tag::failing) static_cast<void>(note(text.substr(0, static_cast<std::size_t>(length))));
    if (status.MPI_SOURCE == before_) silent_ = Duration::zero();
    if (status.MPI_TAG == Tag::leaving) note_left(status.MPI_SOURCE);
  }
}

void Watch::listen(Duration since) noexcept {
  if (has_left(before_) || failed()) return;
  // Counts at most twice the length of a turn: a process that was itself delayed heard nothing in that time.
  silent_ += std::min(since, 2 * kBeat);
  if (silent_ <= silence_max_) return;
  note_and_tell(fmt::format("rank {} of {} has not been heard from for {} s: it has died, hangs, or cannot be reached",
                            before_, count_, std::chrono::duration_cast<std::chrono::seconds>(silence_max_).count()));
}

}  // namespace headrace::grid
