#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "headrace/base/detail/bytes.hpp"
#include "headrace/measure/detail/generator.hpp"
#include "headrace/serve/engine.hpp"

namespace headrace::serve::detail {

/// Number of different queries that a load repeats: enough that their mean cost is that of the operator's queries, but
/// few enough that they fit in a core's own cache, like queries that a client has just made.
[[nodiscard]] inline std::size_t load_queries(const Operator& op) noexcept {
  constexpr std::size_t kBytes = 64 * kKiB;
  constexpr std::size_t kLeast = 64;
  constexpr std::size_t kMost = 512;
  return std::max(std::clamp(kBytes / op.query_bytes, kLeast, kMost), op.samples_least);
}

/// Queries of an operator, with the host's answers to them.
class QuerySet {
 public:
  QuerySet(const Operator& op, std::uint64_t seed, std::size_t count);

  /// @param index  below count()
  [[nodiscard]] std::span<const std::byte> query(std::size_t index) const noexcept {
    return std::span(queries_).subspan(index * query_bytes_, query_bytes_);
  }
  [[nodiscard]] bool right(std::size_t index, std::span<const std::byte> answer) const noexcept {
    return std::memcmp(answers_.data() + index * answer_bytes_, answer.data(), answer_bytes_) == 0;
  }
  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  [[nodiscard]] const std::vector<std::byte>& queries() const noexcept { return queries_; }

 private:
  std::size_t count_;
  std::size_t query_bytes_;
  std::size_t answer_bytes_;
  std::vector<std::byte> queries_;
  std::vector<std::byte> answers_;
};

/// A client of an engine as a LoadTarget of measure. Answers come back in order of submission, so that each can be
/// checked.
class EngineTarget {
 public:
  EngineTarget(Client client, const QuerySet& queries, bool verify) noexcept
      : client_(std::move(client)), queries_(&queries), verify_(verify) {}

  [[nodiscard]] bool submit(Time scheduled) noexcept {
    const auto ticket = client_.submit(queries_->query(next_), {.tag = static_cast<std::uint64_t>(scheduled.count())});
    if (ticket) next_ = after(next_);
    return ticket.ok();
  }

  template <class Done>
  std::size_t poll(Done done) {
    return client_.poll(
        [&](const Completion& back) {
          auto outcome = measure::Outcome::right;
          if (!back.status) {
            outcome = measure::Outcome::failed;
          } else if (verify_ && !queries_->right(polled_, back.answer)) {
            outcome = measure::Outcome::wrong;
          }
          polled_ = after(polled_);
          done(Time{static_cast<std::int64_t>(back.tag)}, outcome);
        },
        measure::kPollMax);
  }

 private:
  [[nodiscard]] std::size_t after(std::size_t index) const noexcept {
    return index + 1 == queries_->count() ? 0 : index + 1;
  }

  Client client_;
  const QuerySet* queries_;
  bool verify_;
  std::size_t next_ = 0;    ///< The next query to submit.
  std::size_t polled_ = 0;  ///< The query whose answer comes next.
};

/// `count` targets on `engine`. Answers of an engine that does nothing are not verified.
[[nodiscard]] std::vector<EngineTarget> connect_targets(Engine& engine, const QuerySet& queries, std::uint32_t count);

/// Where generator threads run next to `plan`: bound to the first processors if the engine's threads are bound (to the
/// following ones), else anywhere.
[[nodiscard]] std::vector<Processor> generator_processors(Device device, const Plan& plan, std::uint32_t generators);

/// `plan` for a machine shared with `generators` generator threads: a client for each, and the processors after theirs.
/// If every thread has a processor, engine threads do not sleep between queries (waking one takes tens of microseconds,
/// in a virtual machine hundreds).
[[nodiscard]] Plan beside_generators(Plan plan, std::uint32_t generators);

}  // namespace headrace::serve::detail
