#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "device/copies/lingering_copier.hpp"
#include "headrace/base/error.hpp"
#include "headrace/grid/simulation.hpp"
#include "headrace/grid/stencils/heat.hpp"
#include "headrace/operators/light.hpp"
#include "headrace/serve/engine.hpp"
#include "measure/link_gate.hpp"
#include "tests/contract/kernels.hpp"
#include "tests/contract/resident_reception.hpp"
#include "tests/contract/stay_kernel.hpp"

/// All users of resident kernels, behind one interface.
namespace headrace::testing {

/// A user of ResidentKernel. If its kernel is permanent, the constructor has started it.
class ResidentUser {
 public:
  virtual ~ResidentUser() = default;
  /// Gives the kernel work, and waits for it.
  [[nodiscard]] virtual Status work() = 0;
  /// Gives the kernel work without waiting.
  virtual void begin_work() {}
  /// The user's report on its kernel.
  [[nodiscard]] virtual Status look() = 0;
  /// Tells the kernel to leave, if that is possible without destroying the user.
  virtual void stop() {}
};

/// How long users wait for a kernel before it counts as hung.
inline constexpr Duration kUsersPatience = std::chrono::seconds(1);

/// ResidentKernel alone.
class PlainUser final : public ResidentUser {
 public:
  explicit PlainUser(Device device) : stayer_(device) {
    stayer_.kernel.wait_started([this] { return stayer_.running(); }, kUsersPatience).or_throw("starting");
  }
  [[nodiscard]] Status work() override {
    const std::uint64_t beat = stayer_.beat();
    while (stayer_.beat() == beat) {
      if (const Status gets_on = look(); !gets_on) return gets_on;
    }
    return {};
  }
  [[nodiscard]] Status look() override {
    return stayer_.kernel.look(stayer_.beat(), std::chrono::seconds(30), SteadyClock::now());
  }
  void stop() override { static_cast<void>(stayer_.kernel.leave(kUsersPatience)); }

 private:
  Stayer stayer_;
};

/// A mailbox and the kernel that answers it.
class MailboxUser final : public ResidentUser {
 public:
  explicit MailboxUser(Device device)
      : mail_(std::make_shared<Mailbox>(device, 2, kBytes, kBytes, 2)),
        kernel_(device, [this](bool at_once) { at_once ? mail_->stop_at_once() : mail_->stop(); }) {
    kernel_.keep(mail_);
    const LaunchShape shape{.blocks = 2, .threads = 32, .items = 2};
    kernel_.run([&](StreamRef stream) { return launch_resident(stream, team_echo_kernel(), shape, mail_->view(), 4U); })
        .or_throw("starting");
    kernel_.wait_started([this] { return mail_->running(); }, kUsersPatience).or_throw("starting");
  }
  [[nodiscard]] Status work() override {
    begin_work();
    while (!mail_->ready(1)) {
      if (const Status gets_on = look(); !gets_on) return gets_on;
    }
    return {};
  }
  void begin_work() override { mail_->post(1); }
  [[nodiscard]] Status look() override {
    return kernel_.look(mail_->heartbeat(0), std::chrono::seconds(30), SteadyClock::now());
  }
  void stop() override { static_cast<void>(kernel_.leave(kUsersPatience)); }

 private:
  static constexpr std::size_t kBytes = 16;
  std::shared_ptr<Mailbox> mail_;
  ResidentKernel kernel_;
};

/// An engine whose schedule is the pool's.
template <serve::Schedule ItsSchedule>
class EngineUser final : public ResidentUser {
 public:
  explicit EngineUser(Device device) : engine_(device, operators::light({.query_bytes = 64}), plan()) {
    query_.resize(engine_.op().query_bytes);
    answer_.resize(engine_.op().answer_bytes);
    engine_.op().sample(7, query_.data());
  }
  [[nodiscard]] Status work() override { return client_.ask(query_, answer_); }
  void begin_work() override {
    for (int i = 0; i < 20; ++i) static_cast<void>(client_.submit(query_));
  }
  [[nodiscard]] Status look() override {
    const auto fault = engine_.fault();
    return fault ? Status(*fault) : Status();
  }
  void stop() override { engine_.stop(); }

 private:
  [[nodiscard]] static serve::Plan plan() {
    serve::Plan plan;
    plan.schedule = ItsSchedule;
    plan.host_memory = MemoryKind::mapped;
    plan.slots = 32;
    plan.clients_max = 1;
    if (ItsSchedule == serve::Schedule::dispatched) plan.workers = 2;
    plan.hang_after = 4 * kUsersPatience;
    return plan;
  }

