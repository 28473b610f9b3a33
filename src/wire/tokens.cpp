#include "wire/tokens.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <string>
#include <vector>

#include "headrace/base/error.hpp"

namespace headrace::wire {

namespace {

constexpr std::string_view kScheme = "bearer";
constexpr std::string_view kBlank = " \t\r";
constexpr std::size_t kFileBytesMax = 4 << 20;

/// The characters that RFC 6750 allows in a token.
bool is_token_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("-._~+/=").find(c) != std::string_view::npos;
}

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlank), text.size()));
  const std::size_t last = text.find_last_not_of(kBlank);
  return text.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

std::vector<std::string> read_tokens(const std::string& file) {
  errno = 0;
  std::ifstream stream(file);
  if (!stream) throw_errno(fmt::format("reading {}", file));
  std::vector<std::string> tokens;
  std::string line;
  std::size_t bytes = 0;
  for (std::size_t number = 1; std::getline(stream, line); ++number) {
    const auto refuse_line = [&](std::string_view why) {
      throw UsageError(fmt::format("{}, line {}: {}", file, number, why));
    };
    bytes += line.size();
    if (bytes > kFileBytesMax) refuse_line("the file is too long for a file of tokens");
    const std::string_view content = trimmed(line);
    if (content.empty() || content.starts_with('#')) continue;
    const std::string_view token = content.substr(0, content.find_first_of(kBlank));
    if (!std::ranges::all_of(token, is_token_letter)) {
      refuse_line("a token may have only ASCII letters, digits and -._~+/=; its name follows after a space");
    }
    if (token.size() < Tokens::kBytesMin) {
      refuse_line(
          fmt::format("a token must have at least {} characters; `openssl rand -hex 32` makes one", Tokens::kBytesMin));
    }
    if (token.size() > Tokens::kBytesMax)
      refuse_line(fmt::format("a token may have at most {} characters", Tokens::kBytesMax));
    if (std::ranges::find(tokens, token) != tokens.end()) refuse_line("an earlier line has the same token");
    if (tokens.size() == Tokens::kCountMax)
      refuse_line(fmt::format("at most {} tokens are allowed", Tokens::kCountMax));
    tokens.emplace_back(token);
  }
  if (stream.bad()) throw_errno(fmt::format("reading {}", file));
  if (tokens.empty()) throw UsageError(fmt::format("{} has no token", file));
  return tokens;
}

}  // namespace

Tokens::Tokens(const std::string& file) {
  std::vector<std::string> tokens = read_tokens(file);
  for (const std::string& token : tokens) width_ = std::max(width_, token.size() + 1);
  for (std::string& token : tokens) {
    token.resize(width_);
    all_ += token;
  }
  count_ = tokens.size();
}

std::string first_token(const std::string& file) { return read_tokens(file).front(); }

Admission Tokens::check(std::optional<std::string_view> authorization) const noexcept {
  if (!authorization) return Admission::missing;
  const std::string_view value = trimmed(*authorization);
  const std::string_view scheme = value.substr(0, value.find_first_of(kBlank));
  const bool is_bearer = std::ranges::equal(scheme, kScheme, [](char a, char b) { return (a | 0x20) == b; });
  if (!is_bearer) return Admission::missing;
  const std::string_view token = trimmed(value.substr(scheme.size()));
  // Each token ends with a zero, which cannot be part of a token, so that tokens of different lengths differ, too.
  std::array<char, kBytesMax + 1> padded{};
  std::ranges::copy(token.substr(0, width_), padded.begin());
  unsigned is_known = token.size() < width_ ? 1U : 0U;
  unsigned found = 0;
  for (std::size_t i = 0; i < count_; ++i) {
    unsigned difference = 0;
    const char* const own = all_.data() + i * width_;
    for (std::size_t at = 0; at < width_; ++at) {
      difference |= static_cast<unsigned char>(own[at]) ^ static_cast<unsigned char>(padded[at]);
    }
    found |= 1U & ((difference - 1U) >> 8U);  // 1 if they are equal, without a branch
  }
  is_known &= found;
  return is_known == 1 ? Admission::granted : Admission::wrong;
}

}  // namespace headrace::wire
