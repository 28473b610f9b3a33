#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "headrace/device/detail/code.hpp"
#include "headrace/operators/function.hpp"

namespace headrace::operators {

/// A function on CUDA devices: the code that it was linked into and what it reads, for each device that it was used on.
class LinkedFunction {
 public:
  LinkedFunction(std::string name, std::vector<FunctionArray> arrays, decltype(FunctionOptions::code) code);

  /// Gives those kernels of an operator their entries. Throws what FunctionOptions::code throws, and DeviceError.
  void link(serve::Operator& op, Device device, serve::KernelUse use);
  /// Puts the arrays on the device; engines that run at the same time share them.
  [[nodiscard]] serve::LoadedState load(Device device, std::shared_ptr<const void> owner);

 private:
  struct Arrays;

  [[nodiscard]] const DeviceCode& code_for(Device device, serve::KernelUse use);
  [[nodiscard]] std::shared_ptr<const Arrays> arrays_on(Device device);

  std::string name_;
  std::vector<FunctionArray> arrays_;
  decltype(FunctionOptions::code) make_code_;
  std::mutex mutex_;                                             ///< Guards all below.
  std::map<std::pair<int, serve::KernelUse>, DeviceCode> code_;  ///< By the number of the device, and the kernels.
  std::map<int, std::weak_ptr<const Arrays>> used_;              ///< By the number of the device.
};

}  // namespace headrace::operators
