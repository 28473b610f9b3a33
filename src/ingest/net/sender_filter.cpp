#include "headrace/ingest/detail/sender_filter.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>

#include "headrace/base/error.hpp"

namespace headrace::ingest {

bool SenderFilter::matches(const Flow& flow) const noexcept {
  return flow.version == version && (port == 0 || port == flow.remote_port) &&
         std::equal(std::begin(address), std::end(address), std::begin(flow.remote));
}

SenderFilter parse_sender(std::string_view text) {
  const auto refuse = [text] {
    return UsageError(
        fmt::format("'{}' is not a sender's address, such as 10.0.0.1, 10.0.0.1:1000 or [fd00::1]:1000", text));
  };
  SenderFilter filter;
  std::string_view host = text;
  std::string_view port;
  if (!text.empty() && text.front() == '[') {
    const std::size_t close = text.find(']');
    if (close == std::string_view::npos) throw refuse();
    host = text.substr(1, close - 1);
    port = text.substr(close + 1);
  } else if (std::count(text.begin(), text.end(), ':') == 1) {
    host = text.substr(0, text.find(':'));
    port = text.substr(text.find(':'));
  }
  if (!port.empty()) {
    const std::string_view digits = port.substr(1);
    const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), filter.port);
    const bool whole = failed == std::errc{} && end == digits.data() + digits.size();
    if (port.front() != ':' || !whole || filter.port == 0) throw refuse();
  }
  const std::string name(host);
  if (::inet_pton(AF_INET, name.c_str(), &filter.address[0]) == 1) return filter;
  filter.version = 6;
  if (::inet_pton(AF_INET6, name.c_str(), &filter.address[0]) != 1) throw refuse();
  return filter;
}

}  // namespace headrace::ingest
