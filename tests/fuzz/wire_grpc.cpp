#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "tests/fuzz/served_models.hpp"
#include "wire/grpc/calls.hpp"
#include "wire/grpc/framing.hpp"
#include "wire/grpc/infer_messages.hpp"
#include "wire/memory_share.hpp"
#include "wire/request_error.hpp"

namespace {

using namespace headrace;
using namespace headrace::wire;

constexpr std::size_t kMemory = 4 << 20;
constexpr std::size_t kSpare = 1 << 10;
constexpr std::size_t kMessageMax = 1 << 16;

/// Serves some bytes: the replies to the messages in them, up to the first that cannot be parsed.
std::string serve_bytes(const Models& served, grpc::Method method, std::string_view bytes, std::size_t piece) {
  Budget budget(kMemory);
  // A CPU device shares no memory: what registers some is read, and then refused.
  SharedRegions regions(true, {Device::parse("cpu")}, kMemory);
  std::string replies;
  {
    InferencePool pool(budget, kSpare);
    SpareBuffers buffers;
    MemoryShare memory(pool.budget());
    grpc::MessageReader reader(kMessageMax, memory, buffers);
    try {
      while (!bytes.empty()) {
        std::string_view part = bytes.substr(0, piece);
        bytes.remove_prefix(part.size());
        while (!part.empty()) {
          part.remove_prefix(reader.read(part));
          if (!reader.done()) continue;
          try {
            const grpc::Outcome outcome = grpc::call({.models = served, .regions = regions, .model_control = true},
                                                     method, reader.message(), pool);
            if (outcome.inference != nullptr) {
              const Inference& inference = *outcome.inference;
              if (inference.queries.size() != inference.batch * kQueryBytes || inference.batch == 0) __builtin_trap();
              std::string reply;
              const grpc::InferResponse response(inference);
              response.put(reply);
              if (reply.size() != response.bytes()) __builtin_trap();
              replies += reply;
            } else {
              replies += outcome.message;
            }
          } catch (const RequestError& error) {
            replies += error.what();
            replies += grpc::id_of(reader.message());
          }
          reader.reset();
        }
      }
    } catch (const RequestError& error) {
      replies += error.what();
    }
  }
  if (budget.used() != 0) __builtin_trap();
  return replies;
}

}  // namespace

/// The bytes of a call are messages or are refused, in whatever pieces they arrive. The first byte chooses the method.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Models served = models();
  if (size == 0) return 0;
  constexpr int kMethods = static_cast<int>(grpc::Method::cuda_region_unregister) + 1;
  const auto method = static_cast<grpc::Method>(*data % kMethods);
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  // The statistics also count the engine's idle time, so they differ from call to call.
  if (method == grpc::Method::model_statistics) return 0;
  const std::string whole = serve_bytes(served, method, bytes, std::max<std::size_t>(bytes.size(), 1));
  if (serve_bytes(served, method, bytes, 1) != whole) __builtin_trap();
  if (serve_bytes(served, method, bytes, 7) != whole) __builtin_trap();
  return 0;
}
