#include "wire/shared_region.hpp"

#include <fmt/format.h>

#include <utility>

#include "wire/request_error.hpp"

namespace headrace::wire {

SharedRegion::SharedRegion(RegionKind kind, std::string name, std::uint64_t bytes)
    : kind_(kind), name_(std::move(name)), bytes_(bytes) {
  if (bytes_ == 0) refuse(fmt::format("region \"{}\" must have at least 1 byte", name_));
}

}  // namespace headrace::wire
