#include <fmt/format.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <iterator>
#include <new>
#include <string>
#include <utility>

#include "base/exception_memory.hpp"
#include "headrace/base/error.hpp"
#include "wire/request_error.hpp"
#include "wire/rings/ring_thread.hpp"

/// How a RingThread gains and loses its clients and models.
namespace headrace::wire::rings {

RingThread::RingThread(Shared& shared, std::size_t number)
    : shared_(shared), number_(number), replies_(shared.replies.emplace_back()) {
  on_wake_.act = [this] { static_cast<void>(wake_.clear()); };
  on_accept_.act = [this] { accept(); };
  loop_.add(wake_.get(), EPOLLIN, on_wake_);
}

RingThread::~RingThread() {
  wake();
  if (thread_.joinable()) thread_.join();
}

void RingThread::listen(FileDescriptor listener, std::function<void(FileDescriptor)> hand_out) {
  listener_ = std::move(listener);
  hand_out_ = std::move(hand_out);
  loop_.add(listener_.get(), EPOLLIN, on_accept_);
}

void RingThread::start() {
  thread_ = start_ready_thread([this] {
    ::pthread_setname_np(::pthread_self(), "headrace-rings");
    run();
  });
}

void RingThread::adopt(FileDescriptor socket) {
  {
    const std::lock_guard locked(adopting_);
    adopted_.push_back(std::move(socket));
  }
  clients_.fetch_add(1, std::memory_order_relaxed);
  wake();
}

void RingThread::accept() {
  constexpr int kAcceptsMost = 64;  // most connections accepted in one turn
  for (int i = 0; i < kAcceptsMost; ++i) {
    FileDescriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket.valid()) return;  // if no descriptor is left, the others are accepted later
    const std::optional<Peer> peer = peer_of(socket);
    const std::uint32_t most = shared_.config.shm_clients_max;
    if (!peer || peer->user != ::geteuid()) {
      refuse_client(socket, Errc::no_permission, "the server accepts only clients of its own user");
    } else if (shared_.ring_clients.fetch_add(1, std::memory_order_relaxed) >= most) {
      shared_.ring_clients.fetch_sub(1, std::memory_order_relaxed);
      refuse_client(socket, Errc::full,
                    fmt::format("the server has {} clients, the most that it accepts (--shm-clients)", most));
    } else {
      try {
        hand_out_(std::move(socket));
        continue;
      } catch (const std::bad_alloc&) {
        shared_.ring_clients.fetch_sub(1, std::memory_order_relaxed);
      }
    }
    shared_.connections_refused.fetch_add(1, std::memory_order_relaxed);
  }
}

void RingThread::take_adopted() {
  std::vector<FileDescriptor> come;
  {
    const std::lock_guard locked(adopting_);
    come.swap(adopted_);
  }
  for (FileDescriptor& socket : come) {
    try {
      auto free = std::ranges::find_if(links_, [](const auto& link) { return link == nullptr; });
      if (free == links_.end()) free = links_.emplace(links_.end());
      *free = std::make_unique<RingLink>(shared_, loop_, *this, std::move(socket));
      (*free)->number = static_cast<std::uint32_t>(free - links_.begin());
      shared_.connections.fetch_add(1, std::memory_order_relaxed);
      shared_.connections_open.fetch_add(1, std::memory_order_relaxed);
    } catch (const std::exception&) {  // out of memory, or no descriptor for watching the client
      shared_.connections_refused.fetch_add(1, std::memory_order_relaxed);
      clients_.fetch_sub(1, std::memory_order_relaxed);
      shared_.ring_clients.fetch_sub(1, std::memory_order_relaxed);
    }
  }
}

void RingThread::bury() noexcept {
  for (auto& link : links_) {
    if (link == nullptr || !link->over()) continue;
    link.reset();
    clients_.fetch_sub(1, std::memory_order_relaxed);
    shared_.ring_clients.fetch_sub(1, std::memory_order_relaxed);
    shared_.connections_open.fetch_sub(1, std::memory_order_release);
  }
}

RingLane& RingThread::lane_of(std::string_view model) {
  if (model.empty()) {
    std::string names;
    const RepositoryEntry* only = nullptr;
    for (const RepositoryEntry& entry : models_->entries()) {
      if (entry.served == nullptr) continue;
      only = names.empty() ? &entry : nullptr;
      names += (names.empty() ? "" : ", ") + entry.name;
    }
    if (names.empty()) throw RequestError(kNotFound, "no model is loaded");
    if (only == nullptr)
      throw RequestError(kNotFound, fmt::format("the server has several models; choose one of {}", names));
    model = only->name;
  }
  ServedModel& served = models_->require(model);
  const auto found = std::ranges::find_if(lanes_, [&](const auto& lane) { return &lane->served() == &served; });
  if (found == lanes_.end()) throw RequestError(kNotFound, fmt::format("model '{}' is being loaded", model));
  return **found;
}

void RingThread::take_news() {
  const std::uint64_t news = shared_.news.load(std::memory_order_acquire);
  {
    const std::lock_guard locked(shared_.publishing);
    lanes_.reserve(lanes_.size() + arriving_.size());
    std::ranges::move(arriving_, std::back_inserter(lanes_));
    arriving_.clear();
    models_ = shared_.published;
  }
  for (const auto& link : links_) {
    if (link == nullptr || link->ring() == nullptr) continue;
    const ServedModel& served = link->lane().served();
    const RepositoryEntry* const entry = models_->entry(served.model.name);
    if (entry == nullptr || entry->served.get() == &served) continue;
    if (entry->served == nullptr) {
      link->leave(fmt::format("model '{}' is not loaded: {}", entry->name, entry->reason));
    } else {
      link->leave(fmt::format("model '{}' has been reloaded; connect again", entry->name));
    }
  }
  retiring_ = true;
  seen_.store(news, std::memory_order_release);
}

void RingThread::retire() noexcept {
  retiring_ = false;
  std::erase_if(lanes_, [this](std::unique_ptr<RingLane>& lane) {
    ServedModel& served = lane->served();
    if (models_->find(served.model.name) == &served) return false;
    if (lane->used > 0 || lane->client().in_flight() > 0) {
      retiring_ = true;
      return false;
    }
    lane.reset();
    served.users.fetch_sub(1, std::memory_order_release);
    return true;
  });
}

}  // namespace headrace::wire::rings
