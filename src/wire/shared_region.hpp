#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/file_descriptor.hpp"

namespace headrace::wire {

/// Rows of a tensor in the server's memory: the first row, the bytes of each, and the distance between two.
template <class Byte>
struct Rows {
  Byte* first = nullptr;
  std::size_t count = 0;
  std::size_t bytes = 0;
  std::size_t stride = 0;
};

/// A part of a POSIX shared memory object that a client has registered. The server reads and writes tensors by position
/// and maps nothing, so that a client that truncates its object gets an error, and the server gets no SIGBUS. Any
/// thread.
class SharedRegion {
 public:
  /// @param key  name of the object for shm_open(): a name in /dev/shm, with or without a leading slash
  /// Throws RequestError if the object cannot be opened, or does not contain `bytes` bytes from `offset` on.
  SharedRegion(std::string name, std::string key, std::uint64_t offset, std::uint64_t bytes);

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const std::string& key() const noexcept { return key_; }
  [[nodiscard]] std::uint64_t offset() const noexcept { return offset_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

  /// Reads rows that are contiguous in the region from `at` on; they must lie within it. Throws RequestError if the
  /// object has been cut short.
  void read(std::uint64_t at, const Rows<std::byte>& rows) const;
  /// Writes rows in the same way. Throws RequestError if the object has been cut short, or memory runs out; part of the
  /// rows may be written then.
  void write(std::uint64_t at, const Rows<const std::byte>& rows) const;

 private:
  [[noreturn]] void refuse_short() const;
  template <class Byte, class Call>
  void move(std::uint64_t at, const Rows<Byte>& rows, Call call) const;

  std::string name_;
  std::string key_;
  std::uint64_t offset_;
  std::uint64_t bytes_;
  FileDescriptor object_;
};

/// A part of a region that a tensor is read from or written to. It keeps the region alive after it has been
/// unregistered.
struct SharedRange {
  std::shared_ptr<const SharedRegion> region = {};  ///< Null for none.
  std::uint64_t offset = 0;                         ///< Offset in the region.
  std::uint64_t bytes = 0;
};

}  // namespace headrace::wire
