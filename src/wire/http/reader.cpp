#include "wire/http/reader.hpp"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <charconv>

#include "wire/request_error.hpp"

namespace headrace::wire::http {

namespace beast = boost::beast;

namespace {

/// The last chunk and its terminator. Before Boost 1.86, Beast asserts that it gets this many bytes of a chunked body
/// at once (boostorg/beast, pull request 2861).
constexpr std::size_t kLastChunk = std::string_view("0\r\n\r\n").size();

std::string text_of(beast::string_view text) { return {text.data(), text.size()}; }

[[noreturn]] void refuse(const beast::error_code& error) {
  if (error == beast::http::error::header_limit) throw RequestError(431, "the head of the request is too long");
  if (error == beast::http::error::body_limit) throw RequestError(kTooLarge, "the body of the request is too long");
  throw RequestError(kBadRequest, "this is not a valid HTTP/1.1 request: " + error.message());
}

}  // namespace

constexpr std::size_t kTraceParentMost = 256;  // bytes; version 00 of this header has 55

struct Reader::Parser final : beast::http::basic_parser<true> {
  Parser(Limits limits, MemoryShare& share, Gate* asked) : memory(share), gate(asked), body_max(limits.body_bytes_max) {
    header_limit(static_cast<std::uint32_t>(limits.head_bytes_max));
    body_limit(limits.body_bytes_max);
    eager(true);
  }

  void append(beast::string_view part) {
    if (part.size() > body_max - message.body.size())
      throw RequestError(kTooLarge, "the body of the request is too long");
    if (!memory.resize(message.body.size() + part.size())) {
      throw RequestError(kUnavailable, "the server has no memory left for this request; try again later");
    }
    message.body.append(part.data(), part.size());
  }

  void on_request_impl(beast::http::verb /*method*/, beast::string_view name, beast::string_view target, int version,
                       beast::error_code& /*error*/) override {
    message.method = text_of(name);
    message.target = text_of(target);
    is_current = version >= 11;
  }
  void on_response_impl(int /*code*/, beast::string_view /*reason*/, int /*version*/,
                        beast::error_code& /*error*/) override {}
  void on_field_impl(beast::http::field field, beast::string_view name, beast::string_view value,
                     beast::error_code& /*error*/) override {
    if (head_read) return;  // a trailer, which is not a header (RFC 9110 6.5.1)
    if (field == beast::http::field::host) {
      if (has_host) throw RequestError(kBadRequest, "the request has two Host headers");
      has_host = true;
    } else if (field == beast::http::field::transfer_encoding) {
      // With any other coding, Beast would read the rest of the body as the next request.
      if (!beast::iequals(value, "chunked")) throw RequestError(kNotImplemented, "the transfer coding must be chunked");
    } else if (field == beast::http::field::content_encoding) {
      message.content_encoding = text_of(value);
    } else if (field == beast::http::field::authorization) {
      if (message.authorization) throw RequestError(kBadRequest, "the request has two Authorization headers");
      message.authorization = text_of(value);
    } else if (field == beast::http::field::origin) {
      message.of_a_page = true;
    } else if (field == beast::http::field::expect) {
      message.expects_continue = beast::iequals(value, "100-continue");
    } else if (beast::iequals(name, "traceparent")) {
      if (value.size() <= kTraceParentMost) message.traceparent = text_of(value);
    } else if (beast::iequals(name, "Inference-Header-Content-Length")) {
      std::uint64_t bytes = 0;
      const auto [end, failure] = std::from_chars(value.data(), value.data() + value.size(), bytes);
      if (failure != std::errc{} || end != value.data() + value.size() || message.json_bytes) {
        throw RequestError(kBadRequest, "Inference-Header-Content-Length must be a single number");
      }
      message.json_bytes = bytes;
    }
  }
  void on_header_impl(beast::error_code& /*error*/) override {
    head_read = true;
    if (is_current && !has_host) throw RequestError(kBadRequest, "the request has no Host header");
    message.keep_alive = keep_alive() && is_current;
    message.expects_continue = message.expects_continue && is_current;
    takes_body = gate == nullptr || gate->admit(message);
  }
  void on_body_init_impl(const boost::optional<std::uint64_t>& /*length*/, beast::error_code& /*error*/) override {
    if (!takes_body) throw RequestError(kBadRequest, "this request must not have a body");
  }
  std::size_t on_body_impl(beast::string_view part, beast::error_code& /*error*/) override {
    append(part);
    return part.size();
  }
  void on_chunk_header_impl(std::uint64_t /*size*/, beast::string_view /*extensions*/,
                            beast::error_code& /*error*/) override {}
  std::size_t on_chunk_body_impl(std::uint64_t /*remain*/, beast::string_view part,
                                 beast::error_code& /*error*/) override {
    append(part);
    return part.size();
  }
  void on_finish_impl(beast::error_code& /*error*/) override {}

  MemoryShare& memory;
  Gate* gate;
  std::size_t body_max;
  Message message;
  bool has_host = false;
  bool head_read = false;
  bool takes_body = true;
  bool is_current = true;  ///< HTTP/1.1; a connection of HTTP/1.0 is closed after its reply
};

Reader::Reader(Limits limits, MemoryShare& memory, Gate* gate)
    : parser_(std::make_unique<Parser>(limits, memory, gate)), head_max_(limits.head_bytes_max) {}
Reader::~Reader() = default;
Reader::Reader(Reader&&) noexcept = default;
Reader& Reader::operator=(Reader&&) noexcept = default;

/// Limits the head to as many bytes however it is cut. Beast limits the headers alone if they arrive together with the
/// request's line, and both if they arrive in pieces.
void Reader::check_head(std::string_view bytes) {
  constexpr std::string_view kEnd = "\r\n\r\n";
  std::size_t end = bytes.size();
  if (head_used_ > 0 && bytes.starts_with("\r\n")) {
    end = 2;  // a request's line without headers
  } else if (const std::size_t found = bytes.find(kEnd, searched_); found != std::string_view::npos) {
    end = found + kEnd.size();
  } else {
    searched_ = bytes.size() - std::min(bytes.size(), kEnd.size() - 1);
  }
  if (head_used_ + end > head_max_) refuse(beast::http::error::header_limit);
}

std::size_t Reader::read(std::string_view bytes) {
  const bool in_head = !parser_->is_header_done();
  if (parser_->is_header_done() && parser_->chunked() && bytes.size() < kLastChunk) return 0;
  beast::error_code error;
  const std::size_t used = parser_->put(boost::asio::const_buffer(bytes.data(), bytes.size()), error);
  if (error && error != beast::http::error::need_more) refuse(error);
  if (in_head) {
    check_head(bytes);
    head_used_ += used;
    searched_ -= std::min(searched_, used);
  }
  return used;
}

bool Reader::head_done() const noexcept { return parser_->is_header_done(); }
bool Reader::done() const noexcept { return parser_->is_done(); }
Message& Reader::message() noexcept { return parser_->message; }

}  // namespace headrace::wire::http
