#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "headrace/device/detail/code.hpp"
#include "headrace/operators/function.hpp"

namespace headrace::operators {

/// A function on CUDA devices: its linked code and the arrays that it reads, for each device that has used it.
class LinkedFunction {
 public:
  LinkedFunction(std::string name, std::vector<FunctionArray> arrays, decltype(FunctionOptions::code) code);

  /// Sets the entries of these kernels of an operator. Throws what FunctionOptions::code throws, and DeviceError.
  void link(serve::Operator& op, Device device, std::span<const serve::KernelMember> kernels);
  /// Copies the arrays to the device. Engines that run at the same time share them.
  [[nodiscard]] serve::LoadedState load(Device device, std::shared_ptr<const void> owner);

 private:
  struct Arrays;

  [[nodiscard]] const DeviceCode& code_for(Device device, std::vector<std::string> kernels);
  [[nodiscard]] std::shared_ptr<const Arrays> arrays_on(Device device);

  std::string name_;
  std::vector<FunctionArray> arrays_;
  decltype(FunctionOptions::code) make_code_;
  std::mutex mutex_;                                                     ///< Guards all members below.
  std::map<std::pair<int, std::vector<std::string>>, DeviceCode> code_;  ///< Keyed by device number and kernels.
  std::map<int, std::weak_ptr<const Arrays>> used_;                      ///< Keyed by device number.
};

}  // namespace headrace::operators
