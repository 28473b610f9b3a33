#include <cstdlib>
#include <tuple>

#include "headrace/base/error.hpp"
#include "tests/contract/devices.hpp"
#include "tests/contract/faulty_device.hpp"
#include "tests/contract/resident_users.hpp"

/// One contract for all users of resident kernels: they stop in time whatever the kernel or a peer does, report a
/// failed device, and no destructor waits for a kernel that does not leave.
namespace headrace::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// No destructor waits longer, even on an overloaded machine.
constexpr Duration kBound = ResidentKernel::kPatience + seconds(10);

using UserOnDevice = std::tuple<std::string, ResidentUserKind>;

[[nodiscard]] std::string name_of(const ::testing::TestParamInfo<UserOnDevice>& info) {
  std::string name = std::get<0>(info.param) + "_" + std::get<1>(info.param).name;
  std::ranges::replace(name, ':', '_');
  return name;
}

class ResidentUsers : public ::testing::TestWithParam<UserOnDevice> {
 public:
  [[nodiscard]] static Device device() { return Device::parse(std::get<0>(GetParam())); }
  [[nodiscard]] static bool on_cpu() { return device().kind() == DeviceKind::cpu; }
  [[nodiscard]] static ResidentUserKind kind() { return std::get<1>(GetParam()); }
  [[nodiscard]] static bool all_gone() {
    return eventually([] { return ResidentKernel::abandoned_count() == 0; });
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, ResidentUsers,
                         ::testing::Combine(::testing::ValuesIn(device_names()),
                                            ::testing::ValuesIn(resident_user_kinds())),
                         name_of);

/// How long a user takes to end, the best of a few attempts, because the machine may be overloaded.
template <class Prepare>
[[nodiscard]] Duration end_of(const Prepare& prepare) {
  Duration best = Duration::max();
  for (int attempt = 0; attempt < 5 && best > milliseconds(100); ++attempt) {
    std::unique_ptr<ResidentUser> user = ResidentUsers::kind().make(ResidentUsers::device());
    EXPECT_OK(user->work());
    prepare(*user);
    const Time began = SteadyClock::now();
    user.reset();
    best = std::min<Duration>(best, SteadyClock::now() - began);
  }
  EXPECT_EQ(ResidentKernel::abandoned_count(), 0U);
  return best;
}

TEST_P(ResidentUsers, StopWithin100MillisecondsWhileIdle) {
  EXPECT_LE(end_of([](ResidentUser&) { std::this_thread::sleep_for(milliseconds(5)); }), milliseconds(100));
}

TEST_P(ResidentUsers, StopWithin100MillisecondsWhileBusy) {
  EXPECT_LE(end_of([](ResidentUser& user) { user.begin_work(); }), milliseconds(100));
}

TEST_P(ResidentUsers, StopWhileAPeerHangs) {
  const Stayer peer(device(), 1);
  peer.feel(Staying::hung);
  ASSERT_TRUE(eventually([&] { return peer.hangs(); }));
  EXPECT_LE(end_of([](ResidentUser& user) { user.begin_work(); }), milliseconds(100));
}

TEST_P(ResidentUsers, StoppingTwiceIsStoppingOnce) {
  const auto user = kind().make(device());
  ASSERT_OK(user->work());
  user->stop();
  user->stop();
}

/// A device that fails all calls, like CUDA devices after a kernel has faulted.
TEST_P(ResidentUsers, SayThatTheDeviceHasFailedAndEnd) {
  if (!on_cpu()) GTEST_SKIP() << "a CUDA device's fault is for a child process, below";
  FaultyDevice faulty;
  auto user = kind().make(faulty.device());
  ASSERT_OK(user->work());
  faulty.fail();
  EXPECT_TRUE(eventually([&] { return failed_with(user->look(), Errc::device_fault); }));
  const Time began = SteadyClock::now();
  user.reset();
  EXPECT_LT(SteadyClock::now() - began, kBound);
  EXPECT_TRUE(all_gone());
}

/// Writes a user's report of a fault caused by another kernel to stderr, for the parent process.
void report_fault_to(const ResidentUserKind& kind, Device device) {
  auto user = kind.make(device);
  const bool worked = user->work().ok();
  auto faulty = std::make_unique<Stayer>(device, 1);
  faulty->feel(Staying::fault);
  const bool told = eventually([&] { return failed_with(user->look(), Errc::device_fault); });
  const Time began = SteadyClock::now();
  user.reset();
  faulty.reset();
  const bool ended = SteadyClock::now() - began < kBound;
  std::fprintf(stderr, "worked %d, told %d, ended %d\n", worked ? 1 : 0, told ? 1 : 0, ended ? 1 : 0);
}

TEST_P(ResidentUsers, SayThatACudaDeviceHasFaultedAndEnd) {
  if (on_cpu()) GTEST_SKIP() << "a CPU device's fault is tested above, in this process";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        report_fault_to(kind(), device());
        std::_Exit(0);
      },
      ::testing::ExitedWithCode(0), "worked 1, told 1, ended 1");
}

