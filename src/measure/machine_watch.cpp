#include "headrace/measure/detail/machine_watch.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>

namespace headrace::measure {

namespace {

constexpr double kOthersMost = 0.10;
constexpr double kStealMost = 0.02;
constexpr Duration kShortest = std::chrono::milliseconds(100);

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

/// CPU time of this process and of its ended children.
double own_seconds() {
  double seconds = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    if (::getrusage(who, &usage) == 0) seconds += seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
  }
  return seconds;
}

bool may_use(const cpu_set_t& set, int processor) {
  return processor >= CPU_SETSIZE || CPU_ISSET(static_cast<std::size_t>(processor), &set) != 0;
}

/// "total=" of the first line of /proc/pressure/cpu, in seconds; 0 if the kernel does not have it.
double waiting_seconds() {
  std::ifstream in("/proc/pressure/cpu");
  std::string line;
  if (!std::getline(in, line)) return 0;
  const auto at = line.find("total=");
  return at == std::string::npos ? 0 : std::strtod(line.c_str() + at + std::strlen("total="), nullptr) * 1e-6;
}

/// Other tasks that run or wait for a processor, from the fourth field of /proc/loadavg, such as "3/412".
double runnable_tasks() {
  std::ifstream in("/proc/loadavg");
  std::string word;
  for (int field = 0; field < 4; ++field) in >> word;
  return std::max(0.0, std::strtod(word.c_str(), nullptr) - 1);  // minus this thread
}

}  // namespace

MachineWatch::Reading MachineWatch::read() {
  Reading reading;
  reading.at = SteadyClock::now();
  cpu_set_t set;
  CPU_ZERO(&set);
  const bool known = ::sched_getaffinity(0, sizeof(set), &set) == 0;
  const double tick = 1.0 / static_cast<double>(std::max(1L, ::sysconf(_SC_CLK_TCK)));
  std::ifstream in("/proc/stat");
  for (std::string line; std::getline(in, line) && line.starts_with("cpu");) {
    int processor = 0;  // from a line such as "cpu1 4705 150"; the line "cpu 4705" is their sum
    const auto [end, error] = std::from_chars(line.data() + 3, line.data() + line.size(), processor);
    if (error != std::errc{} || (known && !may_use(set, processor))) continue;
    std::istringstream fields(line.substr(line.find(' ')));
    // user, nice, system, idle, iowait, irq, softirq, steal (proc(5)).
    std::array<double, 8> ticks{};
    for (double& value : ticks) fields >> value;
    const double idle = ticks[3] + ticks[4];
    const double all = ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6];
    reading.busy += all * tick;
    reading.steal += ticks[7] * tick;
    reading.processors += 1;
    reading.total += (all + idle + ticks[7]) * tick;
  }
  reading.own = own_seconds();
  reading.waiting = waiting_seconds();
  return reading;
}

MachineActivity MachineWatch::lap() {
  const Reading now = read();
  const Reading before = std::exchange(last_, now);
  MachineActivity activity;
  activity.over = now.at - before.at;
  activity.runnable = runnable_tasks() / std::max(1.0, now.processors);
  const double total = now.total - before.total;
  if (activity.over < kShortest || total <= 0) return activity;
  const auto share = [&](double part) { return std::clamp(part / total, 0.0, 1.0); };
  activity.steal = share(now.steal - before.steal);
  activity.others = share((now.busy - before.busy) - (now.own - before.own));
  const double wall = std::chrono::duration<double>(activity.over).count();
  activity.waiting = std::clamp((now.waiting - before.waiting) / wall, 0.0, 1.0);
  return activity;
}

std::string why_disturbed(const MachineActivity& activity) {
  if (activity.steal > kStealMost) {
    return fmt::format("the hypervisor took {:.0f}% of the processors' time", 100 * activity.steal);
  }
  if (activity.others > kOthersMost) {
    return fmt::format("other programs took {:.0f}% of the processors' time", 100 * activity.others);
  }
  if (activity.over < kShortest && activity.runnable >= 1) {
    return fmt::format("{:.1f} other tasks ran or waited for each processor", activity.runnable);
  }
  return {};
}

}  // namespace headrace::measure
