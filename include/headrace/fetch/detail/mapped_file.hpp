#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "headrace/base/detail/file_identity.hpp"
#include "headrace/base/detail/guarded_range.hpp"

namespace headrace::fetch {

/// A file's bytes, mapped for reading. Pages that are read lie in the system's page cache and count as its memory.
///
/// The mapping is guarded: if the file is cut short, the lost part reads as zeros. After reading bytes, call
/// require_unchanged() before relying on them.
class MappedFile {
 public:
  /// @param name  the file's name in errors; by default its path.
  /// Throws UsageError (Errc::not_found) for a folder, pipe, socket or device, which it does not open, because that may
  /// block; otherwise SystemError naming the file, with Errc::not_found if it does not exist.
  explicit MappedFile(const std::filesystem::path& path, std::string name = {});
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] const std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
  /// Bytes of the mapping from `at` on; 0 for an address outside of it.
  [[nodiscard]] std::size_t bytes_from(const void* at) const noexcept;

  /// Throws DataError naming the file if it has been written, cut short or replaced in place since it was opened.
  void require_unchanged() const;
  /// Reads the pages of a range into the page cache. Throws SystemError naming the file if the disk fails, DataError if
  /// the file has been cut short since it was opened.
  void populate(std::size_t offset, std::size_t bytes) const;
  /// Lets the page cache drop the pages that lie entirely in a range. The system may still keep them.
  void drop(std::size_t offset, std::size_t bytes) const noexcept;

 private:
  std::string path_;
  int descriptor_ = -1;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  FileIdentity identity_;
  GuardedRange guard_;
};

}  // namespace headrace::fetch
