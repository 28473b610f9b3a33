#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>

namespace headrace {

/// Distinguishes one state of a file from another: which file it is and when it was last written.
///
/// A writer of the file can set the modification time back, but not the change time. Writes through another process's
/// shared mapping update both times only when the system first marks a page as dirty.
struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t bytes = 0;
  std::int64_t modified_ns = 0;  ///< Since 1970, as the file system keeps it.
  std::int64_t changed_ns = 0;   ///< The change time of the inode.
  std::uint64_t links = 0;       ///< Number of names of the file.
};

/// Whether nothing shows that the file was written between the two. If the file has lost its last name, for example
/// because another file was renamed over it, the change time is ignored: losing the name changed it, and no process can
/// open the file any more.
[[nodiscard]] bool is_unchanged(const FileIdentity& then, const FileIdentity& now) noexcept;

[[nodiscard]] FileIdentity identity_of(const struct stat& status) noexcept;
/// The identity of an open file. Throws SystemError that names `path`.
[[nodiscard]] FileIdentity identity_of(int descriptor, const std::string& path);
/// As above, but taken when any later write is certain to show in it. File systems may count time in ticks of some
/// milliseconds, so the identity of a file that was written in the current tick is read again afterwards. Waits for at
/// most two ticks.
[[nodiscard]] FileIdentity settled_identity(int descriptor, const std::string& path);

}  // namespace headrace
