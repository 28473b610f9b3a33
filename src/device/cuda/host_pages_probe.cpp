#include "device/cuda/host_pages_probe.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

#include "headrace/base/detail/clock.hpp"

namespace headrace::detail::cuda {

namespace {

constexpr const char* kProgram = "headrace-host-pages-probe";
/// Starting CUDA takes a second or two, and ten on machines with many GPUs.
constexpr std::chrono::seconds kPatience{60};

/// The file that contains this code: the Python extension, a shared library, or the program.
std::filesystem::path own_file() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&host_pages_absence), &info) == 0 || info.dli_fname == nullptr) return {};
  std::error_code ignored;
  return std::filesystem::canonical(info.dli_fname, ignored);
}

std::string find_program() {
  const auto beside = own_file().parent_path();
  for (const auto& folder :
       {beside, beside / "../libexec/headrace", beside / "../lib/headrace",
        std::filesystem::path(HEADRACE_PROBE_FOLDER), std::filesystem::path(HEADRACE_BUILD_FOLDER)}) {
    if (folder.empty()) continue;
    const auto file = folder / kProgram;
    if (access(file.c_str(), X_OK) == 0) return file;
  }
  return {};
}

/// A child process whose output this process reads.
class Child {
 public:
  Child() = default;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (output_ >= 0) close(output_);
    if (pid_ <= 0) return;
    if (!ended_) kill(pid_, SIGKILL);
    static_cast<void>(waitpid(pid_, nullptr, 0));
  }

  /// Starts the child. Returns 0 or an errno.
  [[nodiscard]] int start(const std::string& program, int ordinal, int numa_node) {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) return errno;
    output_ = ends[0];
    std::string device = fmt::format("{}", ordinal);
    std::string node = fmt::format("{}", numa_node);
    std::string name = program;
    std::array<char*, 4> arguments{name.data(), device.data(), node.data(), nullptr};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    const int status = posix_spawn(&pid_, program.c_str(), &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (status != 0) pid_ = -1;
    return status;
  }

  /// The child's output until it ended; nullopt if it did not end in time.
  [[nodiscard]] std::optional<std::string> output() {
    std::string text;
    const Time give_up = SteadyClock::now() + kPatience;
    while (true) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(give_up - SteadyClock::now()).count();
      pollfd waiting{output_, POLLIN, 0};
      const int ready = left > 0 ? poll(&waiting, 1, static_cast<int>(left)) : 0;
      if (ready == 0) return {};
      std::array<char, 256> part{};
      const ssize_t bytes = ready > 0 ? ::read(output_, part.data(), part.size()) : -1;
      if (bytes > 0) text.append(part.data(), static_cast<std::size_t>(bytes));
      if (bytes < 0 && errno != EINTR) return {};
      if (bytes == 0) break;
    }
    ended_ = true;
    return text;
  }

 private:
  pid_t pid_ = -1;
  int output_ = -1;
  bool ended_ = false;
};

/// Uses the child's output instead of its exit status, which a process that ignores SIGCHLD does not get.
std::string try_in_child(const std::string& program, int ordinal, int numa_node) {
  Child child;
  if (const int status = child.start(program, ordinal, numa_node); status != 0) {
    return fmt::format("{} cannot be started: {}", program, std::generic_category().message(status));
  }
  const auto text = child.output();
  if (!text) return fmt::format("creating a host page hangs in the driver (tried by {})", program);
  // A tool that watches CUDA (a profiler, a sanitizer) may have written text before it.
  if (text->ends_with("ok\n")) return {};
  if (text->empty())
    return fmt::format("creating a host page crashes in the driver (tried by {}); update the driver", program);
  return text->substr(0, text->find('\n'));
}

}  // namespace

std::string host_pages_absence(int ordinal, int numa_node) {
  const char* const setting = std::getenv("HEADRACE_HOST_PAGES");
  const std::string_view said = setting == nullptr ? "" : setting;
  if (said == "yes") return {};
  if (said == "no") return "HEADRACE_HOST_PAGES=no";
  const std::string program = said.empty() ? find_program() : std::string(said);
  if (program.empty()) {
    return fmt::format(
        "{} is not next to the library, so Headrace cannot test whether the driver creates host pages without "
        "crashing; install it, or set HEADRACE_HOST_PAGES=yes to skip the test",
        kProgram);
  }
  return try_in_child(program, ordinal, numa_node);
}

}  // namespace headrace::detail::cuda
