#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace headrace::wire {

/// Rows of a tensor in the server's memory: the first row, the bytes of each, and the distance between two.
template <class Byte>
struct Rows {
  Byte* first = nullptr;
  std::size_t count = 0;
  std::size_t bytes = 0;
  std::size_t stride = 0;
};

/// Which memory a region is part of. Each kind is an extension of Triton's.
enum class RegionKind : std::uint8_t {
  system,  ///< POSIX shared memory.
  cuda,    ///< Memory of a CUDA device.
};

/// Memory that a client has registered for tensors, and may change at any time. Any thread.
class SharedRegion {
 public:
  SharedRegion(const SharedRegion&) = delete;
  SharedRegion& operator=(const SharedRegion&) = delete;
  virtual ~SharedRegion() = default;

  [[nodiscard]] RegionKind kind() const noexcept { return kind_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

  /// Reads rows that are contiguous in the region from `at` on; they must lie within it. Throws RequestError if the
  /// memory cannot be read.
  virtual void read(std::uint64_t at, const Rows<std::byte>& rows) const = 0;
  /// Writes rows in the same way. Throws RequestError if the memory cannot be written; part of the rows may be written
  /// then.
  virtual void write(std::uint64_t at, const Rows<const std::byte>& rows) const = 0;

 protected:
  /// Throws RequestError if `bytes` is 0.
  SharedRegion(RegionKind kind, std::string name, std::uint64_t bytes);

 private:
  RegionKind kind_;
  std::string name_;
  std::uint64_t bytes_;
};

/// A part of a region that a tensor is read from or written to. It keeps the region alive after it has been
/// unregistered.
struct SharedRange {
  std::shared_ptr<const SharedRegion> region = {};  ///< Null for none.
  std::uint64_t offset = 0;                         ///< Offset in the region.
  std::uint64_t bytes = 0;
};

}  // namespace headrace::wire
