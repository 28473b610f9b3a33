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

/// What a request is answered with.
struct Reply {
  int status = 200;
  std::string body = {};
  std::optional<std::size_t> json_bytes = {};  ///< Where binary tensors follow the JSON.
  std::string_view allow = {};                 ///< The method that a path has, where the request's is wrong.
  std::string_view type = "application/json";
  std::string_view headers = {};  ///< Further lines of the head.
};

/// What becomes of a request: a reply, an inference to be asked for, or a model to be loaded or unloaded.
struct Outcome {
  Reply reply = {};
  std::shared_ptr<Inference> inference = {};
  std::shared_ptr<ModelCall> call = {};
  const ServedModel* model = nullptr;  ///< That was asked for an inference which could not be read.
};

/// What all connections of a server share.
struct Service {
  const Models& models;
  SharedRegions& regions;
  const std::atomic<bool>& draining;
  bool model_control = false;    ///< Models may be loaded and unloaded.
  const Shared* page = nullptr;  ///< What the page at `/` shows; null for a server without it.
};

/// Whether a request is answered although nobody has said who sends it: the server's health, and where there is a page
/// the page, which has nothing of the server in it.
[[nodiscard]] bool needs_no_token(const Message& message, bool has_page);

/// Finds what a request asks for. Never throws RequestError: such are replies.
/// @param pool    for the inference
[[nodiscard]] Outcome route(const Service& service, const Message& message, InferencePool& pool);

/// The reply with an inference's answers, or why there are none.
[[nodiscard]] Reply reply_of(const Inference& inference);

[[nodiscard]] Reply error_reply(int status, std::string_view message);

/// The head of a reply: status and headers, up to the empty line.
[[nodiscard]] std::string head_of(const Reply& reply, bool keep_alive);

}  // namespace headrace::wire::http
