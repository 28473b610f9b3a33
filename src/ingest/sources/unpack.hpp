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

  /// Takes from `from` and fills `to`, as far as both go. What was made is right even where this is thrown next:
  /// DataError "<name>: ..." for bytes that are no such data.
  [[nodiscard]] virtual Step step(std::span<const std::byte> from, std::span<std::byte> to) = 0;
  /// The file may end here.
  [[nodiscard]] virtual bool complete() const noexcept = 0;
  /// Such as "gzip".
  [[nodiscard]] virtual const char* format() const noexcept = 0;
};

/// Unpacks members of gzip (RFC 1952) one after the other; zeros behind the last are passed over.
/// Throws UsageError where Headrace was built without zlib.
[[nodiscard]] std::unique_ptr<Unpacker> make_gzip_unpacker(const std::string& name);
/// The same for frames of Zstandard (RFC 8878). Throws UsageError where Headrace was built without libzstd.
[[nodiscard]] std::unique_ptr<Unpacker> make_zstd_unpacker(const std::string& name);

/// By the first bytes of a file; null where they are of neither.
[[nodiscard]] std::unique_ptr<Unpacker> make_unpacker(std::span<const std::byte> start, const std::string& name);

}  // namespace headrace::ingest
