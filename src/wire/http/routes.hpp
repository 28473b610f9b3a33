#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "wire/front.hpp"
#include "wire/http/reader.hpp"
#include "wire/inference.hpp"
#include "wire/inference_pool.hpp"
#include "wire/model_calls.hpp"
#include "wire/shared_regions.hpp"

namespace headrace::wire::http {

/// A reply to a request.
struct Reply {
  int status = 200;
  std::string body = {};
  std::optional<std::size_t> json_bytes = {};  ///< Bytes of JSON, if binary tensors follow it.
  std::string_view allow = {};                 ///< The allowed methods, if the request's is not one of them.
  std::string_view type = "application/json";
  std::string_view headers = {};  ///< Further header lines.
};

/// Result of a request: a reply, an inference to submit, or a model to load or unload.
struct Outcome {
  Reply reply = {};
  std::shared_ptr<Inference> inference = {};
  std::shared_ptr<ModelCall> call = {};
  const ServedModel* model = nullptr;  ///< The model of an inference request that could not be read.
};

/// State that all connections of a server share.
struct Service {
  const Models& models;
  SharedRegions& regions;
  const std::atomic<bool>& draining;
  bool model_control = false;    ///< Models may be loaded and unloaded.
  const Shared* page = nullptr;  ///< Data for the page at `/`; null for a server without the page.
};

/// Whether a request is answered without a token: health checks and, if there is a page, the page itself, which
/// contains no data of the server.
[[nodiscard]] bool needs_no_token(const Message& message, bool has_page);

/// Routes a request. Never throws RequestError; errors become replies.
/// @param pool    provides the inference
[[nodiscard]] Outcome route(const Service& service, const Message& message, InferencePool& pool);

/// The reply with an inference's answers, or with the reason why there are none.
[[nodiscard]] Reply reply_of(const Inference& inference);

[[nodiscard]] Reply error_reply(int status, std::string_view message);

/// The head of a reply: status and headers, up to the empty line.
[[nodiscard]] std::string head_of(const Reply& reply, bool keep_alive);

}  // namespace headrace::wire::http
