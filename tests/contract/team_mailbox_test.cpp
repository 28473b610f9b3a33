#include "headrace/base/error.hpp"
#include "headrace/device/detail/barrier_mailbox.hpp"
#include "headrace/device/detail/mailbox.hpp"
#include "tests/contract/devices.hpp"
#include "tests/contract/kernels.hpp"

/// Promises of both kinds of mailbox when several blocks answer a request.
namespace headrace::testing {
namespace {

constexpr std::uint32_t kWords = 200;
constexpr std::size_t kBytes = kWords * sizeof(std::uint32_t);

/// A kernel of team echoes that stays resident during the lifetime of this object.
template <class Mail>
class TeamEcho {
 public:
  TeamEcho(Device device, std::uint32_t boxes, std::uint32_t blocks)
      : mail_(device, boxes, kBytes, kBytes, blocks), stream_(device) {
    const auto kernel = [] {
      if constexpr (std::is_same_v<Mail, Mailbox>) {
        return team_echo_kernel();
      } else {
        return team_echo_barrier_kernel();
      }
    }();
    started_ =
        launch_resident(stream_, kernel, {.blocks = blocks, .threads = 32, .items = boxes}, mail_.view(), kWords);
  }
  TeamEcho(const TeamEcho&) = delete;
  TeamEcho& operator=(const TeamEcho&) = delete;
  ~TeamEcho() {
    mail_.stop();
    EXPECT_OK(stream_.wait());
  }
  [[nodiscard]] Status started() const { return started_; }
  [[nodiscard]] Mail& mail() { return mail_; }
  [[nodiscard]] StreamRef stream() const { return stream_; }

  void post(std::uint32_t box, std::uint32_t seed) {
    auto* words = reinterpret_cast<std::uint32_t*>(mail_.request(box));
    for (std::uint32_t i = 0; i < kWords; ++i) words[i] = seed * 1000 + i;
    mail_.post(box);
  }
  [[nodiscard]] bool answered(std::uint32_t box, std::uint32_t seed) const {
    const auto* words = reinterpret_cast<const std::uint32_t*>(mail_.answer(box));
    for (std::uint32_t i = 0; i < kWords; ++i) {
      if (words[i] != seed * 1000 + i + 1) return false;
    }
    return true;
  }

 private:
  Mail mail_;
  Stream stream_;
  Status started_;
};

class TeamMailbox : public DeviceTest {
 protected:
  /// Barriers need managed memory that both sides can use at the same time.
  [[nodiscard]] static bool has_barriers() { return device().properties().concurrent_managed_access; }
  /// Runs `body(echo)` with each kind of mailbox that the device offers.
  template <class Body>
  void with_each_kind(std::uint32_t boxes, std::uint32_t blocks, Body body) {
    {
      SCOPED_TRACE("words");
      TeamEcho<Mailbox> echo(device(), boxes, blocks);
      ASSERT_OK(echo.started());
      body(echo);
    }
    if (!has_barriers()) return;
    SCOPED_TRACE("barriers");
    TeamEcho<BarrierMailbox> echo(device(), boxes, blocks);
    ASSERT_OK(echo.started());
    body(echo);
  }
};
HEADRACE_ON_EVERY_DEVICE(TeamMailbox);

TEST_P(TeamMailbox, BlocksAnswerTogetherRoundAfterRound) {
  for (const std::uint32_t blocks : {1U, 3U}) {
    with_each_kind(2, blocks, [&](auto& echo) {
      for (std::uint32_t round = 0; round < 60; ++round) {
        for (std::uint32_t box = 0; box < 2; ++box) {
          ASSERT_TRUE(echo.mail().ready(box));
          echo.post(box, round * 2 + box);
          EXPECT_EQ(echo.mail().posted(box), round + 1);
        }
        for (std::uint32_t box = 0; box < 2; ++box) {
          ASSERT_TRUE(eventually([&] { return echo.mail().ready(box); }));
          EXPECT_TRUE(echo.answered(box, round * 2 + box)) << "round " << round;
        }
      }
    });
  }
}

TEST_P(TeamMailbox, SaysWhenEveryBlockRunsAndThatItLives) {
  with_each_kind(2, 3, [&](auto& echo) {
    EXPECT_TRUE(eventually([&] { return echo.mail().running(); }));
    for (std::uint32_t box = 0; box < 2; ++box) {
      const std::uint32_t before = echo.mail().heartbeat(box);
      EXPECT_TRUE(eventually([&] { return echo.mail().heartbeat(box) > before + 1; }));
    }
  });
}

TEST_P(TeamMailbox, IsNotRunningBeforeItsLastBlock) {
  Mailbox mail(device(), 2, kBytes, kBytes, 2);
  EXPECT_FALSE(mail.running());
}

TEST_P(TeamMailbox, StopsWithin100Milliseconds) {
  for (const bool at_once : {false, true}) {
    Duration best = Duration::max();
    for (int attempt = 0; attempt < 5 && best > std::chrono::milliseconds(100); ++attempt) {  // the machine may be busy
      Duration longest{};
      with_each_kind(2, 3, [&](auto& echo) {
        ASSERT_TRUE(eventually([&] { return echo.mail().running(); }));
        EXPECT_FALSE(*echo.stream().ready()) << "it stays until it is told to stop";
        const Time stopped = SteadyClock::now();
        at_once ? echo.mail().stop_at_once() : echo.mail().stop();
        ASSERT_OK(echo.stream().wait());
        longest = std::max(longest, SteadyClock::now() - stopped);
      });
      best = std::min(best, longest);
    }
    EXPECT_LE(best, std::chrono::milliseconds(100));
  }
}

TEST_P(TeamMailbox, NoBlocksAreRefused) {
  EXPECT_THROW(Mailbox(device(), 1, 1, 1, 0), UsageError);
  EXPECT_THROW(BarrierMailbox(device(), 0, 1, 1), UsageError);
}

TEST_P(TeamMailbox, BarriersAreRefusedWhereTheyCannotBe) {
  if (has_barriers()) GTEST_SKIP() << "this device has them";
  try {
    const BarrierMailbox mail(device(), 1, 1, 1);
    ADD_FAILURE();
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("concurrent"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace headrace::testing
