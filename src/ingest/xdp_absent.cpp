// Built if libxdp is not available.

#include "headrace/base/error.hpp"
#include "headrace/ingest/xdp_source.hpp"

namespace headrace::ingest {

std::unique_ptr<Source> open_xdp(Ring& /*ring*/, const XdpOptions& /*options*/) {
  throw UsageError(
      "this build of Headrace does not support AF_XDP; install libxdp-dev and libbpf-dev, and build it again",
      Errc::not_supported);
}

}  // namespace headrace::ingest
