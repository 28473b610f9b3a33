#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "wire/client/protocols.hpp"
#include "wire/request_error.hpp"

namespace headrace::wire::client {

namespace {

namespace beast = boost::beast;

constexpr std::uint32_t kReplyHeadMost = 64 << 10;
constexpr std::size_t kErrorBodyMost = 4 << 10;  // most bytes kept of an error reply
constexpr std::size_t kReplyMost = 4 << 20;      // most bytes kept of a wanted reply
/// See kLastChunk in wire/http/reader.cpp.
constexpr std::size_t kLastChunkBytes = std::string_view("0\r\n\r\n").size();

/// Reads a response, and keeps its content if it is wanted or an error.
class ResponseParser final : public beast::http::basic_parser<false> {
 public:
  explicit ResponseParser(bool keep_all) : keep_all_(keep_all) {
    header_limit(kReplyHeadMost);
    body_limit(std::numeric_limits<std::uint64_t>::max());  // Boost 1.74 takes boost::none for a limit of 0
    eager(true);
  }
  [[nodiscard]] int status() const noexcept { return status_; }
  [[nodiscard]] const std::string& content() const noexcept { return content_; }

 private:
  void on_request_impl(beast::http::verb /*method*/, beast::string_view /*name*/, beast::string_view /*target*/,
                       int /*version*/, beast::error_code& /*error*/) override {}
  void on_response_impl(int code, beast::string_view /*reason*/, int /*version*/,
                        beast::error_code& /*error*/) override {
    status_ = code;
  }
  void on_field_impl(beast::http::field /*field*/, beast::string_view /*name*/, beast::string_view /*value*/,
                     beast::error_code& /*error*/) override {}
  void on_header_impl(beast::error_code& /*error*/) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>& /*length*/, beast::error_code& /*error*/) override {}
  std::size_t on_body_impl(beast::string_view part, beast::error_code& /*error*/) override {
    keep(part);
    return part.size();
  }
  void on_chunk_header_impl(std::uint64_t /*size*/, beast::string_view /*extensions*/,
                            beast::error_code& /*error*/) override {}
  std::size_t on_chunk_body_impl(std::uint64_t /*remain*/, beast::string_view part,
                                 beast::error_code& /*error*/) override {
    keep(part);
    return part.size();
  }
  void on_finish_impl(beast::error_code& /*error*/) override {}

  void keep(beast::string_view part) {
    if (!keep_all_ && status_ == kOk) return;
    const std::size_t most = keep_all_ ? kReplyMost : kErrorBodyMost;
    content_.append(part.data(), std::min(part.size(), most - content_.size()));
  }

  bool keep_all_;
  int status_ = 0;
  std::string content_;
};

measure::Outcome outcome_of_http(int status) {
  switch (status) {
    case kOk: return measure::Outcome::right;
    case kTooManyRequests:
    case kUnavailable: return measure::Outcome::refused;
    case kRequestTimedOut:
    case kTimedOut: return measure::Outcome::late;
    default: return measure::Outcome::failed;
  }
}

/// HTTP/1.1, with one request at a time.
class HttpChannel final : public Channel {
 public:
  using Channel::Channel;

  [[nodiscard]] bool usable() const noexcept override { return is_open() && !ends_; }
  [[nodiscard]] bool has_room() const noexcept override { return usable() && !parser_; }

 private:
  void opened() override { ends_ = false; }
  void begin(const Asked& asked, const std::string& content) override {
    asked_ = asked;
    parser_.emplace(shared().reply != nullptr);
    out_ += content;
  }
  [[nodiscard]] bool read(std::string_view bytes, std::string& why) override;
  void closed() override {
    rest_.clear();
    ends_ = false;
    if (!parser_) return;
    parser_.reset();
    shared().end(asked_, measure::Outcome::lost);
  }
  [[nodiscard]] bool spent() const noexcept override { return ends_; }
  void take_reply();

  std::optional<ResponseParser> parser_;  ///< Reads the awaited reply.
  Asked asked_{};
  std::string rest_;   ///< Received bytes that cannot be parsed without more.
  bool ends_ = false;  ///< The server will close the connection.
};

bool HttpChannel::read(std::string_view bytes, std::string& why) {
  if (!rest_.empty()) bytes = rest_.append(bytes);
  while (parser_ && !bytes.empty()) {
    if (parser_->is_header_done() && parser_->chunked() && bytes.size() < kLastChunkBytes) break;
    beast::error_code error;
    const std::size_t used = parser_->put(boost::asio::const_buffer(bytes.data(), bytes.size()), error);
    bytes.remove_prefix(used);
    if (error && error != beast::http::error::need_more) {
      why = "the reply is not valid HTTP/1.1: " + error.message();
      return false;
    }
    if (parser_->is_done()) {
      take_reply();
    } else if (used == 0) {
      break;
    }
  }
  if (!parser_ && !bytes.empty()) {
    why = "the server sent bytes that no request asked for";
    return false;
  }
  std::string rest(bytes);
  rest_ = std::move(rest);
  return true;
}

void HttpChannel::take_reply() {
  const int status = parser_->status();
  if (shared().reply != nullptr) *shared().reply = parser_->content();
  if (status == kNotFound || status == kBadRequest) shared().unknown = true;
  if (status == kUnauthorized) shared().unauthorized = true;
  const measure::Outcome outcome = outcome_of_http(status);
  std::string said;
  if (outcome != measure::Outcome::right) said = "HTTP " + std::to_string(status) + " " + parser_->content();
  ends_ = !parser_->keep_alive();
  parser_.reset();
  shared().end(asked_, outcome, said);
}

}  // namespace

std::unique_ptr<Channel> make_http_channel(Shared& shared) { return std::make_unique<HttpChannel>(shared); }

}  // namespace headrace::wire::client
