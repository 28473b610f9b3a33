#pragma once

#include <memory>

#include "wire/front.hpp"

namespace headrace::wire {

/// Has an engine answer `inference`, whose owner is told of the end. Where it cannot, the inference says why, the
/// model's statistics count it, and its owner is told nothing: false.
[[nodiscard]] bool ask(Front& front, const std::shared_ptr<Inference>& inference);

/// Counts an inference that has come back in the statistics of its model.
void count(const Inference& inference) noexcept;

/// Counts a reply in the statistics of the server.
/// @param status  HTTP's, whatever the protocol
void count_reply(Shared& shared, int status) noexcept;

}  // namespace headrace::wire
