#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "headrace/base/error.hpp"
#include "headrace/operators/index.hpp"
#include "headrace/operators/retrieval.hpp"
#include "operators/retrieval/device_image.hpp"
#include "operators/retrieval/index_format.hpp"
#include "operators/retrieval/packed_index.hpp"

namespace {

using namespace headrace::operators;

/// Uses every part of an accepted index.
void use(const Index& index) {
  for (std::uint32_t term = 0; term < index.term_count(); ++term) {
    if (index.find(index.term(term)) != term) __builtin_trap();
    for (const std::uint32_t id : index.postings(term)) {
      if (id >= index.document_count()) __builtin_trap();
    }
  }
  if (index.document_count() > 1'000'000 || index.term_count() == 0) return;  // its bitmaps would be large
  const DeviceImage image = make_device_image(index);
  const auto postings = make_postings(index, image);
  RetrievalQuery query = index.compile("the OR NOT x OR cat");
  query.terms[0] = index.term_count() - 1;
  RetrievalAnswer answer;
  Retrieval::answer(headrace::CpuGroup{}, postings, &query, &answer);
  if (answer.hits > index.document_count()) __builtin_trap();
}

/// The checksum of a packed file covers its unpacked content.
void use_packed(std::span<const std::byte> bytes) {
  auto words = unpack_index(bytes, "fuzz");
  if (words.size() * sizeof(words[0]) > 50 * bytes.size()) __builtin_trap();
  const auto image = std::as_writable_bytes(std::span(words));
  seal_index(image);
  use(Index::from_bytes(image, "fuzz"));
}

}  // namespace

/// Any bytes are either a usable index or a DataError. The target tries them as they are and with a corrected checksum,
/// because hardly any input would pass it otherwise.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::byte> bytes(size);
  if (size != 0) std::memcpy(bytes.data(), data, size);
  for (const bool seal : {false, true}) {
    if (seal && size < kChecksumBytes) break;
    if (seal && !is_packed(bytes)) seal_index(bytes);
    try {
      if (seal && is_packed(bytes)) {
        use_packed(bytes);
      } else {
        use(Index::from_bytes(bytes, "fuzz"));
      }
    } catch (const headrace::DataError&) {
      continue;
    }
  }
  return 0;
}
