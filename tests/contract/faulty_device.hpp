#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "device/backend.hpp"
#include "headrace/base/detail/clock.hpp"
#include "headrace/device/detail/resident_kernel.hpp"

/// A device that can be made to fail like a CUDA device: from then on every call returns the same fault.
namespace headrace::testing {

inline constexpr Error kFault{Errc::device_fault, 700};

/// State shared by the parts of a faulty device.
struct FaultSwitch {
  mutable std::atomic<bool> thrown{false};
  /// Calls until the fault; below 0, the test triggers it.
  mutable std::atomic<int> calls_left{-1};
  /// Copies and fills given to its streams, with those of lists counted one by one.
  mutable std::atomic<std::size_t> copies{0};
  /// Resident kernels launched while this is set do not begin.
  mutable std::atomic<bool> held{false};
  /// Resident kernels launched while this is set appear not to leave, according to their stream and its events.
  mutable std::atomic<bool> kept{false};

  /// `result`, or the fault.
  template <class R>
  [[nodiscard]] R or_fault(R result) const noexcept {
    if (calls_left.load() >= 0 && calls_left.fetch_sub(1) <= 0) thrown.store(true);
    if (thrown.load()) return kFault;
    return result;
  }
};

class FaultyEvent final : public headrace::detail::EventBackend {
 public:
  FaultyEvent(const FaultSwitch& fault, std::unique_ptr<headrace::detail::EventBackend> inner)
      : fault_(fault), inner_(std::move(inner)) {}
  [[nodiscard]] EventBackend& inner() const { return *inner_; }
  /// A failed CUDA device runs nothing any more; here the threads of a kernel still run, and their memory must stay.
  Result<bool> ready() noexcept override {
    const Result<bool> ready = inner_->ready();
    const Result<bool> told = fault_.or_fault(ready);
    return ready && !*ready ? ready : told;
  }
  Status wait() noexcept override { return fault_.or_fault(inner_->wait()); }
  Result<Duration> since(EventBackend& earlier) noexcept override {
    return fault_.or_fault(inner_->since(static_cast<FaultyEvent&>(earlier).inner()));
  }

 private:
  const FaultSwitch& fault_;
  std::unique_ptr<headrace::detail::EventBackend> inner_;
};

class FaultyStream final : public headrace::detail::StreamBackend {
 public:
  FaultyStream(headrace::detail::DeviceBackend& device, const FaultSwitch& fault, std::unique_ptr<StreamBackend> inner)
      : device_(device), fault_(fault), inner_(std::move(inner)) {}
  [[nodiscard]] StreamBackend& inner() const { return *inner_; }
  headrace::detail::DeviceBackend& device() noexcept override { return device_; }
  Status copy(void* to, const void* from, std::size_t bytes) noexcept override {
    ++fault_.copies;
    return fault_.or_fault(inner_->copy(to, from, bytes));
  }
  Status copy_many(std::span<const Copy> copies, CopyRoute route,
                   headrace::detail::PageableSink sink) noexcept override {
    fault_.copies += copies.size();
    return fault_.or_fault(inner_->copy_many(copies, route, sink));
  }
  Status fill(void* to, unsigned char value, std::size_t bytes) noexcept override {
    ++fault_.copies;
    return fault_.or_fault(inner_->fill(to, value, bytes));
  }
  Status prefetch(void* data, std::size_t bytes, const headrace::detail::DeviceBackend* to) noexcept override {
    return fault_.or_fault(inner_->prefetch(data, bytes, to));
  }
  Status launch(const Kernel& kernel, LaunchShape shape, void* const* arguments) noexcept override {
    return fault_.or_fault(inner_->launch(kernel, shape, arguments));
  }
  Status launch_resident(const Kernel& kernel, LaunchShape shape, void* const* arguments) noexcept override {
    const auto until_released = [](void* held) { static_cast<std::atomic<bool>*>(held)->wait(true); };
    const bool kept = fault_.kept.load();
    if (fault_.held.load()) {
      const Status called = inner_->call(until_released, &fault_.held);
      if (!called) return called;
    }
    const Status launched = fault_.or_fault(inner_->launch_resident(kernel, shape, arguments));
    return launched && kept ? inner_->call(until_released, &fault_.kept) : launched;
  }
  Result<std::size_t> pair_scratch_bytes(std::size_t count) noexcept override {
    return fault_.or_fault(inner_->pair_scratch_bytes(count));
  }
  Result<bool> sort_pairs(const headrace::detail::PairLists& pairs) noexcept override {
    return fault_.or_fault(inner_->sort_pairs(pairs));
  }
  Status call(void (*function)(void*), void* argument) noexcept override {
    return fault_.or_fault(inner_->call(function, argument));
  }
  Status record(headrace::detail::EventBackend& event) noexcept override {
    return fault_.or_fault(inner_->record(static_cast<FaultyEvent&>(event).inner()));
  }
  Status wait_for(headrace::detail::EventBackend& event) noexcept override {
    return fault_.or_fault(inner_->wait_for(static_cast<FaultyEvent&>(event).inner()));
  }
  Result<bool> ready() noexcept override { return fault_.or_fault(inner_->ready()); }
  Status wait() noexcept override { return fault_.or_fault(inner_->wait()); }

