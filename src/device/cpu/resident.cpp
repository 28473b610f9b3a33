#include "device/cpu/resident.hpp"

#include <pthread.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <system_error>

#include "device/cpu/testing.hpp"
#include "headrace/device/topology.hpp"

namespace headrace::detail {

PackedArguments pack_arguments(const Kernel& kernel, std::size_t start) noexcept {
  PackedArguments packed;
  std::size_t at = start;
  for (std::uint32_t i = 0; i < kernel.argument_count; ++i) {
    const std::size_t bytes = kernel.argument_bytes[i];
    at = align_up(at, std::min<std::size_t>(bytes & (~bytes + 1), 64));
    packed.offsets[i] = static_cast<std::uint32_t>(at);
    at += bytes;
  }
  packed.bytes = at;
  return packed;
}

void copy_arguments(const Kernel& kernel, const PackedArguments& packed, void* const* arguments, void* to) noexcept {
  for (std::uint32_t i = 0; i < kernel.argument_count; ++i) {
    std::memcpy(static_cast<std::byte*>(to) + packed.offsets[i], arguments[i], kernel.argument_bytes[i]);
  }
}

ResidentLaunch::ResidentLaunch(Ref<Strand> strand, const Kernel& kernel, LaunchShape shape,
                               void* const* arguments) noexcept
    : strand_(std::move(strand)),
      entry_(kernel.cpu_entry()),
      shape_(shape),
      packed_(pack_arguments(kernel, 0)),
      left_(shape.blocks * shape.items) {
  copy_arguments(kernel, packed_, arguments, arguments_);
}

Result<std::unique_ptr<ResidentLaunch>> ResidentLaunch::create(Ref<Strand> strand, const Kernel& kernel,
                                                               LaunchShape shape, void* const* arguments) noexcept {
  if (allocation_must_fail()) return Errc::out_of_memory;
  std::unique_ptr<ResidentLaunch> launch(new (std::nothrow)
                                             ResidentLaunch(std::move(strand), kernel, shape, arguments));
  if (!launch) return Errc::out_of_memory;
  const std::uint32_t count = shape.blocks * shape.items;
  try {
    launch->threads_.reserve(count);
    for (std::uint32_t i = 0; i < count; ++i) {
      if (allocation_must_fail()) return Errc::out_of_memory;
      launch->threads_.emplace_back([self = launch.get(), i] { self->run(i); });
    }
  } catch (const std::system_error& error) {
    return Error{Errc::system, error.code().value()};
  } catch (const std::bad_alloc&) {
    return Errc::out_of_memory;
  }
  return launch;
}

ResidentLaunch::~ResidentLaunch() {
  Go waiting = Go::wait;
  if (go_.compare_exchange_strong(waiting, Go::leave)) go_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ResidentLaunch::start() noexcept {
  go_.store(Go::run, std::memory_order_release);  // pairs with run()
  go_.notify_all();
}

void ResidentLaunch::run(std::uint32_t index) noexcept {
  static_cast<void>(unbind_this_thread());
  pthread_setname_np(pthread_self(), "headrace-block");
  go_.wait(Go::wait, std::memory_order_acquire);
  if (go_.load(std::memory_order_acquire) == Go::leave) return;
  std::array<void*, kKernelArgumentsMax> arguments{};
  for (std::size_t i = 0; i < arguments.size(); ++i) arguments[i] = arguments_ + packed_.offsets[i];
  try {
    entry_(CpuGroup(index % shape_.blocks, shape_.blocks, index / shape_.blocks, shape_.items), arguments.data());
  } catch (...) {
    strand_->fault();  // no caller could catch it, so users of the stream see a fault
  }
  // The last thread owns the strand. It keeps its own reference, because this object may be destroyed once left_ is 0
  // and the threads are joined.
  const Ref<Strand> strand = strand_;
  if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) strand->resident_done();
}

}  // namespace headrace::detail
