#include <fmt/format.h>

#include <string>

#include "headrace/base/error.hpp"
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

void throw_source_error(std::string_view doing, const Source& source, const Error& error) {
  const std::string why = source.failure();
  throw_error(why.empty() ? std::string(doing) : fmt::format("{}: {}", doing, why), error);
}

}  // namespace headrace::ingest
