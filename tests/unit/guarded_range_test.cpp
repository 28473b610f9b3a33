#include "headrace/base/detail/guarded_range.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "headrace/base/detail/file_identity.hpp"
#include "headrace/base/error.hpp"
#include "headrace/fetch/detail/mapped_file.hpp"
#include "tests/sanitizers.hpp"
#include "tests/temporary_folder.hpp"

namespace headrace {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kPages = 8;

/// A mapping of a file of a few pages full of ones.
class Mapping {
 public:
  explicit Mapping(const std::filesystem::path& path) : descriptor_(::open(path.c_str(), O_RDWR | O_CREAT, 0600)) {
    const std::string ones(kPages * kPage, '\1');
    EXPECT_EQ(::pwrite(descriptor_, ones.data(), ones.size(), 0), static_cast<ssize_t>(ones.size()));
    data_ = static_cast<std::byte*>(::mmap(nullptr, ones.size(), PROT_READ, MAP_SHARED, descriptor_, 0));
    EXPECT_NE(data_, MAP_FAILED);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    ::munmap(data_, kPages * kPage);
    ::close(descriptor_);
  }
  void cut(std::size_t bytes) const { EXPECT_EQ(::ftruncate(descriptor_, static_cast<off_t>(bytes)), 0); }
  [[nodiscard]] const std::byte* data() const noexcept { return data_; }
  /// Number of bytes that are one; reads every byte.
  [[nodiscard]] std::size_t ones() const {
    return static_cast<std::size_t>(std::count(data_, data_ + kPages * kPage, std::byte{1}));
  }

 private:
  int descriptor_;
  std::byte* data_ = nullptr;
};

/// Whether a child's status is SIGBUS, which a sanitizer's runtime turns into an exit status.
bool ended_by_bus_error(int status) {
  return ::testing::KilledBySignal(SIGBUS)(status) ||
         (testing::kSanitized && WIFEXITED(status) && WEXITSTATUS(status) != 0);
}

TEST(GuardedRange, ReadsZerosWhereAFileHasLostItsPages) {
  const testing::TemporaryFolder folder;
  const Mapping mapping(folder.path() / "file");
  const GuardedRange guard(mapping.data(), kPages * kPage);
  EXPECT_EQ(mapping.ones(), kPages * kPage);
  EXPECT_FALSE(guard.lost());
  mapping.cut(3 * kPage + 100);
  EXPECT_EQ(mapping.ones(), 3 * kPage + 100);
  EXPECT_TRUE(guard.lost());
  mapping.cut(kPages * kPage);  // the file has grown again, but lost bytes stay lost
  EXPECT_EQ(mapping.ones(), 3 * kPage + 100);
  EXPECT_TRUE(guard.lost());
}

TEST(GuardedRange, ThreadsMayFaultTogetherAndInManyRanges) {
  const testing::TemporaryFolder folder;
  std::vector<std::unique_ptr<Mapping>> mappings;
  std::vector<GuardedRange> guards;
  for (int i = 0; i < 20; ++i) {
    mappings.push_back(std::make_unique<Mapping>(folder.path() / std::to_string(i)));
    guards.emplace_back(mappings.back()->data(), kPages * kPage);
  }
  for (int i = 0; i < 20; i += 2) mappings[static_cast<std::size_t>(i)]->cut(kPage);
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (const auto& mapping : mappings) EXPECT_GE(mapping->ones(), kPage);
    });
  }
  threads.clear();
  for (std::size_t i = 0; i < 20; ++i) EXPECT_EQ(guards[i].lost(), i % 2 == 0) << i;
}

TEST(GuardedRange, ARangeThatIsGuardedNoMoreEndsTheProcess) {
  const testing::TemporaryFolder folder;
  const Mapping mapping(folder.path() / "file");
  {
    const GuardedRange guard(mapping.data(), kPages * kPage);
    const GuardedRange none(nullptr, 0);
    EXPECT_FALSE(none.lost());
  }
  mapping.cut(kPage);
  EXPECT_EXIT(EXPECT_EQ(mapping.ones(), kPage), ended_by_bus_error, "");
}

TEST(GuardedRange, ASignalThatSomebodySentEndsTheProcess) {
  const testing::TemporaryFolder folder;
  const Mapping mapping(folder.path() / "file");
  const GuardedRange guard(mapping.data(), kPages * kPage);
  EXPECT_EXIT(::raise(SIGBUS), ended_by_bus_error, "");
}

TEST(FileIdentity, TellsAWriteWhateverTimesAreSet) {
  const testing::TemporaryFolder folder;
  const auto path = folder.path() / "file";
  std::ofstream(path) << "some bytes";
  const int descriptor = ::open(path.c_str(), O_RDWR);
  for (int i = 0; i < 20; ++i) {
    const FileIdentity then = settled_identity(descriptor, path);
    EXPECT_TRUE(is_unchanged(then, identity_of(descriptor, path)));
    struct stat status{};
    ASSERT_EQ(::fstat(descriptor, &status), 0);
    ASSERT_EQ(::pwrite(descriptor, "b", 1, 0), 1);
    const timespec times[2] = {status.st_atim, status.st_mtim};
    ASSERT_EQ(::futimens(descriptor, times), 0);
    const FileIdentity now = identity_of(descriptor, path);
    EXPECT_EQ(now.modified_ns, then.modified_ns);
    EXPECT_FALSE(is_unchanged(then, now)) << i;
  }
  const FileIdentity before = settled_identity(descriptor, path);
  std::ofstream(folder.path() / "other") << "others";
  std::filesystem::rename(folder.path() / "other", path);
  EXPECT_TRUE(is_unchanged(before, identity_of(descriptor, path)));  // the file has lost only its name
  ::close(descriptor);
}

TEST(MappedFile, SaysThatItHasChanged) {
  const testing::TemporaryFolder folder;
  const auto path = folder.path() / "file";
  std::ofstream(path) << std::string(3 * kPage, 'a');
  const fetch::MappedFile file(path, "the file");
  EXPECT_NO_THROW(file.require_unchanged());
  EXPECT_EQ(file.bytes_from(file.data() + 5), 3 * kPage - 5);
  EXPECT_EQ(file.bytes_from(file.data() + 3 * kPage), 0U);
  EXPECT_EQ(file.bytes_from(nullptr), 0U);
  std::filesystem::resize_file(path, kPage);
  const auto says = [&](const char* what) {
    try {
      file.require_unchanged();
      return false;
    } catch (const DataError& error) {
      return std::string(error.what()).starts_with(what);
    }
  };
  EXPECT_TRUE(says("the file has been cut short"));
  EXPECT_EQ(file.data()[2 * kPage], std::byte{0});
  std::filesystem::resize_file(path, 3 * kPage);
  EXPECT_TRUE(says("the file has been cut short"));  // a page was read while it was missing
}

TEST(MappedFile, OpensNothingThatIsNoFile) {
  const testing::TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder.path() / "pipe").c_str(), 0600), 0);
  EXPECT_THROW(fetch::MappedFile(folder.path() / "pipe"), UsageError);
  EXPECT_THROW(fetch::MappedFile("/dev/null"), UsageError);
}

}  // namespace
}  // namespace headrace
