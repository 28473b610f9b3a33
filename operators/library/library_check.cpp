#include "operators/library/library_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "headrace/base/error.hpp"
#include "headrace/config.hpp"
#include "headrace/serve/operator.hpp"

namespace headrace::operators {

namespace {

constexpr std::string_view kAdvice = "build it again with the headers of the Headrace that loads it";

[[nodiscard]] std::string text(const char* given) { return given == nullptr ? "" : given; }

/// The Headrace version and compiler of a shared object, as "Headrace 0.9.0 (abc1234) by GCC 12.2.0".
[[nodiscard]] std::string origin(const OperatorLibrary& library) {
  const std::string commit = text(library.commit);
  return fmt::format("Headrace {}{} by {}", text(library.version), commit.empty() ? "" : fmt::format(" ({})", commit),
                     text(library.compiler));
}

void require_layouts(const OperatorLibrary& library, const std::string& path) {
  const std::span<const LibraryLayout> theirs(library.layouts, library.layouts == nullptr ? 0 : library.layout_count);
  const std::span<const LibraryLayout> ours(kLibraryLayouts);
  const auto fail = [&](const std::string& difference) {
    throw UsageError(fmt::format("{} was built with {}, but {}: {}", path, origin(library), difference, kAdvice),
                     Errc::not_supported);
  };
  if (theirs.size() != ours.size()) fail(fmt::format("it describes {} layouts, not {}", theirs.size(), ours.size()));
  for (std::size_t i = 0; i < ours.size(); ++i) {
    if (text(theirs[i].name) == ours[i].name && theirs[i].bytes == ours[i].bytes &&
        theirs[i].alignment == ours[i].alignment) {
      continue;
    }
    fail(fmt::format("its {} has {} bytes aligned to {}, while {} has {} aligned to {} here", text(theirs[i].name),
                     theirs[i].bytes, theirs[i].alignment, ours[i].name, ours[i].bytes, ours[i].alignment));
  }
}

void require_kernels(const OperatorLibrary& library, const std::string& path) {
  constexpr std::uint32_t kThreadsMost = 1024;
  const auto fail = [&](std::string_view what) { throw DataError(fmt::format("{}: {}", path, what)); };
  if (text(library.name).empty()) fail("its operator has no name");
  if (library.query_bytes == 0 || library.answer_bytes == 0) fail("its query or answer has no bytes");
  if (library.state_bytes == 0 || library.state_bytes > serve::kStateBytesMax)
    fail("its State must have 1 to 256 bytes");
  if (library.blocks == 0 || library.threads == 0 || library.threads > kThreadsMost) {
    fail(fmt::format("{} blocks of {} threads are not possible: it needs at least 1 block of 1 to {} threads",
                     library.blocks, library.threads, kThreadsMost));
  }
  if (library.make_state == nullptr) fail("it has no function that makes its State");
  constexpr auto kOptional = static_cast<std::size_t>(LibraryKernel::pool_inline);
  for (std::size_t i = 0; i < kLibraryKernels; ++i) {
    const Kernel& kernel = library.kernels[i];
    if (i == kOptional && kernel.cpu_entry() == nullptr) continue;
    if (kernel.cpu_entry() == nullptr || kernel.argument_count == 0 || kernel.argument_count > kKernelArgumentsMax ||
        kernel.argument_bytes[0] != library.state_bytes) {
      fail("one of its kernels is missing");
    }
  }
}

[[nodiscard]] bool is_number(const Field& field) noexcept {
  const auto is_one_of = [&](std::initializer_list<std::uint32_t> sizes) {
    return std::ranges::find(sizes, field.item_bytes) != sizes.end();
  };
  if (field.kind == 'b') return field.item_bytes == 1;
  if (field.kind == 'f') return is_one_of({2, 4, 8});
  return (field.kind == 'i' || field.kind == 'u') && is_one_of({1, 2, 4, 8});
}

[[nodiscard]] bool is_name(std::string_view name) noexcept {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !name.empty() && letter(name.front()) &&
         std::ranges::all_of(name, [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

/// The number type, as "'<f4'", and the shape, as "(3,)".
[[nodiscard]] std::string item_type(const Field& field) {
  return fmt::format("'{}{}{}'", field.item_bytes == 1 ? '|' : '<', field.kind, field.item_bytes);
}

[[nodiscard]] std::string shape_of(const Field& field) {
  std::string shape = "(";
  for (std::uint32_t i = 0; i < field.dimensions; ++i) shape += fmt::format("{},", field.lengths[i]);
  return shape + ")";
}

/// The size of a field, or 0 if it is not a valid field of at most `most` bytes.
[[nodiscard]] std::uint64_t bytes_of(const Field& field, std::uint64_t most) noexcept {
  if (!is_number(field) || field.dimensions > Field::kDimensionsMax) return 0;
  std::uint64_t bytes = field.item_bytes;
  for (std::uint32_t i = 0; i < field.dimensions; ++i) {
    if (field.lengths[i] == 0 || field.lengths[i] > most / bytes) return 0;
    bytes *= field.lengths[i];
  }
  return bytes;
}

}  // namespace

void require_matching(const OperatorLibrary& library, const std::string& path) {
  if (library.abi != kOperatorAbi) {
    throw UsageError(fmt::format("{} has an operator of ABI {}, built with {}, but this Headrace ({}) has ABI {}: {}",
                                 path, library.abi, origin(library), kVersion, kOperatorAbi, kAdvice),
                     Errc::not_supported);
  }
  // Kernels in the shared object and engines here share queues, whose protocol may change with any version.
  if (text(library.version) != kVersion) {
    throw UsageError(
        fmt::format("{} was built with {}, but this is Headrace {}: {}", path, origin(library), kVersion, kAdvice),
        Errc::not_supported);
  }
  if (library.bytes != sizeof(OperatorLibrary)) {
    throw UsageError(fmt::format("{} was built with {}, but describes its operator in {} bytes, not {}: {}", path,
                                 origin(library), library.bytes, sizeof(OperatorLibrary), kAdvice),
                     Errc::not_supported);
  }
  require_layouts(library, path);
  require_kernels(library, path);
}

std::string numpy_type(const Field* fields, std::uint32_t count, std::uint64_t bytes, const char* what,
                       const std::string& path) {
  if (count == 0) return "";
  std::vector<Field> sorted(fields, fields + count);
  std::ranges::stable_sort(sorted, {}, &Field::offset);
  std::string type = "[";
  std::uint64_t end = 0;
  const auto pad = [&](std::uint64_t to) {
    if (to > end) type += fmt::format("('', '|V{}'), ", to - end);
  };
  for (const Field& field : sorted) {
    const std::string name = text(field.name);
    const std::uint64_t size = bytes_of(field, bytes);
    if (count == 1 && name.empty() && field.offset == 0 && size == bytes) {
      return fmt::format("({}, {})", item_type(field), shape_of(field));
    }
    if (!is_name(name) || size == 0 || field.offset < end || field.offset > bytes || size > bytes - field.offset) {
      throw DataError(fmt::format("{}: field '{}' of its {} is not a number or an array of numbers within {} bytes",
                                  path, name, what, bytes));
    }
    pad(field.offset);
    type += fmt::format("('{}', {}, {}), ", name, item_type(field), shape_of(field));
    end = field.offset + size;
  }
  pad(bytes);
  return fmt::format("({}], ())", type);
}

}  // namespace headrace::operators
