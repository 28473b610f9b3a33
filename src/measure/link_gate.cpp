#include "measure/link_gate.hpp"

#include <atomic>
#include <cstring>

#include "measure/link_kernels.hpp"

namespace headrace::measure {

Gate::Gate(Device device, Duration bound)
    : words_(device, MemoryKind::mapped, 2 * kWordsBetween * sizeof(std::uint32_t)),
      kernel_(gate_kernel()),
      bound_ns_(static_cast<std::uint64_t>(bound.count())) {
  std::memset(words_.data(), 0, words_.bytes());
}

void Gate::next() noexcept { ++ticket_; }

Status Gate::close(StreamRef stream) {
  return launch(stream, kernel_, {}, static_cast<const std::uint32_t*>(&word()), &expired_word(), ticket_, bound_ns_);
}

void Gate::open() noexcept {
  std::atomic_ref(word()).store(ticket_, std::memory_order_release);  // pairs with the acquire in HoldGate
}

bool Gate::expired() const noexcept {
  return ticket_ != 0 && std::atomic_ref(expired_word()).load(std::memory_order_acquire) == ticket_;
}

}  // namespace headrace::measure
