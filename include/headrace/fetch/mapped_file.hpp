#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace headrace::fetch {

/// A file's bytes, mapped for reading. What is read comes into the system's page cache, and counts as its memory.
class MappedFile {
 public:
  /// Throws UsageError (Errc::not_found) for a file that is not there or is none, SystemError naming it otherwise.
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] const std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

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
};

}  // namespace headrace::fetch
