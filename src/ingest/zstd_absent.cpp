#include <fmt/format.h>

#include "headrace/base/error.hpp"
#include "ingest/sources/unpack.hpp"

namespace headrace::ingest {

std::unique_ptr<Unpacker> make_zstd_unpacker(const std::string& name) {
  throw UsageError(
      fmt::format("{}: the file is zstd data, but Headrace was built without libzstd; unpack the file first", name));
}

}  // namespace headrace::ingest
