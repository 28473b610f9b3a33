#include "headrace/device/detail/code.hpp"

#include <fmt/format.h>

#include <utility>

#include "device/backend.hpp"
#include "headrace/base/error.hpp"

namespace headrace {

DeviceCode::DeviceCode(Device device, std::span<const std::byte> image) {
  const auto doing = fmt::format("loading machine code on {}", device.name());
  if (image.empty()) throw_error(doing, Error{Errc::invalid_argument, 0});
  auto loaded = device.backend().load_code(image);
  if (!loaded && loaded.error().code == Errc::full) {
    throw DeviceError(
        Errc::full, doing +
                        ": a resident kernel is running, and loading code would wait for it; start the engine of this "
                        "operator first, or stop engines with the schedules persistent and dispatched until then");
  }
  backend_ = std::move(loaded).or_throw(doing);
}

DeviceCode::DeviceCode(DeviceCode&&) noexcept = default;
DeviceCode& DeviceCode::operator=(DeviceCode&&) noexcept = default;
DeviceCode::~DeviceCode() = default;

const void* DeviceCode::entry(const char* name) const {
  return backend_->entry(name).or_throw(fmt::format("looking up kernel '{}' in machine code", name));
}

}  // namespace headrace
