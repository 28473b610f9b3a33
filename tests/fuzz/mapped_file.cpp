#include <fuzzer/FuzzedDataProvider.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "headrace/base/error.hpp"
#include "headrace/fetch/source.hpp"

namespace {

using namespace headrace::fetch;

/// An in-memory file and its mapping.
class File {
 public:
  explicit File(const std::vector<std::uint8_t>& content) : descriptor_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    if (descriptor_ < 0) __builtin_trap();
    if (::write(descriptor_, content.data(), content.size()) != static_cast<ssize_t>(content.size())) __builtin_trap();
    mapped = std::make_shared<const MappedFile>("/proc/self/fd/" + std::to_string(descriptor_));
    if (mapped->bytes() != content.size()) __builtin_trap();
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { ::close(descriptor_); }
  /// Reading a file that is shorter than its mapping raises SIGBUS, so the target only populates it.
  void cut(std::size_t bytes) const {
    if (::ftruncate(descriptor_, static_cast<off_t>(bytes)) != 0) __builtin_trap();
  }

  std::shared_ptr<const MappedFile> mapped;

 private:
  int descriptor_;
};

/// Whether the range could be populated.
bool populated(const FileRange& range) {
  try {
    range.file->populate(range.offset, range.bytes);
    return true;
  } catch (const headrace::DataError&) {
    return false;
  }
}

/// The buffers of an int32 column start anywhere in the file or outside of it; the ranges must lie in the file.
void ranges_of_a_batch(FuzzedDataProvider& data, const File& file) {
  std::array<const void*, 2> buffers{};
  for (const void*& buffer : buffers) {
    buffer = reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(file.mapped->data()) +
                                           data.ConsumeIntegral<std::uint32_t>() % (2 * file.mapped->bytes() + 1));
  }
  ArrowArray column{};
  column.length = data.ConsumeIntegral<std::uint16_t>();
  column.offset = data.ConsumeIntegral<std::uint16_t>();
  column.null_count = -1;
  column.n_buffers = 2;
  column.buffers = buffers.data();
  ArrowArray* columns[] = {&column};
  ArrowArray batch{};
  batch.length = column.length;
  batch.n_children = 1;
  batch.children = columns;
  batch.release = [](ArrowArray* array) { array->release = nullptr; };
  ArrowSchema child{};
  child.format = "i";
  child.name = "x";
  child.flags = ARROW_FLAG_NULLABLE;
  ArrowSchema* children[] = {&child};
  ArrowSchema schema{};
  schema.format = "+s";
  schema.n_children = 1;
  schema.children = children;
  std::vector<ArrowSource::Batch> batches(1);
  batches[0].array = OwnedArray(batch);
  batches[0].mapped = file.mapped;
  const ArrowSource source(schema, std::move(batches));
  for (const FileRange& range : source.ranges({})) {
    if (range.offset > file.mapped->bytes() || range.bytes > file.mapped->bytes() - range.offset) __builtin_trap();
    if (!populated(range)) __builtin_trap();
  }
}

}  // namespace

/// Populating any range of a mapped file either succeeds or throws a DataError; releasing it touches nothing beside it.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  FuzzedDataProvider data(bytes, size);
  std::vector<std::uint8_t> content(data.ConsumeIntegralInRange<std::size_t>(0, 5 * 4096));
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<std::uint8_t>(i * 7);
  const File file(content);
  if (!content.empty()) ranges_of_a_batch(data, file);
  std::size_t there = content.size();
  while (data.remaining_bytes() > 0) {
    const FileRange range{
        .file = file.mapped,
        .offset = data.ConsumeBool() ? data.ConsumeIntegral<std::uint16_t>() : data.ConsumeIntegral<std::size_t>(),
        .bytes = data.ConsumeBool() ? data.ConsumeIntegral<std::uint16_t>() : data.ConsumeIntegral<std::size_t>()};
    const bool inside = range.offset <= content.size() && range.bytes <= content.size() - range.offset;
    switch (data.ConsumeIntegralInRange(0, 4)) {
      case 0:
        there = data.ConsumeIntegralInRange<std::size_t>(0, there);
        file.cut(there);
        break;
      case 1: file.mapped->drop(range.offset, range.bytes); break;
      default:
        if (populated(range) && !inside) __builtin_trap();
        if (inside && range.offset + range.bytes <= there && !populated(range)) __builtin_trap();
    }
  }
  for (std::size_t i = 0; i < there; ++i) {
    if (file.mapped->data()[i] != static_cast<std::byte>(content[i])) __builtin_trap();
  }
  return 0;
}