/// Fails each call to the device in turn: everything made and started before must end.
TEST_P(ResidentUsers, EndWhenTheirConstructionFails) {
  if (!on_cpu()) GTEST_SKIP() << "fails calls of a CPU device";
  int failures = 0;
  for (int calls = 0;; calls += 1 + calls / 8) {  // each early call, then ever fewer: polling makes many
    FaultyDevice faulty;
    faulty.fail_after(calls);
    const Time began = SteadyClock::now();
    try {
      const auto user = kind().make(faulty.device());
      if (user->work()) break;
    } catch (const Exception&) {
      ++failures;
    }
    ASSERT_LT(SteadyClock::now() - began, kBound) << calls;
    ASSERT_TRUE(all_gone()) << calls;
    ASSERT_LT(calls, 1'000'000) << "nothing worked";
  }
  EXPECT_GT(failures, 0);
}

/// Kernels that do not begin, as when another resident kernel holds the device.
TEST_P(ResidentUsers, EndWhenTheirKernelDoesNotStart) {
  if (!on_cpu()) GTEST_SKIP() << "holds kernels of a CPU device";
  FaultyDevice busy;
  if (kind().name == std::string("gate")) GTEST_SKIP() << "is launched like the others: tested below";
  busy.hold();
  const Time began = SteadyClock::now();
  try {
    const auto user = kind().make(busy.device());
    // A kernel whose start is not awaited fails when it is used.
    if (kind().name == std::string("dispatched")) {
      EXPECT_TRUE(eventually([&] { return failed_with(user->look(), Errc::hung); }));
    } else {
      EXPECT_TRUE(failed_with(user->work(), Errc::hung));
    }
  } catch (const Exception& error) {
    EXPECT_TRUE(kind().stays) << error.what();
  }
  EXPECT_LT(SteadyClock::now() - began, kBound + seconds(10));  // an engine has 10 s to start
  EXPECT_GE(ResidentKernel::abandoned_count(), 1U);
  busy.release();
  EXPECT_TRUE(all_gone());
}

/// The same on a CUDA device that another resident kernel fills. Objects made before need no room then.
TEST_P(ResidentUsers, EndBesideAKernelThatHoldsTheDevice) {
  if (on_cpu()) GTEST_SKIP() << "a CPU device has room for all";
  if (kind().stays || kind().name == std::string("gate")) GTEST_SKIP() << "is made beside it: below";
  auto user = kind().make(device());
  {
    const Stayer holder(device(), device().resident_blocks_max(stay_kernel(), 32));
    ASSERT_TRUE(eventually([&] { return holder.running(); }));
    EXPECT_TRUE(failed_with(user->work(), Errc::hung));
    const Time began = SteadyClock::now();
    user.reset();
    EXPECT_LT(SteadyClock::now() - began, kBound);
    EXPECT_EQ(ResidentKernel::abandoned_count(), 1U);
  }
  EXPECT_TRUE(all_gone());
}

