#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>

namespace headrace {

/// What tells one state of a file from another: which file it is, and when it was last written.
///
/// The modification time alone can be set back by whoever writes the file; the change time cannot. Writes through
/// somebody else's shared mapping reach both times only when the system first marks a page as dirty.
struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t bytes = 0;
  std::int64_t modified_ns = 0;  ///< Since 1970, as the file system keeps it.
  std::int64_t changed_ns = 0;   ///< The same of the inode.
  std::uint64_t links = 0;       ///< Names that the file has.
};

/// Whether nothing shows that the file was written between the two. Where it has lost its last name, as when another
/// file was renamed over it, the change time alone says nothing: that changed it, and nobody can open it any more.
[[nodiscard]] bool is_unchanged(const FileIdentity& then, const FileIdentity& now) noexcept;

[[nodiscard]] FileIdentity identity_of(const struct stat& status) noexcept;
/// The identity of an open file. Throws SystemError that names `path`.
[[nodiscard]] FileIdentity identity_of(int descriptor, const std::string& path);
/// The same, once any later write is bound to show in it: file systems may count time in ticks of some milliseconds,
/// and a file that was written within the current tick is asked for again after it. Waits for two ticks at most.
[[nodiscard]] FileIdentity settled_identity(int descriptor, const std::string& path);

}  // namespace headrace
