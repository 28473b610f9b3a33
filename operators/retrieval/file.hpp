#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

namespace headrace::operators {

/// A file's bytes, mapped read-only for as long as `owner` lives.
struct MappedFile {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
};

/// Throws SystemError, naming the file.
[[nodiscard]] MappedFile map_file(const std::filesystem::path& path);

}  // namespace headrace::operators
