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

/// Throws SystemError naming the file.
[[nodiscard]] MappedFile map_file(const std::filesystem::path& path);

/// Replaces the file at `path` by `bytes`, whole or not at all: a temporary file beside it is written, synced and
/// renamed. Throws SystemError naming the file, and then leaves nothing behind.
void replace_file(const std::filesystem::path& path, std::span<const std::byte> bytes);

}  // namespace headrace::operators
