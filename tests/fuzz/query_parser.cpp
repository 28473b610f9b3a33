#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/error.hpp"
#include "headrace/operators/index.hpp"
#include "headrace/operators/retrieval.hpp"
#include "operators/retrieval/brute_force.hpp"
#include "operators/retrieval/device_image.hpp"

namespace {

using namespace headrace::operators;

/// 300 documents: the terms "a" to "f" are in the documents whose number is divisible by 1, 2, 3, 50, 100 and 200.
struct World {
  std::vector<std::string> documents = make();
  BruteForce slow{documents};
  Index index = build(documents);
  DeviceImage image = make_device_image(index);
  boolean::Postings postings = make_postings(index, image);

  static std::vector<std::string> make() {
    std::vector<std::string> documents(300);
    const std::string_view terms = "abcdef";
    const std::size_t steps[] = {1, 2, 3, 50, 100, 200};
    for (std::size_t i = 0; i < documents.size(); ++i) {
      for (std::size_t t = 0; t < terms.size(); ++t) {
        if (i % steps[t] == 0) documents[i] += std::string{terms[t], ' '};
      }
    }
    return documents;
  }
  static Index build(const std::vector<std::string>& documents) {
    IndexBuilder builder;
    for (const auto& document : documents) builder.add(document);
    return builder.build();
  }
};

}  // namespace

/// Any text is either a query with the same answer as brute force, or a UsageError.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const World world;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const RetrievalQuery query = world.index.compile(text);
    RetrievalAnswer answer;
    Retrieval::answer(headrace::CpuGroup{}, world.postings, &query, &answer);
    if (answer != world.slow.answer(text)) __builtin_trap();
  } catch (const headrace::UsageError&) {
    return 0;
  }
  return 0;
}
