// Writing whole files: what they replace, which writes go through links, and what remains after a failure.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <thread>

#include "base/output_file.hpp"
#include "headrace/base/error.hpp"
#include "tests/temporary_folder.hpp"

namespace headrace {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string content(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::size_t entries(const std::filesystem::path& folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

mode_t mode(const std::filesystem::path& path) {
  struct stat status{};
  EXPECT_EQ(::stat(path.c_str(), &status), 0);
  return status.st_mode & 07777U;
}

class OutputFileTest : public ::testing::Test {
 protected:
  testing::TemporaryFolder folder_;
  std::filesystem::path path_ = folder_.path() / "figures.json";
};

TEST_F(OutputFileTest, NothingIsThereUntilItIsCommitted) {
  OutputFile file(path_);
  file.write(bytes_of("first "));
  file.write(bytes_of("second"));
  EXPECT_FALSE(std::filesystem::exists(path_));
  file.commit();
  EXPECT_EQ(content(path_), "first second");
  EXPECT_EQ(entries(folder_.path()), 1U);
}

TEST_F(OutputFileTest, WhatIsNotCommittedLeavesTheOldFileAndNothingElse) {
  write_output(path_, bytes_of("old"));
  {
    OutputFile file(path_);
    file.write(bytes_of("new"));
  }
  EXPECT_EQ(content(path_), "old");
  EXPECT_EQ(entries(folder_.path()), 1U);
}

TEST_F(OutputFileTest, OthersCanWriteToItByName) {
  OutputFile file(path_);
  std::ofstream(file.staging()) << "by name";
  file.commit();
  EXPECT_EQ(content(path_), "by name");
}

TEST_F(OutputFileTest, TheModeIsTheUmasksAndThatOfTheFileBefore) {
  const mode_t before = ::umask(0027);
  write_output(path_, bytes_of("new"));
  EXPECT_EQ(mode(path_), 0640U);
  ASSERT_EQ(::chmod(path_.c_str(), 0604), 0);
  write_output(path_, bytes_of("newer"));
  EXPECT_EQ(mode(path_), 0604U);
  ::umask(before);
}

TEST_F(OutputFileTest, SymbolicLinksStay) {
  const auto link = folder_.path() / "link";
  std::filesystem::create_symlink("figures.json", link);  // dangling
  write_output(link, bytes_of("one"));
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(content(path_), "one");
  write_output(link, bytes_of("two"));
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(content(path_), "two");
}

TEST_F(OutputFileTest, ACircleOfLinksIsRefused) {
  std::filesystem::create_symlink("b", folder_.path() / "a");
  std::filesystem::create_symlink("a", folder_.path() / "b");
  EXPECT_THROW(check_output(folder_.path() / "a"), SystemError);
}

TEST_F(OutputFileTest, AFifoGetsTheBytesAndStays) {
  const auto fifo = folder_.path() / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const std::string large(300'000, 'x');  // more than a pipe can hold
  std::string got;
  std::thread reader([&] { got = content(fifo); });
  write_output(fifo, bytes_of(large));
  reader.join();
  EXPECT_EQ(got, large);
  EXPECT_TRUE(std::filesystem::is_fifo(fifo));
}

TEST_F(OutputFileTest, WaitingForAReaderEndsWhenTheCallerThrows) {
  const auto fifo = folder_.path() / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  struct Interrupted {};
  struct sigaction action{};
  action.sa_handler = [](int /*signal*/) {};  // without SA_RESTART: open() fails with EINTR
  struct sigaction before{};
  ASSERT_EQ(::sigaction(SIGALRM, &action, &before), 0);
  OutputFile file(fifo);
  ::ualarm(20'000, 20'000);
  EXPECT_THROW(file.commit([] { throw Interrupted(); }), Interrupted);
  ::ualarm(0, 0);
  ::sigaction(SIGALRM, &before, nullptr);
}

TEST_F(OutputFileTest, ADeviceNodeGetsTheBytesAndStays) {
  const auto node = folder_.path() / "null";
  if (::mknod(node.c_str(), S_IFCHR | 0600, makedev(1, 3)) != 0) GTEST_SKIP() << "this process may not make nodes";
  std::ofstream opened(node);
  if (!opened) GTEST_SKIP() << "this file system has no device nodes";
  write_output(node, bytes_of("gone"));
  EXPECT_TRUE(std::filesystem::is_character_file(node));
  EXPECT_EQ(entries(folder_.path()), 1U);
}

TEST_F(OutputFileTest, AFullDeviceIsAnErrorThatNamesIt) {
  const auto node = folder_.path() / "full";
  if (::mknod(node.c_str(), S_IFCHR | 0600, makedev(1, 7)) != 0) GTEST_SKIP() << "this process may not make nodes";
  if (!std::ofstream(node)) GTEST_SKIP() << "this file system has no device nodes";
  try {
    write_output(node, bytes_of("gone"));
    FAIL() << "nothing was thrown";
  } catch (const SystemError& error) {
    EXPECT_EQ(error.native(), ENOSPC);
    EXPECT_NE(std::string(error.what()).find(node.string()), std::string::npos) << error.what();
  }
  EXPECT_TRUE(std::filesystem::is_character_file(node));
}

TEST_F(OutputFileTest, NamesOfAnyLengthAreWritten) {
  const auto longest = folder_.path() / std::string(255, 'n');
  write_output(longest, bytes_of("long"));
  EXPECT_EQ(content(longest), "long");
}

TEST_F(OutputFileTest, WhatCannotBeWrittenIsKnownBefore) {
  EXPECT_THROW(check_output(folder_.path()), UsageError);
  EXPECT_THROW(check_output(""), UsageError);
  try {
    check_output(folder_.path() / "no" / "such");
    FAIL() << "nothing was thrown";
  } catch (const SystemError& error) {
    EXPECT_EQ(error.code(), Errc::not_found);
  }
  EXPECT_THROW(check_output("/proc/figures.json"), SystemError);
  write_output(path_, bytes_of("file"));
  EXPECT_THROW(check_output(path_ / "below"), SystemError);
  check_output(path_);
  EXPECT_EQ(content(path_), "file");
}

TEST_F(OutputFileTest, AStandardStreamGoesOnWhereItIs) {
  const int kept = ::dup(STDOUT_FILENO);
  const int file = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ::dup2(file, STDOUT_FILENO);
  ::close(file);
  EXPECT_EQ(::write(STDOUT_FILENO, "before ", 7), 7);
  write_output("/proc/self/fd/1", bytes_of("whole "));
  EXPECT_EQ(::write(STDOUT_FILENO, "after", 5), 5);
  ::dup2(kept, STDOUT_FILENO);
  ::close(kept);
  EXPECT_EQ(content(path_), "before whole after");
}

}  // namespace
}  // namespace headrace
