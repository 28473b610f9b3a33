#include "wire/grpc/framing.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "wire/request_error.hpp"

namespace headrace::wire::grpc {

namespace {

constexpr std::size_t kKeptBytes = 64 << 10;  // largest buffer kept for the next message
constexpr std::size_t kAheadBytes = 4 << 10;  // most room reserved on the word of a message's prefix alone
constexpr unsigned kByteBits = 8;

}  // namespace

std::size_t MessageReader::read(std::string_view bytes) {
  std::size_t used = 0;
  while (prefix_used_ < kPrefixBytes && used < bytes.size()) {
    prefix_[prefix_used_++] = static_cast<unsigned char>(bytes[used++]);
    if (prefix_used_ == kPrefixBytes) read_prefix();
  }
  const std::size_t count = std::min(length_ - message_.size(), bytes.size() - used);
  if (!memory_.resize(message_.size() + count)) {
    throw RequestError(kUnavailable, "the server has no memory left for this request; try again later");
  }
  message_.append(bytes.substr(used, count));
  return used + count;
}

void MessageReader::read_prefix() {
  if (prefix_[0] == 1) throw RequestError(kNotImplemented, "compressed messages are not supported");
  if (prefix_[0] != 0) throw RequestError(kBadRequest, "the request is not a gRPC message");
  for (std::size_t i = 1; i < kPrefixBytes; ++i) length_ = length_ << kByteBits | prefix_[i];
  if (length_ > bytes_max_) {
    throw RequestError(kTooLarge,
                       fmt::format("a message has {} bytes, but at most {} are allowed", length_, bytes_max_));
  }
  if (message_.capacity() < std::min(length_, kAheadBytes)) {
    if (message_.empty()) message_ = spare_.take();
    message_.reserve(std::min(length_, kAheadBytes));
  }
}

void MessageReader::reset() noexcept {
  prefix_used_ = length_ = 0;
  message_.clear();
  if (message_.capacity() > kKeptBytes) message_.shrink_to_fit();
  (void)memory_.resize(0);
}

std::string prefix_of(std::size_t bytes) {
  std::string prefix(kPrefixBytes, '\0');
  for (std::size_t i = kPrefixBytes - 1; i > 0; --i, bytes >>= kByteBits) prefix[i] = static_cast<char>(bytes & 0xFFU);
  return prefix;
}

}  // namespace headrace::wire::grpc
