#pragma once

#include <cstdint>
#include <string>

#include "base/file_descriptor.hpp"
#include "wire/shared_region.hpp"

namespace headrace::wire {

/// A part of a POSIX shared memory object. The server reads and writes tensors by position and maps nothing, so that a
/// client that truncates its object gets an error, and the server gets no SIGBUS.
class PosixRegion final : public SharedRegion {
 public:
  /// @param key  name of the object for shm_open(): a name in /dev/shm, with or without a leading slash
  /// Throws RequestError if the object cannot be opened, or does not contain `bytes` bytes from `offset` on.
  PosixRegion(std::string name, std::string key, std::uint64_t offset, std::uint64_t bytes);

  [[nodiscard]] const std::string& key() const noexcept { return key_; }
  [[nodiscard]] std::uint64_t offset() const noexcept { return offset_; }

  /// Throws RequestError if the object has been cut short.
  void read(std::uint64_t at, const Rows<std::byte>& rows) const override;
  /// Throws RequestError if the object has been cut short, or memory runs out.
  void write(std::uint64_t at, const Rows<const std::byte>& rows) const override;

 private:
  [[noreturn]] void refuse_short() const;
  template <class Byte, class Call>
  void move(std::uint64_t at, const Rows<Byte>& rows, Call call) const;

  std::string key_;
  std::uint64_t offset_;
  FileDescriptor object_;
};

}  // namespace headrace::wire
