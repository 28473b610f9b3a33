#include "headrace/ingest/detail/capabilities.hpp"

#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "headrace/base/detail/clock.hpp"
#include "headrace/base/error.hpp"

namespace headrace::ingest {

namespace {

constexpr unsigned kBpf = 39;  ///< CAP_BPF of Linux 5.8.
constexpr std::array<unsigned, 3> kDropped{CAP_NET_ADMIN, CAP_NET_RAW, kBpf};
constexpr const char* kDoing = "dropping CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF";
constexpr Duration kLimit = std::chrono::seconds(5);
constexpr Duration kNap = std::chrono::milliseconds(1);

constexpr std::uint64_t dropped_mask() noexcept {
  std::uint64_t mask = 0;
  for (const unsigned capability : kDropped) mask |= std::uint64_t{1} << capability;
  return mask;
}

/// Drops the capabilities of the calling thread, by system calls that are allowed in a signal handler. On failure
/// returns false and sets errno.
bool drop_here() noexcept {
  // Comes first, because it needs CAP_SETPCAP. Without that, or if the kernel does not know a capability, the bounding
  // set stays as it is.
  for (const unsigned capability : kDropped) (void)::prctl(PR_CAPBSET_DROP, capability, 0UL, 0UL, 0UL);
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> sets{};
  if (::syscall(SYS_capget, &header, sets.data()) != 0) return false;
  for (std::size_t i = 0; i < sets.size(); ++i) {
    const auto keep = ~static_cast<std::uint32_t>(dropped_mask() >> (32 * i));
    sets[i].effective &= keep;
    sets[i].permitted &= keep;
    sets[i].inheritable &= keep;  // and with it the ambient set
  }
  return ::syscall(SYS_capset, &header, sets.data()) == 0;
}

void on_signal(int /*signal*/) noexcept {
  const int before = errno;
  (void)drop_here();  // the thread's status says whether it worked
  errno = before;
}

/// Installs the handler for the highest real-time signal without one. It stays, because a signal may arrive late.
int install_handler() {
  for (int signal = SIGRTMAX; signal >= SIGRTMIN; --signal) {
    struct sigaction old{};
    if (::sigaction(signal, nullptr, &old) != 0) continue;
    if ((old.sa_flags & SA_SIGINFO) != 0 || old.sa_handler != SIG_DFL) continue;
    struct sigaction ours{};
    ours.sa_handler = &on_signal;
    ours.sa_flags = SA_RESTART;
    sigfillset(&ours.sa_mask);
    if (::sigaction(signal, &ours, nullptr) == 0) return signal;
  }
  throw SystemError(Errc::system,
                    fmt::format("{}: every real-time signal of this process already has a handler", kDoing));
}

/// True if a thread has one of the capabilities, by its status file. A thread that has ended has none.
bool holds(const std::string& thread) {
  std::ifstream status("/proc/self/task/" + thread + "/status");
  std::string line;
  while (std::getline(status, line)) {
    const std::string_view text(line);
    const bool is_set = text.starts_with("CapInh:") || text.starts_with("CapPrm:") || text.starts_with("CapEff:") ||
                        text.starts_with("CapAmb:");
    const std::size_t digits = text.find_first_of("0123456789abcdef", sizeof "CapInh:" - 1);
    if (!is_set || digits == std::string_view::npos) continue;
    std::uint64_t set = 0;
    std::from_chars(text.data() + digits, text.data() + text.size(), set, 16);
    if ((set & dropped_mask()) != 0) return true;
  }
  return false;
}

/// The threads of this process that have one of the capabilities.
std::vector<std::string> holders() {
  std::vector<std::string> found;
  std::error_code problem;
  const std::filesystem::directory_iterator tasks("/proc/self/task", problem);
  if (problem) throw_errno(fmt::format("{}: listing the threads in /proc/self/task", kDoing), problem.value());
  for (const auto& task : tasks) {
    if (const std::string thread = task.path().filename(); holds(thread)) found.push_back(thread);
  }
  return found;
}

std::string name_of(const std::string& thread) {
  std::string name;
  std::getline(std::ifstream("/proc/self/task/" + thread + "/comm"), name);
  return name;
}

}  // namespace

void drop_capabilities() {
  static std::mutex mutex;
  static int signal = 0;
  const std::lock_guard lock(mutex);
  std::vector<std::string> left = holders();
  if (left.empty()) return;
  if (signal == 0) signal = install_handler();
  if (!drop_here()) throw_errno(kDoing);
  const Time until = SteadyClock::now() + kLimit;
  std::set<std::string> told{std::to_string(::gettid())};
  // A thread that another thread has just started may be missing from one listing, but not from the next.
  for (int none = 0; none < 2;) {
    left = holders();
    none = left.empty() ? none + 1 : 0;
    for (const std::string& thread : left) {
      if (told.insert(thread).second) (void)::syscall(SYS_tgkill, ::getpid(), std::stoi(thread), signal);
    }
    if (left.empty()) continue;
    if (SteadyClock::now() > until) {
      throw SystemError(Errc::no_permission,
                        fmt::format("{}: thread {} ({}) still holds them; it may be blocking signals", kDoing,
                                    left.front(), name_of(left.front())));
    }
    std::this_thread::sleep_for(kNap);
  }
}

}  // namespace headrace::ingest
