#include "headrace/ingest/builder.hpp"

#include "ingest/builder/builder_state.hpp"

namespace headrace::ingest {

Builder::Builder(Device device, const Buffer& ring, BuilderOptions options)
    : state_(std::make_unique<State>(device, ring, options)) {}
Builder::Builder(Builder&&) noexcept = default;
Builder::~Builder() = default;

void Builder::attach(std::uint32_t stream, FrameRing& frames) { state_->attach(stream, frames); }
void Builder::detach(std::uint32_t stream) { state_->detach(stream); }
Status Builder::place(std::span<const Piece> pieces, std::uint64_t ring_end) noexcept {
  return state_->place(pieces, ring_end);
}
Status Builder::note(std::uint32_t stream, std::uint64_t offset, std::uint32_t length) noexcept {
  return state_->note(stream, offset, length);
}
Status Builder::flush() noexcept { return state_->flush(); }
Status Builder::try_flush() noexcept { return state_->try_flush(); }
Status Builder::finish(std::uint32_t stream, std::uint64_t end) noexcept { return state_->finish(stream, end); }
Status Builder::break_off(std::uint32_t stream, std::uint64_t end) noexcept { return state_->break_off(stream, end); }
Status Builder::close(std::uint32_t stream, std::uint64_t frame, const FrameEnd& end) noexcept {
  return state_->close(stream, frame, end);
}
Result<std::uint64_t> Builder::copied() noexcept { return state_->copied(); }
Status Builder::wait() noexcept { return state_->wait(); }
const BuilderCounters& Builder::counters() const noexcept { return state_->counters; }
CopyWay Builder::way() const noexcept { return state_->options.way; }
RingAccess Builder::ring_access() const noexcept { return state_->options.ring_access; }

}  // namespace headrace::ingest
