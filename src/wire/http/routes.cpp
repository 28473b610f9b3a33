#include "wire/http/routes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <iterator>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "wire/base64.hpp"
#include "wire/descriptions.hpp"
#include "wire/http/page.hpp"
#include "wire/infer_reply.hpp"
#include "wire/infer_request.hpp"
#include "wire/model_config.hpp"
#include "wire/request_error.hpp"
#include "wire/server_status.hpp"

namespace headrace::wire::http {

namespace {

/// Header lines that forbid browsers to store the reply, to guess another type for it, and to load it from other sites'
/// pages.
constexpr std::string_view kPrivate =
    "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nCross-Origin-Resource-Policy: same-origin\r\n";

/// A request's path, split at slashes, with escapes like %2F decoded.
using Path = std::vector<std::string>;

std::string unescape(std::string_view part) {
  std::string text;
  for (std::size_t i = 0; i < part.size(); ++i) {
    if (part[i] != '%') {
      text += part[i];
      continue;
    }
    unsigned char byte = 0;
    const char* const digits = part.data() + i + 1;
    if (i + 2 >= part.size() || std::from_chars(digits, digits + 2, byte, 16).ptr != digits + 2 || byte == 0) {
      throw RequestError(kBadRequest, "the path has an invalid escape");
    }
    text += static_cast<char>(byte);
    i += 2;
  }
  return text;
}

/// @param target  may also have the absolute form http://HOST/PATH that proxies get (RFC 9112 3.2.2)
Path path_of(std::string_view target) {
  target = target.substr(0, target.find('?'));
  const std::size_t scheme = target.find("://");
  if (!target.starts_with('/') && scheme != std::string_view::npos) {
    target.remove_prefix(scheme + 3);
    target.remove_prefix(std::min(target.find('/'), target.size()));
  }
  Path path;
  while (!target.empty()) {
    const std::size_t slash = target.find('/');
    const std::string_view part = target.substr(0, slash);
    if (!part.empty()) path.push_back(unescape(part));
    target.remove_prefix(slash == std::string_view::npos ? target.size() : slash + 1);
  }
  return path;
}

Reply json_reply(const nlohmann::json& body) { return {.body = body.dump()}; }

/// Reply of a health check: status 200 and empty if `holds`, otherwise 503.
Reply health_reply(bool holds) {
  if (holds) return {};
  return error_reply(kUnavailable, "not ready");
}

[[noreturn]] void not_found() { throw RequestError(kNotFound, "there is nothing at this path"); }

void require_method(const Message& message, std::string_view method) {
  if (message.method == method || (method == "GET" && message.method == "HEAD")) return;
  throw RequestError(kMethodNotAllowed, fmt::format("this path takes {}, not {}", method, message.method),
                     method == "GET" ? "GET, HEAD" : method);
}

std::shared_ptr<Inference> read_inference(ServedModel& served, const Message& message, const SharedRegions& regions,
                                          InferencePool& pool) {
  if (!message.content_encoding.empty() && message.content_encoding != "identity") {
    throw RequestError(415, "compressed requests are not supported");
  }
  const std::string_view body = message.body;
  const std::uint64_t json_bytes = message.json_bytes.value_or(body.size());
  if (json_bytes > body.size()) {
    throw RequestError(kBadRequest, "Inference-Header-Content-Length exceeds the length of the body");
  }
  const auto tensors = std::as_bytes(std::span(body.substr(json_bytes)));
  return read_infer_request(served, body.substr(0, json_bytes), tensors, regions, pool);
}

/// Handles /v2/models/NAME[/versions/VERSION]; `rest` is the rest of the path.
Outcome route_model(const Service& service, const Message& message, ServedModel& served,
                    std::span<const std::string> rest, InferencePool& pool) {
  if (rest.size() >= 2 && rest[0] == "versions") {
    if (rest[1] != served.model.version) {
      throw RequestError(kNotFound, fmt::format("model {} has no version '{}'", served.model.name, rest[1]));
    }
    rest = rest.subspan(2);
  }
  if (!rest.empty() && rest[0] == "trace") throw RequestError(kNotImplemented, "this server does not offer 'trace'");
  if (rest.size() > 1) not_found();
  const std::string_view what = rest.empty() ? "" : std::string_view(rest[0]);
  if (what == "infer") {
    require_method(message, "POST");
    return {.inference = read_for(served, [&] {
              if (service.draining.load(std::memory_order_relaxed)) {
                throw RequestError(kUnavailable, "the server is about to stop");
              }
              return read_inference(served, message, service.regions, pool);
            })};
  }
  require_method(message, "GET");
  if (what.empty()) return {.reply = json_reply(describe_model(served))};
  if (what == "ready")
    return {.reply = health_reply(served.ready() && !service.draining.load(std::memory_order_relaxed))};
  if (what == "config") return {.reply = json_reply(describe_config(served))};
  if (what == "stats") return {.reply = json_reply(describe_statistics(service.models, &served))};
  not_found();
}

/// Handles `/`, the page, and `/status.json`, its data. Browsers neither store them nor load them from other sites'
/// pages.
Outcome route_page(const Service& service, const Message& message, const Path& path) {
  require_method(message, "GET");
  if (path.empty()) {
    return {.reply = {.body = std::string(kPage.html), .type = "text/html; charset=utf-8", .headers = kPage.headers}};
  }
  Reply reply = json_reply(describe_status(*service.page, service.models));
  reply.headers = kPrivate;
  return {.reply = std::move(reply)};
}

/// The JSON of a request other than inference; null if the body is empty.
nlohmann::json small_json(std::string_view body, std::string_view what) {
  constexpr std::size_t kBytesMax = 128 << 10;
  if (body.size() > kBytesMax) throw RequestError(kTooLarge, fmt::format("{} may have at most 128 KiB", what));
  if (body.empty()) return {};
  return nlohmann::json::parse(body, nullptr, false);
}

/// Handles /v2/repository; `rest` is the rest of the path.
Outcome route_repository(const Service& service, const Message& message, std::span<const std::string> rest) {
  if (rest.size() == 1 && rest[0] == "index") {
    require_method(message, "POST");
    const nlohmann::json asked = small_json(message.body, "an index request");
    if (!asked.is_null() && !asked.is_object()) wire::refuse("an index request must be a JSON object or empty");
    const auto ready = asked.find("ready");
    const bool only_ready = ready != asked.end() && ready->is_boolean() && ready->get<bool>();
    return {.reply = json_reply(describe_repository(service.models, only_ready))};
  }
  const bool known = rest.size() == 3 && rest[0] == "models" && (rest[2] == "load" || rest[2] == "unload");
  if (!known) not_found();
  require_method(message, "POST");
  if (message.of_a_page) {  // any site that is open in a browser on this machine could send this
    throw RequestError(kForbidden, "web pages may not load or unload models");
  }
  const bool load = rest[2] == "load";
  const nlohmann::json asked = small_json(message.body, "a load or unload request");
  const nlohmann::json parameters =
      asked.is_object() && asked.contains("parameters") ? asked["parameters"] : nlohmann::json();
  if (!(asked.is_null() || asked.is_object()) || !(parameters.is_null() || parameters.is_object())) {
    wire::refuse("a load or unload request must be a JSON object or empty, and its \"parameters\" an object");
  }
  ModelParameters noted;
  for (const auto& [name, value] : parameters.items()) {
    noted.note(name, load, value.is_boolean() && !value.get<bool>(),
               value.is_string() ? std::optional<std::string_view>(value.get_ref<const std::string&>()) : std::nullopt);
  }
  return {.call = make_model_call(service.models, service.model_control,
                                  service.draining.load(std::memory_order_relaxed), rest[1], load, noted)};
}

/// A member of an object; null if there is none, or if `object` is null or no object.
const nlohmann::json* member_of(const nlohmann::json* object, const char* name) {
  if (object == nullptr || !object->is_object()) return nullptr;
  const auto found = object->find(name);
  return found == object->end() ? nullptr : &*found;
}

/// Registers the POSIX shared memory that a request's JSON describes.
void register_system_region(SharedRegions& regions, const std::string& name, std::string_view body) {
  const nlohmann::json described = small_json(body, "a register request");
  const nlohmann::json* const key = member_of(&described, "key");
  const nlohmann::json* const bytes = member_of(&described, "byte_size");
  const nlohmann::json* const offset = member_of(&described, "offset");
  const bool right = key != nullptr && key->is_string() && bytes != nullptr && bytes->is_number_unsigned() &&
                     (offset == nullptr || offset->is_number_unsigned());
  if (!right) {
    throw RequestError(kBadRequest,
                       "a register request must be a JSON object with a string \"key\" and whole numbers \"byte_size\" "
                       "and \"offset\"");
  }
  regions.add_system(name, key->get<std::string>(), offset == nullptr ? 0 : offset->get<std::uint64_t>(),
                     bytes->get<std::uint64_t>());
}

/// Registers the device memory that a request's JSON describes.
void register_cuda_region(SharedRegions& regions, const std::string& name, std::string_view body) {
  const nlohmann::json described = small_json(body, "a register request");
  const nlohmann::json* const text = member_of(member_of(&described, "raw_handle"), "b64");
  const nlohmann::json* const device = member_of(&described, "device_id");
  const nlohmann::json* const bytes = member_of(&described, "byte_size");
  const bool right = text != nullptr && text->is_string() && device != nullptr && device->is_number_integer() &&
                     bytes != nullptr && bytes->is_number_unsigned();
  if (!right) {
    throw RequestError(kBadRequest,
                       "a register request must be a JSON object with an object \"raw_handle\" that has a string "
                       "\"b64\", and whole numbers \"device_id\" and \"byte_size\"");
  }
  const auto handle = decode_base64(text->get_ref<const std::string&>());
  if (!handle) wire::refuse("\"b64\" is not valid base64");
  regions.add_cuda(name, *handle, device->get<std::int64_t>(), bytes->get<std::uint64_t>());
}

/// The kind of regions that a part of a path names.
std::optional<RegionKind> region_kind_of(std::string_view part) {
  if (part == "systemsharedmemory") return RegionKind::system;
  if (part == "cudasharedmemory") return RegionKind::cuda;
  return std::nullopt;
}

/// /v2/KIND[/region/NAME]/WHAT; `rest` is what follows KIND.
Outcome route_regions(SharedRegions& regions, RegionKind kind, const Message& message,
                      std::span<const std::string> rest) {
  regions.require(kind);
  std::string name;
  if (rest.size() == 3 && rest[0] == "region") {
    name = rest[1];
    rest = rest.subspan(2);
  }
  if (rest.size() != 1) not_found();
  const std::string_view what = rest[0];
  if (what == "status") {
    require_method(message, "GET");
    return {.reply = json_reply(describe_regions(regions, kind, name))};
  }
  if (what == "unregister") {
    require_method(message, "POST");
    if (name.empty()) {
      regions.remove_all(kind);
    } else {
      regions.remove(kind, name);
    }
    return {};
  }
  if (what != "register" || name.empty()) not_found();
  require_method(message, "POST");
  if (kind == RegionKind::system) {
    register_system_region(regions, name, message.body);
  } else {
    register_cuda_region(regions, name, message.body);
  }
  return {};
}

Outcome route_path(const Service& service, const Message& message, const Path& path, InferencePool& pool) {
  const bool for_page = path.empty() || (path.size() == 1 && path[0] == "status.json");
  if (for_page && service.page != nullptr) return route_page(service, message, path);
  if (path.empty() || path[0] != "v2") not_found();
  const auto is = [&](std::initializer_list<std::string_view> parts) {
    return std::equal(path.begin() + 1, path.end(), parts.begin(), parts.end());
  };
  if (path.size() >= 2 && path[1] == "repository")
    return route_repository(service, message, std::span(path).subspan(2));
  if (path.size() >= 3 && path[1] == "models" && !is({"models", "stats"})) {
    return route_model(service, message, service.models.require(path[2]), std::span(path).subspan(3), pool);
  }
  if (const auto kind = path.size() > 1 ? region_kind_of(path[1]) : std::nullopt) {
    return route_regions(service.regions, *kind, message, std::span(path).subspan(2));
  }
  for (const std::string_view extension : {"trace", "logging"}) {
    if (path.size() > 1 && path[1] == extension) {
      throw RequestError(kNotImplemented, fmt::format("this server does not offer '{}'", extension));
    }
  }
  const bool ready = service.models.ready() && !service.draining.load(std::memory_order_relaxed);
  const bool known = is({}) || is({"health", "live"}) || is({"health", "ready"}) || is({"models", "stats"});
  if (!known) not_found();
  require_method(message, "GET");
  if (is({})) return {.reply = json_reply(describe_server(service.regions, service.model_control))};
  if (is({"models", "stats"})) return {.reply = json_reply(describe_statistics(service.models, nullptr))};
  return {.reply = health_reply(is({"health", "live"}) || ready)};
}

std::string_view phrase_of(int status) {
  switch (status) {
    case 200: return "OK";
    case kBadRequest: return "Bad Request";
    case kUnauthorized: return "Unauthorized";
    case kForbidden: return "Forbidden";
    case kNotFound: return "Not Found";
    case kMethodNotAllowed: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case kConflict: return "Conflict";
    case kTooLarge: return "Content Too Large";
    case 415: return "Unsupported Media Type";
    case kTooManyRequests: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case kNotImplemented: return "Not Implemented";
    case kUnavailable: return "Service Unavailable";
    case kTimedOut: return "Gateway Timeout";
    default: return "Internal Server Error";
  }
}

}  // namespace

bool needs_no_token(const Message& message, bool has_page) {
  if (message.method != "GET" && message.method != "HEAD") return false;
  const std::string_view target = message.target;  // compared unchanged: other spellings of the path need a token
  return target == "/v2/health/live" || target == "/v2/health/ready" || (has_page && target == "/");
}

Outcome route(const Service& service, const Message& message, InferencePool& pool) {
  try {
    return route_path(service, message, path_of(message.target), pool);
  } catch (const RequestError& error) {
    Outcome outcome{.reply = error_reply(error.status(), error.what())};
    outcome.reply.allow = error.allow();
    outcome.model = error.model();
    return outcome;
  } catch (const std::bad_alloc&) {
    return {.reply = error_reply(kUnavailable, "the server has no memory left for this request; try again later")};
  }
}

Reply reply_of(const Inference& inference) {
  try {
    InferReply written = write_infer_reply(inference);
    return {.body = std::move(written.body),
            .json_bytes = written.json_bytes,
            .type = written.json_bytes ? "application/octet-stream" : "application/json"};
  } catch (const RequestError& error) {
    return error_reply(error.status(), error.what());
  }
}

Reply error_reply(int status, std::string_view message) { return {.status = status, .body = error_body(message)}; }

std::string head_of(const Reply& reply, bool keep_alive) {
  std::string head =
      fmt::format("HTTP/1.1 {} {}\r\nContent-Length: {}\r\n", reply.status, phrase_of(reply.status), reply.body.size());
  const auto add = [&](std::string_view name, std::string_view value) {
    fmt::format_to(std::back_inserter(head), "{}: {}\r\n", name, value);
  };
  if (!reply.body.empty()) add("Content-Type", reply.type);
  if (reply.json_bytes) add("Inference-Header-Content-Length", std::to_string(*reply.json_bytes));
  if (!reply.allow.empty()) add("Allow", reply.allow);
  if (reply.status == kTooManyRequests || reply.status == kUnavailable) add("Retry-After", "1");
  if (reply.status == kUnauthorized) add("WWW-Authenticate", "Bearer realm=\"headrace\"");
  if (!keep_alive) add("Connection", "close");
  head += reply.headers;
  head += "\r\n";
  return head;
}

}  // namespace headrace::wire::http
