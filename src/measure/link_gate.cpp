#include "measure/link_gate.hpp"

#include <cstring>

#include "measure/link_kernels.hpp"

namespace headrace::measure {

Gate::Gate(Device device, Duration bound)
    : words_(std::make_shared<const Buffer>(device, MemoryKind::mapped, 2 * kWordsBetween * sizeof(std::uint32_t))),
      bound_ns_(static_cast<std::uint64_t>(bound.count())),
      kernels_(device, [this](bool /*at_once*/) { open(); }) {
  std::memset(words_->data(), 0, words_->bytes());
  kernels_.keep(words_);
}

void Gate::next() noexcept { ++ticket_; }

Status Gate::close(StreamRef stream) {
  return kernels_.run_in(stream, [this](StreamRef held) {
    return launch(held, gate_kernel(), {}, static_cast<const std::uint32_t*>(&word()), &expired_word(), ticket_,
                  bound_ns_);
  });
}

void Gate::open() noexcept { ResidentKernel::tell(word(), ticket_); }  // pairs with the acquire in HoldGate

bool Gate::expired() const noexcept { return ticket_ != 0 && ResidentKernel::heard(expired_word()) == ticket_; }

}  // namespace headrace::measure
