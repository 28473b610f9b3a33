#include "any_client.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "answer_type.hpp"
#include "convert.hpp"
#include "gil.hpp"

namespace nb = nanobind;

namespace headrace::python {

nb::object AnyClient::query_dtype() const {
  return nb::module_::import_("headrace.dtypes").attr("answer_dtype_of")(query_type(), query_bytes());
}

nb::object AnyClient::answer_dtype() const {
  return nb::module_::import_("headrace.dtypes").attr("answer_dtype_of")(answer_type(), answer_bytes());
}

void AnyClient::throw_unanswered(Errc code) const {
  if (engine_ != nullptr) throw_failed(code, *engine_);
  throw_refused("asking a query", Error{code, 0});
}

void AnyClient::throw_refused(const char* doing, Error error) const {
  if (engine_ == nullptr && error.code == Errc::stopped && remote().ended()) {
    throw Exception(error.code, fmt::format("{}: {}", doing, remote().why_ended()));
  }
  throw_error(doing, error);
}

void AnyClient::answer(std::size_t most) {
  if (!answers_itself() || in_flight() == 0) return;
  const serve::Ticket last = oldest() + std::min(most, in_flight()) - 1;
  const GilRelease released;
  static_cast<void>(wait(last, Duration::max()));
}

AnyClient connect_to(const std::string& url, std::uint32_t slots) {
  const GilRelease released;
  return AnyClient(wire::Client(url, slots));
}

}  // namespace headrace::python
