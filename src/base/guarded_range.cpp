#include "headrace/base/detail/guarded_range.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <mutex>

#include "headrace/base/error.hpp"

namespace headrace {

/// An entry of a list that only grows, so that the handler can walk it without a lock. `version` is odd while the range
/// is being written, and pairs with the handler's two loads of it.
struct GuardedRange::Slot {
  std::atomic<std::uint64_t> version{0};
  std::atomic<std::uintptr_t> begin{0};  ///< 0: the slot is free.
  std::atomic<std::uintptr_t> end{0};
  std::atomic<bool> lost{false};
  Slot* next = nullptr;  ///< Written before the slot is in the list.

  void set(std::uintptr_t first, std::uintptr_t last) noexcept {
    version.fetch_add(1, std::memory_order_acq_rel);
    begin.store(first, std::memory_order_release);
    end.store(last, std::memory_order_release);
    version.fetch_add(1, std::memory_order_acq_rel);
  }
};

struct GuardedRanges {
  using Slot = GuardedRange::Slot;

  std::mutex mutex;                   ///< Guards hold it while they come and go; the handler takes no lock.
  std::atomic<Slot*> first{nullptr};  ///< Pairs with the handler's load.
  struct sigaction previous{};        ///< The handler that ours replaced.
  std::uintptr_t page = 1;            ///< Bytes.

  static GuardedRanges& all() {
    static GuardedRanges* const ranges = new GuardedRanges;  // a signal may arrive after the last destructor
    return *ranges;
  }

  static void on_fault(int number, siginfo_t* info, void* /*context*/) noexcept {
    const int saved = errno;
    const bool from_memory = info->si_code == BUS_ADRERR;
    if (!from_memory || !all().fill(reinterpret_cast<std::uintptr_t>(info->si_addr))) all().pass_on(number, *info);
    errno = saved;
  }

  /// Maps zeros from the faulting page of a guarded range to its end. False if no guarded range contains `at`.
  bool fill(std::uintptr_t at) noexcept {
    for (Slot* slot = first.load(std::memory_order_acquire); slot != nullptr; slot = slot->next) {
      const std::uint64_t version = slot->version.load(std::memory_order_acquire);
      const std::uintptr_t begin = slot->begin.load(std::memory_order_acquire);
      const std::uintptr_t end = slot->end.load(std::memory_order_acquire);
      if (version % 2 != 0 || slot->version.load(std::memory_order_acquire) != version) continue;
      if (begin == 0 || at < begin || at >= end) continue;
      slot->lost.store(true, std::memory_order_release);
      const std::uintptr_t from = at & ~(page - 1);      // a page has a power of two bytes
      void* const lost = reinterpret_cast<void*>(from);  // NOLINT(performance-no-int-to-ptr): as the signal gives it
      constexpr int kInPlace = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
      return ::mmap(lost, end - from, PROT_READ, kInPlace, -1, 0) != MAP_FAILED;
    }
    return false;
  }

  /// Restores the previous handler and lets the signal be raised again, so that the previous handler gets it.
  void pass_on(int number, const siginfo_t& info) noexcept {
    ::sigaction(number, &previous, nullptr);
    previous = {};
    previous.sa_handler = SIG_DFL;           // it may have been installed over ours and pass the signal back to us
    if (info.si_code <= 0) ::raise(number);  // another process sent it, so no instruction will raise it again
  }

  /// The mutex must be held.
  void install() {
    page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    struct sigaction current{};
    if (::sigaction(SIGBUS, nullptr, &current) != 0) throw_errno("reading the SIGBUS handler");
    if ((current.sa_flags & SA_SIGINFO) != 0 && current.sa_sigaction == &on_fault) return;
    previous = current;
    struct sigaction ours{};
    ours.sa_sigaction = &on_fault;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&ours.sa_mask);
    if (::sigaction(SIGBUS, &ours, nullptr) != 0) throw_errno("installing a SIGBUS handler");
  }

  /// The mutex must be held.
  Slot& free_slot() {
    for (Slot* slot = first.load(std::memory_order_relaxed); slot != nullptr; slot = slot->next) {
      if (slot->begin.load(std::memory_order_relaxed) == 0) return *slot;
    }
    auto* const made = new Slot;
    made->next = first.load(std::memory_order_relaxed);
    first.store(made, std::memory_order_release);
    return *made;
  }
};

GuardedRange::GuardedRange(const std::byte* data, std::size_t bytes) {
  if (bytes == 0) return;
  auto& ranges = GuardedRanges::all();
  const std::lock_guard lock(ranges.mutex);
  ranges.install();
  Slot& slot = ranges.free_slot();
  slot.lost.store(false, std::memory_order_relaxed);
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  slot.set(begin, begin + (bytes + ranges.page - 1) / ranges.page * ranges.page);
  slot_ = &slot;
}

GuardedRange::~GuardedRange() {
  if (slot_ == nullptr) return;
  const std::lock_guard lock(GuardedRanges::all().mutex);
  slot_->set(0, 0);
}

bool GuardedRange::lost() const noexcept { return slot_ != nullptr && slot_->lost.load(std::memory_order_acquire); }

}  // namespace headrace