/// Kernels that work, and then do not leave.
TEST_P(ResidentUsers, EndWhenTheirKernelDoesNotLeave) {
  if (!on_cpu()) GTEST_SKIP() << "keeps kernels of a CPU device";
  if (kind().name == std::string("gate")) GTEST_SKIP() << "is launched like the others: tested below";
  FaultyDevice stuck;
  stuck.keep();
  auto user = kind().make(stuck.device());
  const Status worked = user->work();
  EXPECT_EQ(worked.ok(), kind().name != std::string("grid")) << "a grid waits for the end of its kernel";
  user->stop();
  const Time began = SteadyClock::now();
  user.reset();
  EXPECT_LT(SteadyClock::now() - began, kBound);
  EXPECT_EQ(ResidentKernel::abandoned_count(), 1U);
  stuck.release();
  EXPECT_TRUE(all_gone());
}

class ResidentKernelTest : public DeviceTest {};
HEADRACE_ON_EVERY_DEVICE(ResidentKernelTest);

TEST_P(ResidentKernelTest, AKernelThatHangsIsAbandonedWithWhatItUses) {
  auto stayer = std::make_unique<Stayer>(device());
  const std::weak_ptr<const Buffer> alive = stayer->memory();
  auto* const words = &stayer->words();
  ASSERT_OK(stayer->kernel.wait_started([&] { return stayer->running(); }, seconds(30)));
  stayer->feel(Staying::hung);
  ASSERT_TRUE(eventually([&] { return stayer->hangs(); }));
  EXPECT_TRUE(eventually([&] {
    return failed_with(stayer->kernel.look(stayer->beat(), milliseconds(20), SteadyClock::now()), Errc::hung);
  }));
  EXPECT_TRUE(failed_with(stayer->kernel.leave(milliseconds(1)), Errc::hung));
  EXPECT_FALSE(stayer->kernel.left());
  EXPECT_FALSE(stayer->told_at_once);
  const std::shared_ptr<const Buffer> mine = stayer->memory();
  stayer->kernel.abandon(stayer->memory());
  EXPECT_EQ(ResidentKernel::abandoned_count(), 1U);
  EXPECT_EQ(mine.use_count(), 4) << "the stayer, its kernel, the owner that was given, and the test";
  ResidentKernel::tell(words->mood, static_cast<std::uint32_t>(Staying::well));
  EXPECT_TRUE(eventually([] { return ResidentKernel::abandoned_count() == 0; }));
  stayer.reset();
  EXPECT_EQ(alive.use_count(), 1);
}

TEST_P(ResidentKernelTest, DestructionOfOneThatHangsIsBounded) {
  auto stayer = std::make_unique<Stayer>(device());
  const std::shared_ptr<const Buffer> memory = stayer->memory();
  auto* const words = memory->as<StayWords>();
  ASSERT_OK(stayer->kernel.wait_started([&] { return stayer->running(); }, seconds(30)));
  stayer->feel(Staying::hung);
  ASSERT_TRUE(eventually([&] { return stayer->hangs(); }));
  stayer->hangs_on = true;
  const Time began = SteadyClock::now();
  stayer.reset();
  EXPECT_LT(SteadyClock::now() - began, kBound);
  EXPECT_EQ(ResidentKernel::abandoned_count(), 1U);
  EXPECT_EQ(memory.use_count(), 2) << "the test and the kernel";
  ResidentKernel::tell(words->mood, static_cast<std::uint32_t>(Staying::well));
  EXPECT_TRUE(eventually([] { return ResidentKernel::abandoned_count() == 0; }));
  EXPECT_EQ(memory.use_count(), 1);
}