 private:
  headrace::detail::DeviceBackend& device_;
  const FaultSwitch& fault_;
  std::unique_ptr<StreamBackend> inner_;
};

class FaultyGraph final : public headrace::detail::GraphBackend {
 public:
  FaultyGraph(const FaultSwitch& fault, std::unique_ptr<GraphBackend> inner)
      : fault_(fault), inner_(std::move(inner)) {}
  Status update(std::size_t node, const GraphNode& to) noexcept override {
    return fault_.or_fault(inner_->update(node, to));
  }
  Status launch(headrace::detail::StreamBackend& stream) noexcept override {
    return fault_.or_fault(inner_->launch(static_cast<FaultyStream&>(stream).inner()));
  }

 private:
  const FaultSwitch& fault_;
  std::unique_ptr<GraphBackend> inner_;
};

/// A CPU device with a fault switch. It must outlive everything made on it.
class FaultyDevice : public headrace::detail::DeviceBackend {
 public:
  FaultyDevice() : inner_(Device::parse("cpu").backend()) {}
  /// Waits for kernels that a busy machine kept from leaving in time: abandoned objects belong to this device.
  ~FaultyDevice() override {
    release();
    const Time until = SteadyClock::now() + std::chrono::seconds(30);
    while (ResidentKernel::abandoned_count() > 0 && SteadyClock::now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  FaultyDevice(const FaultyDevice&) = delete;
  FaultyDevice& operator=(const FaultyDevice&) = delete;
  void fail() noexcept { fault_.thrown.store(true); }
  /// Memory for its spans from now on.
  void use_pages(headrace::detail::PageMemory& pages) noexcept { pages_ = &pages; }
  /// From now on the process may not lock memory.
  void forbid_registration() noexcept { may_register_ = false; }
  /// From now on it cannot access other devices.
  void forbid_peers() noexcept { reaches_peers_ = false; }
  /// Fails after this many more calls to it, its streams and events.
  void fail_after(int calls) noexcept { fault_.calls_left.store(calls); }
  /// From now on launched resident kernels do not begin until they are released.
  void hold() noexcept { fault_.held.store(true); }
  /// From now on launched resident kernels do not leave until they are released.
  void keep() noexcept { fault_.kept.store(true); }
  /// Copies and fills since the last call.
  [[nodiscard]] std::size_t taken_copies() noexcept { return fault_.copies.exchange(0); }
  void release() noexcept {
    for (std::atomic<bool>* const state : {&fault_.held, &fault_.kept}) {
      state->store(false);
      state->notify_all();
    }
  }
  [[nodiscard]] Device device() noexcept { return Device(*this); }

  DeviceKind kind() const noexcept override { return inner_.kind(); }
  int ordinal() const noexcept override { return inner_.ordinal(); }
  const DeviceProperties& properties() const noexcept override { return inner_.properties(); }
  MemoryInfo memory() const override { return inner_.memory(); }
  std::uint32_t resident_blocks_max(const Kernel& kernel, std::uint32_t threads) const override {
    return inner_.resident_blocks_max(kernel, threads);
  }
  Result<void*> allocate(MemoryKind kind, std::size_t bytes,
                         headrace::detail::StreamBackend* stream) noexcept override {
    const auto made = inner_.allocate(kind, bytes, inner_stream(stream));
    auto told = fault_.or_fault(made);
    if (made && !told) inner_.deallocate(kind, *made, bytes, inner_stream(stream));
    return told;
  }
  void deallocate(MemoryKind kind, void* data, std::size_t bytes,
                  headrace::detail::StreamBackend* stream) noexcept override {
    inner_.deallocate(kind, data, bytes, inner_stream(stream));
  }
  Status advise(headrace::detail::ManagedAdvice advice, void* data, std::size_t bytes,
                const headrace::detail::DeviceBackend* place) noexcept override {
    return fault_.or_fault(inner_.advise(advice, data, bytes, place));
  }
  Result<std::unique_ptr<headrace::detail::StreamBackend>> create_stream(StreamOptions options) noexcept override {
    auto inner = inner_.create_stream(options);
    if (!inner) return inner.error();
    return std::unique_ptr<headrace::detail::StreamBackend>(
        std::make_unique<FaultyStream>(*this, fault_, *std::move(inner)));
  }
  Result<std::unique_ptr<headrace::detail::EventBackend>> create_event(EventTiming timing) noexcept override {
    auto inner = inner_.create_event(timing);
    if (!inner) return inner.error();
    return std::unique_ptr<headrace::detail::EventBackend>(std::make_unique<FaultyEvent>(fault_, *std::move(inner)));
  }
  Result<std::unique_ptr<headrace::detail::GraphBackend>> create_graph(
      std::span<const GraphNode> nodes) noexcept override {
    std::vector<GraphNode> unwrapped(nodes.begin(), nodes.end());
    for (GraphNode& node : unwrapped) {
      if (auto* record = std::get_if<GraphRecord>(&node)) {
        record->event = EventRef(static_cast<FaultyEvent&>(record->event.backend()).inner());
      }
    }
    auto inner = inner_.create_graph(unwrapped);
    if (!inner) return inner.error();
    return std::unique_ptr<headrace::detail::GraphBackend>(std::make_unique<FaultyGraph>(fault_, *std::move(inner)));
  }
  KernelResources kernel_resources(const Kernel& kernel) const override { return inner_.kernel_resources(kernel); }
  headrace::detail::KnownRange look_up(const void* data) const noexcept override { return inner_.look_up(data); }
  bool kernel_can_start() const noexcept override { return inner_.kernel_can_start(); }
  const headrace::detail::BarrierFunctions* barrier_functions() const noexcept override {
    return inner_.barrier_functions();
  }
  headrace::detail::PageMemory& page_memory() noexcept override {
    return pages_ == nullptr ? inner_.page_memory() : *pages_;
  }
  Status register_host(void* data, std::size_t bytes) noexcept override {
    if (!may_register_) return Errc::no_permission;
    return fault_.or_fault(inner_.register_host(data, bytes));
  }
  void unregister_host(void* data) noexcept override { inner_.unregister_host(data); }
  PeerConnection connection(const DeviceBackend& peer) const noexcept override {
    if (!reaches_peers_) return {};
    return inner_.connection(peer);
  }
  Status enable_peer(DeviceBackend& peer) noexcept override { return fault_.or_fault(inner_.enable_peer(peer)); }
  void disable_peer(DeviceBackend& peer) noexcept override { inner_.disable_peer(peer); }
  DeviceHealth health() const override { return inner_.health(); }
  LinkCounters link_counters() const override { return inner_.link_counters(); }

 private:
  static headrace::detail::StreamBackend* inner_stream(headrace::detail::StreamBackend* stream) noexcept {
    return stream == nullptr ? nullptr : &static_cast<FaultyStream*>(stream)->inner();
  }

  headrace::detail::DeviceBackend& inner_;
  headrace::detail::PageMemory* pages_ = nullptr;
  bool may_register_ = true;
  bool reaches_peers_ = true;
  FaultSwitch fault_;
};

}  // namespace headrace::testing
