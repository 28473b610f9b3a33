#include "headrace/device/detail/host_memory.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>

#include "device/host_memory_files.hpp"
#include "tests/temporary_folder.hpp"

namespace headrace::testing {
namespace {

using Files = std::map<std::string, std::string>;

constexpr const char* kMachine = "MemTotal:       4096 kB\nMemFree: 10 kB\nMemAvailable: 1000 kB\nSwapFree: 24 kB\n";

/// Result of host_memory_of() if the folders hold these files.
MemoryInfo memory_of(const Files& proc, const Files& groups) {
  const TemporaryFolder folder;
  for (const auto& [root, files] : {std::pair("proc", proc), std::pair("groups", groups)}) {
    for (const auto& [name, text] : files) {
      const auto path = folder.path() / root / name;
      std::filesystem::create_directories(path.parent_path());
      std::ofstream(path) << text;
    }
  }
  return detail::host_memory_of(folder.path() / "proc", folder.path() / "groups");
}

TEST(HostMemory, WhereNothingSaysThereIsNoLimit) {
  EXPECT_EQ(memory_of({}, {}).free_bytes, detail::kNoLimit);
  EXPECT_EQ(memory_of({}, {}).total_bytes, detail::kNoLimit);
}

TEST(HostMemory, TheMachineSaysWhatItHasWithoutSwap) {
  const MemoryInfo info = memory_of({{"meminfo", kMachine}}, {});
  EXPECT_EQ(info.total_bytes, 4096U << 10);
  EXPECT_EQ(info.free_bytes, 1000U << 10);
}

TEST(HostMemory, OldKernelsDoNotSayWhatIsAvailable) {
  EXPECT_EQ(memory_of({{"meminfo", "MemTotal: 4096 kB\n"}}, {}).free_bytes, 4096U << 10);
}

TEST(HostMemory, AGroupWithoutALimitChangesNothing) {
  const MemoryInfo info = memory_of({{"meminfo", kMachine}, {"self/cgroup", "0::/a/b\n"}},
                                    {{"a/b/memory.max", "max\n"}, {"a/b/memory.current", "7\n"}});
  EXPECT_EQ(info.free_bytes, 1000U << 10);
  EXPECT_EQ(info.total_bytes, 4096U << 10);
}

TEST(HostMemory, AGroupAboveTheProcessLimitsIt) {
  const MemoryInfo info = memory_of({{"meminfo", kMachine}, {"self/cgroup", "0::/a/b\n"}},
                                    {{"a/memory.max", "5000\n"}, {"a/memory.current", "4000\n"}});
  EXPECT_EQ(info.free_bytes, 1000U);
  EXPECT_EQ(info.total_bytes, 5000U);
}

TEST(HostMemory, AContainerSeesItsLimitAtTheRoot) {
  const MemoryInfo info =
      memory_of({{"self/cgroup", "0::/docker/4f1c\n"}}, {{"memory.max", "5000\n"}, {"memory.current", "6000\n"}});
  EXPECT_EQ(info.free_bytes, 0U);
}

TEST(HostMemory, PagesOfFilesCanBeDropped) {
  const MemoryInfo info =
      memory_of({{"self/cgroup", "0::/a/b\n"}}, {{"a/b/memory.max", "5000\n"},
                                                 {"a/b/memory.current", "4000\n"},
                                                 {"a/b/memory.stat", "anon 1\ninactive_file 300\nactive_file 20\n"}});
  EXPECT_EQ(info.free_bytes, 1320U);
}

TEST(HostMemory, TheFirstVersionOfGroupsHasOtherNames) {
  const MemoryInfo info = memory_of({{"self/cgroup", "4:cpu,memory:/a/b\n3:pids:/\n0::/\n"}},
                                    {{"memory/a/b/memory.limit_in_bytes", "5000\n"},
                                     {"memory/a/b/memory.usage_in_bytes", "4000\n"},
                                     {"memory/a/b/memory.stat",
                                      "inactive_file 7\ntotal_inactive_file 300\n"
                                      "total_active_file 20\n"},
                                     {"memory/memory.limit_in_bytes", "9223372036854771712\n"},
                                     {"memory/memory.usage_in_bytes", "4000\n"}});
  EXPECT_EQ(info.free_bytes, 1320U);
  EXPECT_EQ(info.total_bytes, 5000U);
}

TEST(HostMemory, ThisMachineHasSome) {
  const MemoryInfo info = host_memory();
  EXPECT_GT(info.free_bytes, 0U);
  EXPECT_LE(info.free_bytes, info.total_bytes);
  EXPECT_LT(info.total_bytes, detail::kNoLimit);
}

}  // namespace
}  // namespace headrace::testing
