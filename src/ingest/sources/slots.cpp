#include "ingest/sources/slots.hpp"

#include <fmt/format.h>

#include "headrace/base/error.hpp"

namespace headrace::ingest {

Slots::Slots(Ring& ring, std::string_view source) : ring_(&ring) {
  if (!host_accessible(ring.buffer().kind())) {
    throw UsageError(
        fmt::format("{} fills its ring from the host, which cannot write {} memory; use pinned or mapped memory",
                    source, to_string(ring.buffer().kind())));
  }
}

}  // namespace headrace::ingest
