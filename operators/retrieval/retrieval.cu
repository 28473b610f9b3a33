#include "headrace/operators/retrieval.hpp"

#include <cstring>
#include <utility>
#include <vector>

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
  Buffer lists;
  Buffer bitmaps;
};

template <class T>
Buffer upload(StreamRef stream, const std::vector<T>& from) {
  Buffer buffer(stream.device(), MemoryKind::device, from.size() * sizeof(T));
  stream.copy(buffer.data(), from.data(), from.size() * sizeof(T))
      .or_throw("copying an index to " + stream.device().name());
  return buffer;
}

serve::LoadedState load(const Index& index, Device device) {
  const DeviceImage image = make_device_image(index);
  const Stream stream(device);
  auto uploaded = std::make_shared<Uploaded>(
      Uploaded{upload(stream, image.entries), upload(stream, image.lists), upload(stream, image.bitmaps)});
  stream.wait().or_throw("copying an index to " + device.name());
  const auto postings =
      make_postings(index, uploaded->entries.data(), uploaded->lists.data(), uploaded->bitmaps.data());
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
