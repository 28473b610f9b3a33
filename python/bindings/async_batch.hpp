#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>

#include "arrays.hpp"
#include "async_client_handle.hpp"
#include "convert.hpp"

namespace headrace::python {

/// Keeps the array of queries until they are submitted, and the answers until the future has them.
struct AsyncClientHandle::Batch {
  std::size_t count;
  std::size_t answer_bytes;
  std::optional<BytesView> queries;  ///< Held until the last query is submitted.
  std::unique_ptr<std::uint8_t[]> answers;
  std::unique_ptr<std::uint8_t[]> status;
  std::size_t submitted = 0;
  std::size_t back = 0;
  bool gave_up = false;  ///< Whether the rest will not be submitted.

  Batch(nanobind::handle object, std::size_t query_bytes, std::size_t size) : answer_bytes(size) {
    queries.emplace(object, "queries");
    count = queries->count(query_bytes);
    answers = make_values<std::uint8_t>(count * answer_bytes);
    status = make_values<std::uint8_t>(count);
  }
  [[nodiscard]] bool ended() const noexcept { return back == submitted && (gave_up || submitted == count); }
  void put(std::size_t index, const serve::Completion& done) noexcept {
    std::uint8_t* answer = answers.get() + index * answer_bytes;
    status[index] = status_byte(done.status);
    if (done.status) {
      std::memcpy(answer, done.answer.data(), answer_bytes);
    } else {
      std::memset(answer, 0, answer_bytes);
    }
    ++back;
  }
  /// Gives up the queries that are not yet submitted.
  void give_up(Errc code) noexcept {
    gave_up = true;
    std::fill(status.get() + submitted, status.get() + count, status_byte(code));
    std::fill(answers.get() + submitted * answer_bytes, answers.get() + count * answer_bytes, std::uint8_t{0});
  }
};

}  // namespace headrace::python
