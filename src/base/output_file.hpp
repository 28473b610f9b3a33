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
/// Until commit() the bytes are in a file without a name (or, where the file system has no such files, with a random
/// one) in the folder of the target, so that the target is either what it was or the whole of what was written, even
/// after a power failure. Whatever is not a regular file is never replaced: symbolic links are followed, and commit()
/// copies the bytes into device nodes, FIFOs, and the standard streams. A new file has the mode that the umask leaves;
/// one that is replaced keeps its mode and, where the process may set it, its owner.
class OutputFile {
 public:
  /// Finds out where the bytes will go, and that they can: throws before any work is done for them.
  /// @throws UsageError when `path` is a folder
  /// @throws SystemError naming `path` when its folder does not exist or nothing can be written there
  explicit OutputFile(const std::filesystem::path& path);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  /// Discards what was written unless commit() has returned.
  ~OutputFile();

  /// Where the bytes are until commit(): a name under which this process and its children can open the file.
  [[nodiscard]] const std::string& staging() const noexcept { return staging_; }

  /// Appends to the file. Throws SystemError naming the target.
  void write(std::span<const std::byte> bytes);

  /// Gives the target its new content, durably. Throws SystemError naming the target, which then is what it was.
  /// @param interrupted called when a signal interrupts waiting for the reader of a FIFO; waiting ends if it throws
  void commit(const std::function<void()>& interrupted = {});

 private:
  /// Where the bytes end up.
  struct Target {
    std::string path;                     ///< With symbolic links resolved.
    std::string folder;                   ///< The folder that it is in.
    std::optional<struct stat> replaced;  ///< The regular file that is there already.
    bool through = false;                 ///< It is no regular file, and takes the bytes itself.
    int standard = -1;                    ///< The standard stream that it is, or -1.
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
  std::string named_;  ///< The name that they have in the folder; empty while they have none.
};

/// Throws what writing to `path` would throw, without changing anything there.
void check_output(const std::filesystem::path& path);

/// Writes a whole file: an OutputFile, written and committed.
void write_output(const std::filesystem::path& path, std::span<const std::byte> bytes,
                  const std::function<void()>& interrupted = {});

}  // namespace headrace
