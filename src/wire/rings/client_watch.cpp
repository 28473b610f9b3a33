#include <sys/epoll.h>

#include "headrace/base/error.hpp"
#include "headrace/wire/client.hpp"
#include "wire/rings/client_state.hpp"

// Support for event loops.

namespace headrace::wire {

int Client::descriptor() {
  State& state = *state_;
  if (state.for_loops.valid()) return state.for_loops.get();
  FileDescriptor made(::epoll_create1(EPOLL_CLOEXEC));
  if (!made.valid()) throw_errno("creating a descriptor for an event loop");
  if (!state.ended) {
    epoll_event readable{.events = EPOLLIN, .data = {}};
    for (const FileDescriptor* watched : {&state.socket, &state.process}) {
      if (!watched->valid()) continue;
      if (::epoll_ctl(made.get(), EPOLL_CTL_ADD, watched->get(), &readable) != 0) {
        throw_errno("watching a server for an event loop");
      }
    }
  }
  state.for_loops = std::move(made);
  return state.for_loops.get();
}

void Client::State::unwatch() noexcept {
  if (!for_loops.valid()) return;
  for (const FileDescriptor* one : {&socket, &process}) {
    if (one->valid()) ::epoll_ctl(for_loops.get(), EPOLL_CTL_DEL, one->get(), nullptr);
  }
}

bool Client::watch() noexcept {
  State& state = *state_;
  if (state.birth.inherited()) return true;
  rings::HeadWords& head = state.view.head();
  const auto sleeps = rings::word(head.client_sleeps);
  sleeps.store(1, std::memory_order_seq_cst);
  static_cast<void>(rings::word(head.answered).load(std::memory_order_seq_cst));  // see HeadWords
  if (state.taken == state.next || !state.settled(state.taken)) return true;
  sleeps.store(0, std::memory_order_relaxed);
  return false;
}

void Client::forget_watch() noexcept {
  if (!state_->birth.inherited()) rings::word(state_->view.head().client_sleeps).store(0, std::memory_order_relaxed);
}

bool Client::take_notice() noexcept {
  State& state = *state_;
  return !state.birth.inherited() && !state.ended && state.look_at_other();
}

Time Client::soonest_deadline() const noexcept { return state_->late.soonest(); }

}  // namespace headrace::wire
