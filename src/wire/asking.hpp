#pragma once

#include <memory>

#include "wire/front.hpp"

namespace headrace::wire {

/// Has an engine answer `inference`, whose owner is told of the end. Where it cannot, the inference says why, and its
/// owner is told nothing: false.
[[nodiscard]] bool ask(Front& front, const std::shared_ptr<Inference>& inference);

/// Counts an inference in the statistics of its model, before its reply is sent: whoever has the reply finds it
/// counted.
/// @param status  the reply's: HTTP's, whatever the protocol, as in the functions below
void count(Front& front, const Inference& inference, int status) noexcept;
/// Counts a request that asked a model for inference and could not be read; does nothing for null.
void count_unread(Front& front, Protocol protocol, const ServedModel* model, int status) noexcept;
/// Counts a reply in the statistics of the server.
void count_reply(Front& front, Protocol protocol, int status) noexcept;

}  // namespace headrace::wire
