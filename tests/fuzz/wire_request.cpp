#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "tests/fuzz/served_models.hpp"
#include "wire/http/reader.hpp"
#include "wire/http/routes.hpp"
#include "wire/memory_share.hpp"
#include "wire/request_error.hpp"

namespace {

using namespace headrace;
using namespace headrace::wire;

constexpr std::size_t kMemory = 4 << 20;
constexpr std::size_t kSpare = 1 << 10;

/// Result of serving some bytes.
struct Served {
  std::string replies;  ///< Bodies of all replies, up to the first invalid request.
  std::string refusal;  ///< Why that request is invalid.

  /// If an invalid request arrives in pieces, the parser may notice later, but not before the bytes end. By then its
  /// head may be too long as well.
  [[nodiscard]] bool same_as(const Served& other) const {
    return replies == other.replies &&
           (refusal == other.refusal || !says_what_is_wrong() || !other.says_what_is_wrong());
  }

  [[nodiscard]] bool says_what_is_wrong() const {
    return !refusal.empty() && refusal != "the head of the request is too long";
  }
};

Served serve_bytes(const Models& served, std::string_view bytes, std::size_t piece) {
  static const std::atomic<bool> draining{false};
  // A CPU device shares no memory: what registers some is read, and then refused.
  SharedRegions regions(true, {Device::parse("cpu")}, kMemory);
  Budget budget(kMemory);
  Served result;
  {
    InferencePool pool(budget, kSpare);
    MemoryShare memory(pool.budget());
    const http::Limits limits{.head_bytes_max = 2048, .body_bytes_max = 1 << 16};
    http::Reader reader(limits, memory);
    std::string unread;
    try {
      while (!bytes.empty()) {
        unread += bytes.substr(0, piece);
        bytes.remove_prefix(std::min(piece, bytes.size()));
        for (std::size_t used = 1; used > 0 && !unread.empty();) {
          used = reader.read(unread);
          unread.erase(0, used);
          if (!reader.done()) continue;
          const http::Outcome outcome =
              http::route({.models = served, .regions = regions, .draining = draining, .model_control = true},
                          reader.message(), pool);
          if (outcome.inference != nullptr) {
            const Inference& inference = *outcome.inference;
            if (inference.queries.size() != inference.batch * kQueryBytes || inference.batch == 0) __builtin_trap();
            result.replies += http::reply_of(inference).body;
          } else {
            result.replies += outcome.reply.body;
          }
          (void)memory.resize(0);
          reader = http::Reader(limits, memory);
        }
      }
    } catch (const RequestError& error) {
      result.refusal = error.what();
    }
  }
  if (budget.used() != 0) __builtin_trap();
  return result;
}

}  // namespace

/// The bytes of a connection are requests or are refused, in whatever pieces they arrive.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Models served = models();
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const Served whole = serve_bytes(served, bytes, std::max<std::size_t>(size, 1));
  if (!serve_bytes(served, bytes, 1).same_as(whole)) __builtin_trap();
  if (!serve_bytes(served, bytes, 7).same_as(whole)) __builtin_trap();
  return 0;
}
