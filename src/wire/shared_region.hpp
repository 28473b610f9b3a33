#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/file_descriptor.hpp"

namespace headrace::wire {

/// Rows of a tensor among memory of the server: the first one, the bytes of each, and from one to the next.
template <class Byte>
struct Rows {
  Byte* first = nullptr;
  std::size_t count = 0;
  std::size_t bytes = 0;
  std::size_t stride = 0;
};

/// A part of a POSIX shared memory object that a client has registered. Tensors are read and written by position, and
/// nothing is mapped: a client that cuts its object short gets an error, and the server no SIGBUS. Any thread.
class SharedRegion {
 public:
  /// @param key  of the object, as shm_open() takes it: a name in /dev/shm, with or without a slash in front
  /// Throws RequestError where the object cannot be opened, or does not hold `bytes` bytes from `offset` on.
  SharedRegion(std::string name, std::string key, std::uint64_t offset, std::uint64_t bytes);

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const std::string& key() const noexcept { return key_; }
  [[nodiscard]] std::uint64_t offset() const noexcept { return offset_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

  /// Reads rows that lie one behind the other from `at` on, which is within the region as a SharedRange is. Throws
  /// RequestError where the object has been cut short.
  void read(std::uint64_t at, const Rows<std::byte>& rows) const;
  /// Writes them so. Throws RequestError where the object has been cut short, or memory is short. A part may have been
  /// written then.
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

/// A part of a region, which a tensor is read from or written to. It keeps the region after it has been unregistered.
struct SharedRange {
  std::shared_ptr<const SharedRegion> region = {};  ///< Null for none.
  std::uint64_t offset = 0;                         ///< In the region.
  std::uint64_t bytes = 0;
};

}  // namespace headrace::wire
