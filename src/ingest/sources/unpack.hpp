#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace headrace::ingest {

/// Unpacks a compressed file, a piece at a time.
class Unpacker {
 public:
  struct Step {
    std::size_t used = 0;  ///< Bytes of `from`.
    std::size_t made = 0;  ///< Bytes of `to`.
  };
  Unpacker() = default;
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;
  virtual ~Unpacker() = default;

  /// Reads from `from` and fills `to` as far as possible. Throws DataError "<name>: ..." for invalid data, but only
  /// after all output before it was returned.
  [[nodiscard]] virtual Step step(std::span<const std::byte> from, std::span<std::byte> to) = 0;
  /// True if the file may end here.
  [[nodiscard]] virtual bool complete() const noexcept = 0;
  /// The name of the format, such as "gzip".
  [[nodiscard]] virtual const char* format() const noexcept = 0;
};

/// Unpacks the members of a gzip file (RFC 1952) in order; ignores zeros after the last one.
/// Throws UsageError if Headrace was built without zlib.
[[nodiscard]] std::unique_ptr<Unpacker> make_gzip_unpacker(const std::string& name);
/// The same for Zstandard frames (RFC 8878). Throws UsageError if Headrace was built without libzstd.
[[nodiscard]] std::unique_ptr<Unpacker> make_zstd_unpacker(const std::string& name);

/// Chooses the unpacker by the first bytes of a file; null if they belong to neither format.
[[nodiscard]] std::unique_ptr<Unpacker> make_unpacker(std::span<const std::byte> start, const std::string& name);

}  // namespace headrace::ingest
