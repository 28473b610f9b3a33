#include "headrace/base/detail/process.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string>
#include <vector>

#include "base/nearest.hpp"
#include "headrace/base/detail/threads.hpp"
#include "headrace/device/buffer.hpp"
#include "headrace/device/copy_batch.hpp"
#include "headrace/device/stream.hpp"
#include "tests/sanitizers.hpp"

namespace headrace::testing {
namespace {

/// Whether `check` is true in a forked child; a child that hangs is killed.
template <class Check>
bool in_child(Check check) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    ::_exit(check() ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(Processes, AChildKnowsWhatItInherited) {
  const Birth here;
  EXPECT_FALSE(here.inherited());
  EXPECT_TRUE(here.check());
  EXPECT_TRUE(in_child([&] {
    const Birth own;
    return here.inherited() && here.check().error() == kInherited && !own.inherited() &&
           in_child([&] { return own.inherited(); });
  }));
  EXPECT_FALSE(here.inherited());
}

TEST(Processes, AChildMakesAnewWhatIsProcessWide) {
  static int& count = make_process_wide<int>();
  count = 7;
  EXPECT_TRUE(in_child([] { return count == 0; }));
  EXPECT_EQ(count, 7);
}

TEST(Processes, InheritedStreamsEventsAndBatchesRefuseAndNewOnesWork) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer cannot start threads in the child of a process with threads";
  const Device device = Device::parse("cpu:47");
  std::array<int, 2> from{3, 4};
  std::array<int, 2> to{};
  Stream stream(device);
  const Event event(device);
  CopyBatch batch(stream);
  ASSERT_TRUE(stream.copy(to.data(), from.data(), sizeof(from)));
  ASSERT_TRUE(stream.record(event));
  ASSERT_TRUE(stream.wait());
  EXPECT_TRUE(in_child([&] {
    const auto refused = [](const auto& result) { return !result && result.error() == kInherited; };
    if (!refused(stream.copy(to.data(), from.data(), sizeof(from))) || !refused(stream.wait()) ||
        !refused(stream.ready()) || !refused(event.wait()) || !refused(event.ready()) || !refused(stream.record(event)))
      return false;
    static_cast<void>(batch.add(to.data(), from.data(), sizeof(from)));
    if (!refused(batch.wait())) return false;
    const Stream own(device);
    if (!refused(own.wait_for(event))) return false;
    from = {5, 6};
    return own.copy(to.data(), from.data(), sizeof(from)).ok() && own.wait().ok() && to == from;
  }));
  EXPECT_TRUE(stream.wait());
}

TEST(Threads, ThatCannotStartAreCounted) {
  try {
    start_each("workers", 5, [](std::size_t i) {
      if (i == 3) throw std::system_error(EAGAIN, std::generic_category());
    });
    FAIL() << "it has to throw";
  } catch (const SystemError& error) {
    EXPECT_EQ(error.native(), EAGAIN);
    EXPECT_EQ(std::string(error.what()).find("only 3 of 5 workers could start (Resource temporarily unavailable)"), 0U);
  }
}

TEST(Names, TheNearestIsOffered) {
  const std::vector<std::string> known{"H100", "H200", "CPU"};
  EXPECT_EQ(nearest_name("gh200", known), "H200");
  EXPECT_EQ(nearest_name("H1000", known), "H100");
  EXPECT_EQ(nearest_name("toaster", known), "");
  EXPECT_EQ(offer_names("H10", known), "; did you mean H100? There are H100, H200, CPU");
  EXPECT_EQ(offer_names("toaster", known), "; there are H100, H200, CPU");
}

}  // namespace
}  // namespace headrace::testing
