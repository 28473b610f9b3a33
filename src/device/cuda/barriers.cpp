#include "device/cuda/barriers.hpp"

#include <cuda/barrier>
#include <new>

#include "headrace/base/detail/bytes.hpp"

namespace headrace::detail::cuda {

namespace {

using Barrier = ::cuda::barrier<::cuda::thread_scope_system>;
static_assert(sizeof(Barrier) <= sizeof(BarrierCell) && alignof(Barrier) <= alignof(BarrierCell));

/// Parties of each barrier: the host and the kernel.
constexpr std::ptrdiff_t kParties = 2;
/// Managed memory moves by pages, and the driver moves up to this much at once (the GPU's page size for host memory).
constexpr std::size_t kPageBytes = 64 * kKiB;

Barrier& barrier(BarrierCell& cell) noexcept { return *std::launder(reinterpret_cast<Barrier*>(&cell)); }

void construct(BarrierCell& cell) noexcept { new (&cell) Barrier(kParties); }

std::uint64_t arrive(BarrierCell& cell) noexcept { return barrier(cell).arrive(); }

/// See CudaGroup::passed() for why this is not a member of the barrier.
bool passed(BarrierCell& cell, std::uint64_t token) noexcept {
  return ::cuda::std::__call_try_wait(barrier(cell), Barrier::arrival_token{token});
}

}  // namespace

const BarrierFunctions& barrier_functions() noexcept {
  static constexpr BarrierFunctions functions{kPageBytes, construct, arrive, passed};
  return functions;
}

}  // namespace headrace::detail::cuda
