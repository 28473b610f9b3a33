#include "device/cuda/error.hpp"

#include <fmt/format.h>

#include "headrace/base/detail/process.hpp"

namespace headrace::detail::cuda {

namespace {

Errc classify(cudaError_t code) noexcept {
  switch (code) {
    case cudaErrorMemoryAllocation:
    case cudaErrorMemoryValueTooLarge: return Errc::out_of_memory;

    case cudaErrorNotSupported:
    case cudaErrorNotYetImplemented:
    case cudaErrorInsufficientDriver:
    case cudaErrorCallRequiresNewerDriver:
    case cudaErrorCompatNotSupportedOnDevice:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorInvalidKernelImage:
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorJitCompilerNotFound:
    case cudaErrorPeerAccessUnsupported:
    case cudaErrorLaunchOutOfResources:
    case cudaErrorCooperativeLaunchTooLarge:
    case cudaErrorStreamCaptureUnsupported: return Errc::not_supported;

    case cudaErrorInvalidValue:
    case cudaErrorInvalidConfiguration:
    case cudaErrorInvalidPitchValue:
    case cudaErrorInvalidHostPointer:
    case cudaErrorInvalidDevicePointer:
    case cudaErrorInvalidMemcpyDirection:
    case cudaErrorInvalidResourceHandle:
    case cudaErrorPeerAccessNotEnabled:
    case cudaErrorHostMemoryAlreadyRegistered:
    case cudaErrorHostMemoryNotRegistered: return Errc::invalid_argument;

    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice: return Errc::not_found;
    case cudaErrorNotPermitted: return Errc::no_permission;

    // Illegal addresses, failed launches, asserts, ECC and link errors are sticky for the process. Unknown errors are
    // treated alike, because continuing with a device in an unknown state would corrupt answers.
    default: return Errc::device_fault;
  }
}

/// The process that first asked for devices. A forked child cannot use CUDA, so each call there fails at once.
const Birth& first_use() noexcept {
  static const Birth birth;
  return birth;
}

}  // namespace

void note_first_use() noexcept { static_cast<void>(first_use()); }

Error to_error(cudaError_t code) noexcept {
  static_cast<void>(cudaGetLastError());
  if (first_use().inherited()) return kInherited;
  return {classify(code), static_cast<int>(code)};
}

Result<bool> to_ready(cudaError_t code) noexcept {
  if (code == cudaSuccess) return true;
  if (code != cudaErrorNotReady) return to_error(code);
  static_cast<void>(cudaGetLastError());
  return false;
}

void or_throw(cudaError_t code, std::string_view doing) {
  if (code == cudaSuccess) return;
  throw_error(fmt::format("{}: {}", doing, cudaGetErrorString(code)), to_error(code));
}

}  // namespace headrace::detail::cuda
