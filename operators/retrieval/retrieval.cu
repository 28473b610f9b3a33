#include "headrace/operators/retrieval.hpp"

#include <cstring>
#include <utility>
#include <vector>

#include "headrace/base/error.hpp"
#include "headrace/device/buffer.hpp"
#include "headrace/device/detail/uploads.hpp"
#include "operators/retrieval/device_image.hpp"
#include "operators/sample.hpp"

namespace headrace::operators {

namespace {

serve::LoadedState load(const Index& index, Device device) {
  const DeviceImage image = make_device_image(index);
  Uploads uploads(device, "copying an index to a device");
  uploads.add(image.entries);
  uploads.add(image.lists);
  uploads.add(image.bitmaps);
  auto uploaded = std::make_shared<const std::vector<Buffer>>(uploads.finish());
  const auto postings = make_postings(index, (*uploaded)[0].data(), (*uploaded)[1].data(), (*uploaded)[2].data());
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
  serve::Operator op = serve::make_operator<Retrieval>(
      {.blocks = 1, .threads = options.threads}, [index](Device device) { return load(*index, device); },
      std::move(sample));
  op.answer_type = "([('hits', '<u4'), ('ids', '<u4', (15,))], ())";
  return op;
}

}  // namespace headrace::operators