TEST_P(ResidentKernelTest, OneThatEndsUnaskedIsAFault) {
  Stayer stayer(device());
  ASSERT_OK(stayer.kernel.wait_started([&] { return stayer.running(); }, seconds(30)));
  stayer.feel(Staying::over);
  EXPECT_TRUE(eventually([&] {
    return failed_with(stayer.kernel.look(stayer.beat(), seconds(30), SteadyClock::now()), Errc::device_fault);
  }));
  EXPECT_OK(stayer.kernel.leave(seconds(30)));
  EXPECT_TRUE(stayer.kernel.left());
}

TEST_P(ResidentKernelTest, OneThatEndsBeforeItHasStartedIsAFault) {
  Stayer stayer(device());
  stayer.feel(Staying::over);
  EXPECT_TRUE(failed_with(stayer.kernel.wait_started([] { return false; }, seconds(30)), Errc::device_fault));
}

TEST_P(ResidentKernelTest, AKernelOfACpuDeviceThatThrowsIsAFaultOfItsOwn) {
  if (!on_cpu()) GTEST_SKIP() << "a CUDA device's fault is for a child process";
  Stayer stayer(device());
  Stayer other(device());
  stayer.feel(Staying::fault);
  EXPECT_TRUE(eventually([&] {
    return failed_with(stayer.kernel.look(stayer.beat(), seconds(30), SteadyClock::now()), Errc::device_fault);
  }));
  stayer.feel(Staying::hung);
  ASSERT_TRUE(eventually([&] { return stayer.hangs(); }));
  EXPECT_TRUE(failed_with(stayer.kernel.leave(milliseconds(20)), Errc::hung))
      << "the block that did not throw still runs";
  stayer.feel(Staying::well);
  EXPECT_TRUE(failed_with(stayer.kernel.leave(seconds(30)), Errc::device_fault));
  EXPECT_TRUE(stayer.kernel.left());
  EXPECT_OK(other.kernel.leave(seconds(30)));
}

TEST_P(ResidentKernelTest, ControlWhoseKernelDoesNotStartIsAnErrorAndEnds) {
  if (on_cpu()) GTEST_SKIP() << "a CPU device has room for all";
  ingest::ResidentOptions options = ingest::testing::Reception::options();
  options.tcp.initial_limit = 1 << 20;
  options.wait_limit = kUsersPatience;
  const Buffer ring(device(), MemoryKind::mapped, 1 << 20);
  {
    const Stayer holder(device(), device().resident_blocks_max(stay_kernel(), 32));
    ASSERT_TRUE(eventually([&] { return holder.running(); }));
    const Time began = SteadyClock::now();
    EXPECT_THAT([&] { ingest::ResidentControl(device(), ring, ingest::Layer::ip, options); },
                ::testing::ThrowsMessage<DeviceError>(::testing::HasSubstr("another resident kernel may occupy it")));
    EXPECT_LT(SteadyClock::now() - began, kBound);
    EXPECT_EQ(ResidentKernel::abandoned_count(), 1U);
  }
  EXPECT_TRUE(eventually([] { return ResidentKernel::abandoned_count() == 0; }));
}

/// A gate's kernel that cannot begin, because its stream is held.
TEST_P(ResidentKernelTest, AGateWhoseKernelDoesNotStartIsLeft) {
  Stream stream(device());
  Gate held;
  ASSERT_OK(held.enqueue(stream));
  std::optional<measure::Gate> gate(std::in_place, device(), seconds(20));
  gate->next();
  ASSERT_OK(gate->close(stream));
  const Time began = SteadyClock::now();
  gate.reset();
  EXPECT_LT(SteadyClock::now() - began, kBound);
  EXPECT_EQ(ResidentKernel::abandoned_count(), 1U);
  held.open();
  ASSERT_OK(stream.wait());
  EXPECT_EQ(ResidentKernel::abandoned_count(), 0U);
}

}  // namespace
}  // namespace headrace::testing