  serve::Engine engine_;
  serve::Client client_ = engine_.connect();
  std::vector<std::byte> query_;
  std::vector<std::byte> answer_;
};

/// Receiver control on the device.
class IngestUser final : public ResidentUser {
 public:
  explicit IngestUser(Device device) : reception_(device, options(), {}) {}
  [[nodiscard]] Status work() override {
    const std::uint64_t before = reception_.control->copied();
    begin_work();
    while (reception_.control->copied() == before) {
      if (const Status gets_on = look(); !gets_on) return gets_on;
    }
    return {};
  }
  void begin_work() override {
    const auto position = reception_.ring().try_reserve();
    if (!position) return;
    const ingest::testing::Bytes bytes =
        ingest::testing::tcp_packet({}, {.sequence = 1, .flags = ingest::testing::kSyn});
    std::memcpy(reception_.ring().slot(*position), bytes.data(), bytes.size());
    const auto offset =
        static_cast<std::uint64_t>(reception_.ring().slot(*position) - reception_.ring().buffer().data());
    const ingest::Packet packet{.ring_offset = offset, .length = static_cast<std::uint32_t>(bytes.size())};
    static_cast<void>(reception_.control->post({&packet, 1}));
    reception_.ring().publish(*position + 1);
  }
  [[nodiscard]] Status look() override { return reception_.control->poll(); }
  void stop() override { static_cast<void>(reception_.control->stop()); }

 private:
  [[nodiscard]] static ingest::ResidentOptions options() {
    ingest::ResidentOptions options = ingest::testing::Reception::options();
    options.wait_limit = kUsersPatience;
    return options;
  }
  ingest::testing::Reception reception_;
};

/// A grid, whose kernel exists for the steps of one call.
class GridUser final : public ResidentUser {
 public:
  explicit GridUser(Device device)
      : simulation_(grid::Decomposition::slabs({12, 12}, 1, 0), {device}, grid::heat<float>(2, 0.1F),
                    {.mode = grid::Mode::resident, .wait_limit = kUsersPatience}) {}
  [[nodiscard]] Status work() override {
    try {
      simulation_.step(20);
    } catch (const DeviceError& error) {
      return Error{error.code(), error.native()};
    }
    return {};
  }
  [[nodiscard]] Status look() override { return work(); }

 private:
  grid::Simulation simulation_;
};

/// Copies by a lingering kernel.
class LingerUser final : public ResidentUser {
 public:
  explicit LingerUser(Device device)
      : from_(device, MemoryKind::pinned, kBytes),
        to_(device, MemoryKind::pinned, kBytes),
        copier_(device, std::chrono::seconds(1), kUsersPatience) {
    std::fill_n(from_.data(), kBytes, std::byte{3});
  }
  [[nodiscard]] Status work() override {
    const Copy copy{to_.data(), from_.data(), kBytes};
    const auto copied = copier_.copy({&copy, 1});
    if (!copied) return copied.error();
    return *copied ? Status() : Status(Errc::not_supported);
  }
  [[nodiscard]] Status look() override { return work(); }

 private:
  static constexpr std::size_t kBytes = 256;
  Buffer from_;
  Buffer to_;
  detail::LingeringCopier copier_;
};

/// The gate of a measurement.
class GateUser final : public ResidentUser {
 public:
  explicit GateUser(Device device) : stream_(device), gate_(std::in_place, device, std::chrono::seconds(20)) {}
  [[nodiscard]] Status work() override {
    gate_->next();
    const Status closed = gate_->close(stream_);
    gate_->open();
    const Status waited = stream_.wait();  // whatever has failed, as in all users of gates
    return closed ? waited : closed;
  }
  void begin_work() override {
    gate_->next();
    static_cast<void>(gate_->close(stream_));
  }
  [[nodiscard]] Status look() override { return work(); }

 private:
  Stream stream_;
  std::optional<measure::Gate> gate_;
};

struct ResidentUserKind {
  const char* name;
  std::unique_ptr<ResidentUser> (*make)(Device device);
  bool stays;  ///< Whether its constructor starts a kernel, and therefore fails if that does not start.
};

template <class User>
[[nodiscard]] std::unique_ptr<ResidentUser> make_resident_user(Device device) {
  return std::make_unique<User>(device);
}

[[nodiscard]] inline std::vector<ResidentUserKind> resident_user_kinds() {
  return {{"kernel", make_resident_user<PlainUser>, true},
          {"mailbox", make_resident_user<MailboxUser>, true},
          {"persistent", make_resident_user<EngineUser<serve::Schedule::persistent>>, true},
          {"dispatched", make_resident_user<EngineUser<serve::Schedule::dispatched>>, true},
          {"ingest", make_resident_user<IngestUser>, true},
          {"grid", make_resident_user<GridUser>, false},
          {"linger", make_resident_user<LingerUser>, false},
          {"gate", make_resident_user<GateUser>, false}};
}

}  // namespace headrace::testing
