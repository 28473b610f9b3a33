#pragma once

#include <memory>

#include "wire/front.hpp"

namespace headrace::wire {

/// Submits `inference` to its engine, which notifies the owner at the end. Returns false if it is refused; then its
/// status says why, and the owner is not notified.
[[nodiscard]] bool ask(Front& front, const std::shared_ptr<Inference>& inference);

/// Counts an inference in the statistics of its model. Called before its reply is sent, so that a client that has the
/// reply finds it counted.
/// @param status  of the reply; the HTTP status, whatever the protocol, as in the functions below
void count(Front& front, const Inference& inference, int status) noexcept;
/// Counts an inference request that could not be read; does nothing if `model` is null.
void count_unread(Front& front, Protocol protocol, const ServedModel* model, int status) noexcept;
/// Counts a reply in the statistics of the server.
void count_reply(Front& front, Protocol protocol, int status) noexcept;

}  // namespace headrace::wire
