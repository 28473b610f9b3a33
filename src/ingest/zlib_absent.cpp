#include <fmt/format.h>

#include "headrace/base/error.hpp"
#include "ingest/sources/unpack.hpp"

namespace headrace::ingest {

std::unique_ptr<Unpacker> make_gzip_unpacker(const std::string& name) {
  throw UsageError(
      fmt::format("{}: the file is gzip data, but Headrace was built without zlib; unpack the file first", name));
}

}  // namespace headrace::ingest
