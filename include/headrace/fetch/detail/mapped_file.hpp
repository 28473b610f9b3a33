#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "headrace/base/detail/file_identity.hpp"
#include "headrace/base/detail/guarded_range.hpp"

namespace headrace::fetch {

/// A file's bytes, mapped for reading. What is read comes into the system's page cache, and counts as its memory.
///
/// The mapping is guarded: where the file has been cut short since, it reads as zeros. Whoever has read bytes calls
/// require_unchanged() before they are believed.
class MappedFile {
 public:
  /// @param name  what errors call the file; by default its path.
  /// Throws UsageError (Errc::not_found) for a file that is not there or is none (a folder, a pipe, a device: those are
  /// not opened, because that may block), SystemError naming it otherwise.
  explicit MappedFile(const std::filesystem::path& path, std::string name = {});
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] const std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
  /// How many bytes of the mapping lie from `at` on; 0 for an address outside of it.
  [[nodiscard]] std::size_t bytes_from(const void* at) const noexcept;

  /// Throws DataError naming the file when it has been written, cut short or replaced in place since it was opened.
  void require_unchanged() const;
  /// Reads the pages of a range into the page cache. Throws SystemError naming the file when the disk fails, DataError
  /// when the file has been cut short since it was opened.
  void populate(std::size_t offset, std::size_t bytes) const;
  /// Lets the page cache drop the pages that lie wholly in a range. The system may keep them all the same.
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
