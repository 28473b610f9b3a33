#include "headrace/operators/retrieval.hpp"

#include <cstring>
#include <utility>

#include "headrace/base/error.hpp"
#include "headrace/device/buffer.hpp"
#include "headrace/device/stream.hpp"
#include "operators/retrieval/device_image.hpp"
#include "operators/sample.hpp"

namespace headrace::operators {

namespace {

/// What a loaded state's pointers lead to.
struct Uploaded {
  Buffer entries;
  Buffer words;
};

Buffer upload(StreamRef stream, const void* from, std::size_t bytes) {
  Buffer buffer(stream.device(), MemoryKind::device, bytes);
  stream.copy(buffer.data(), from, bytes).or_throw("copying an index to " + stream.device().name());
  return buffer;
}

serve::LoadedState load(const Index& index, Device device) {
  const DeviceImage image = make_device_image(index);
  const Stream stream(device);
  auto uploaded = std::make_shared<Uploaded>(
      Uploaded{upload(stream, image.entries.data(), image.entries.size() * sizeof(image.entries[0])),
               upload(stream, image.words.data(), image.words.size() * sizeof(image.words[0]))});
  stream.wait().or_throw("copying an index to " + device.name());
  const auto postings = make_postings(index, uploaded->entries.data(), uploaded->words.data());
  return serve::make_state(postings, std::move(uploaded));
}

}  // namespace

serve::Operator retrieval(std::shared_ptr<const Index> index, const RetrievalOptions& options) {
  if (index == nullptr) throw UsageError("retrieval: an index is needed");
  require_in_range("retrieval: threads", options.threads, 32, 1024);
  std::function<void(std::uint64_t, std::byte*)> sample;
  if (options.sample) {
    sample = [sampler = std::make_shared<const RetrievalSampler>(index)](std::uint64_t number, std::byte* to) {
      const RetrievalQuery query = sampler->query(number);
      std::memcpy(to, &query, sizeof(query));
    };
  }
  return serve::make_operator<Retrieval>(
      {.blocks = 1, .threads = options.threads}, [index](Device device) { return load(*index, device); },
      std::move(sample));
}

}  // namespace headrace::operators
