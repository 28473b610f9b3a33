#include "ingest/intake.hpp"

namespace headrace::ingest {

namespace {

constexpr const char* kCopying = "copying payloads";

}  // namespace

void HostIntake::pass_over() { parts_.builder->place({}, parts_.ring.published()).or_throw(kCopying); }

void HostIntake::flush(bool ring_full) {
  if (ring_full) return wait();
  parts_.builder->try_flush().or_throw(kCopying);
}

std::uint64_t HostIntake::copied() { return parts_.builder->copied().or_throw(kCopying); }

void HostIntake::give_up() noexcept { static_cast<void>(parts_.builder->wait()); }

void HostIntake::wait() { parts_.builder->wait().or_throw(kCopying); }

}  // namespace headrace::ingest
