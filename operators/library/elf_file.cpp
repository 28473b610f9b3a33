#include "operators/library/elf_file.hpp"

#include <elf.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <vector>

#include "headrace/base/error.hpp"

namespace headrace::operators {

namespace {

#if defined(__x86_64__)
constexpr std::uint16_t kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr std::uint16_t kMachine = EM_AARCH64;
#else
constexpr std::uint16_t kMachine = EM_NONE;
#endif

/// Whether all bytes were read.
[[nodiscard]] bool read_at(int descriptor, void* to, std::size_t bytes, std::uint64_t offset) noexcept {
  auto* at = static_cast<std::byte*>(to);
  while (bytes > 0) {
    const ssize_t got = ::pread(descriptor, at, bytes, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    offset += static_cast<std::uint64_t>(got);
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

/// Whether `count` items of `bytes` bytes, starting at `offset`, end within the file.
[[nodiscard]] bool fits(std::uint64_t offset, std::uint64_t count, std::uint64_t bytes, std::uint64_t file) noexcept {
  return offset <= file && (count == 0 || bytes <= (file - offset) / count);
}

}  // namespace

void require_shared_object(int descriptor, const std::string& path) {
  struct stat status{};
  if (::fstat(descriptor, &status) != 0) throw_errno("reading " + path);
  if (!S_ISREG(status.st_mode))
    throw DataError(fmt::format("{} is not a shared object: it is not a regular file", path));
  const auto file = static_cast<std::uint64_t>(status.st_size);
  Elf64_Ehdr header{};
  if (!read_at(descriptor, &header, sizeof header, 0) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    throw DataError(fmt::format("{} is not a shared object: it does not begin with an ELF header", path));
  }
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
      (kMachine != EM_NONE && header.e_machine != kMachine)) {
    throw DataError(fmt::format("{} was built for another kind of machine", path));
  }
  if (header.e_type != ET_DYN) {
    throw DataError(
        fmt::format("{} is an ELF file but not a shared object; build it with headrace_add_operator()", path));
  }
  const auto damaged = [&] { return DataError(fmt::format("{} is damaged or incomplete; build it again", path)); };
  if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum == 0 ||
      !fits(header.e_phoff, header.e_phnum, sizeof(Elf64_Phdr), file) ||
      !fits(header.e_shoff, header.e_shnum, header.e_shentsize, file)) {
    throw damaged();
  }
  std::vector<Elf64_Phdr> segments(header.e_phnum);
  if (!read_at(descriptor, segments.data(), segments.size() * sizeof(Elf64_Phdr), header.e_phoff)) throw damaged();
  for (const Elf64_Phdr& one : segments) {
    if (one.p_type != PT_NULL && !fits(one.p_offset, 1, one.p_filesz, file)) throw damaged();
  }
}

}  // namespace headrace::operators
