#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>

namespace headrace {

/// A file that is being written. Every file that Headrace makes as a whole goes through this class.
///
/// Until commit() the bytes are in an unnamed file in the folder of the target (or in one with a random name if the
/// file system has no unnamed files). The target therefore has either its old content or all of the new content, even
/// after a power failure. Only regular files are replaced: symbolic links are followed, and commit() copies the bytes
/// into device nodes, FIFOs and the standard streams. A new file gets its mode from the umask. A replaced file keeps
/// its mode and, if the process may set it, its owner.
class OutputFile {
 public:
  /// Finds out where the bytes will go and checks that they can, so that it throws before any work is done for them.
  /// @throws UsageError when `path` is a folder
  /// @throws SystemError naming `path` when its folder does not exist or nothing can be written there
  explicit OutputFile(const std::filesystem::path& path);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  /// Discards the written bytes unless commit() has returned.
  ~OutputFile();

  /// Path of the bytes until commit(). This process and its children can open it.
  [[nodiscard]] const std::string& staging() const noexcept { return staging_; }

  /// Appends to the file. Throws SystemError naming the target.
  void write(std::span<const std::byte> bytes);

  /// Gives the target its new content, durably. If it throws SystemError, which names the target, the target is
  /// unchanged.
  /// @param interrupted called when a signal interrupts waiting for the reader of a FIFO; waiting ends if it throws
  void commit(const std::function<void()>& interrupted = {});

 private:
  /// Where the bytes end up.
  struct Target {
    std::string path;                     ///< With symbolic links resolved.
    std::string folder;                   ///< The folder that contains it.
    std::optional<struct stat> replaced;  ///< The regular file that is there already.
    bool through = false;                 ///< The target is not a regular file, so commit() copies the bytes into it.
    int standard = -1;                    ///< The number of the standard stream that the target is, or -1.
  };

  [[nodiscard]] static Target find(const std::filesystem::path& path);
  void stage(const std::string& folder);
  void copy_through(const std::function<void()>& interrupted) const;
  void take_attributes() const;
  void rename();

  std::string shown_;  ///< The target as the caller named it, for messages.
  Target target_;
  int file_ = -1;  ///< Descriptor of the staged bytes.
  std::string staging_;
  std::string named_;  ///< The name of the staged file in the folder; empty while it has none.
};

/// Throws what writing to `path` would throw, but changes nothing.
void check_output(const std::filesystem::path& path);

/// Writes a whole file: an OutputFile, written and committed.
void write_output(const std::filesystem::path& path, std::span<const std::byte> bytes,
                  const std::function<void()>& interrupted = {});

}  // namespace headrace
