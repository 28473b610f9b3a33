#include "device/cuda/peers.hpp"

#include <cuda_runtime_api.h>

#include "device/cuda/current_device.hpp"
#include "device/cuda/device.hpp"
#include "device/cuda/error.hpp"
#include "device/cuda/nvml.hpp"
#include "device/cuda/properties.hpp"

namespace headrace::detail::cuda {

namespace {

bool can_access(int from, int to) noexcept {
  int can = 0;
  const cudaError_t status = cudaDeviceCanAccessPeer(&can, from, to);
  if (status != cudaSuccess) static_cast<void>(to_error(status));
  return status == cudaSuccess && can != 0;
}

bool has_native_atomics(int from, int to) noexcept {
  int has = 0;
  const cudaError_t status = cudaDeviceGetP2PAttribute(&has, cudaDevP2PAttrNativeAtomicSupported, from, to);
  if (status != cudaSuccess) static_cast<void>(to_error(status));
  return status == cudaSuccess && has != 0;
}

}  // namespace

bool Peers::reaches(int peer) const noexcept {
  return peer == ordinal_ || (static_cast<std::size_t>(peer) < kPeersMax && can_access(ordinal_, peer));
}

Status Peers::enable(int peer) noexcept {
  if (peer == ordinal_) return {};
  if (!reaches(peer)) return Error{Errc::not_supported, static_cast<int>(cudaErrorPeerAccessUnsupported)};
  const std::lock_guard lock(mutex_);
  Use& use = uses_[static_cast<std::size_t>(peer)];
  if (use.count == 0) {
    const CurrentDevice scope(ordinal_);
    const cudaError_t status = cudaDeviceEnablePeerAccess(peer, 0);
    if (status != cudaSuccess && status != cudaErrorPeerAccessAlreadyEnabled) return to_error(status);
    use.ours = status == cudaSuccess;
    if (!use.ours) static_cast<void>(to_error(status));  // clears CUDA's last error
  }
  ++use.count;
  return {};
}

void Peers::disable(int peer) noexcept {
  if (peer == ordinal_) return;
  const std::lock_guard lock(mutex_);
  Use& use = uses_[static_cast<std::size_t>(peer)];
  if (--use.count > 0 || !use.ours) return;
  const CurrentDevice scope(ordinal_);
  // This function cannot report a failure; the next call that returns a status reports a device fault.
  static_cast<void>(to_status(cudaDeviceDisablePeerAccess(peer)));
}

Status CudaDevice::enable_peer(DeviceBackend& peer) noexcept { return peers_.enable(peer.ordinal()); }
void CudaDevice::disable_peer(DeviceBackend& peer) noexcept { peers_.disable(peer.ordinal()); }

PeerConnection CudaDevice::connection(const DeviceBackend& peer) const noexcept {
  if (peer.ordinal() == ordinal_) return {.way = PeerWay::same_device, .access = true, .native_atomics = true};
  PeerConnection found;
  found.access = peers_.reaches(peer.ordinal());
  found.native_atomics = found.access && has_native_atomics(ordinal_, peer.ordinal());
  const PciId from = pci_id(ordinal_);
  const PciId to = pci_id(peer.ordinal());
  found.way = nvml().way(from.data(), to.data());
  return found;
}

Status CudaDevice::register_host(void* data, std::size_t bytes) noexcept {
  const CurrentDevice scope(ordinal_);
  cudaError_t status = cudaHostRegister(data, bytes, cudaHostRegisterPortable | cudaHostRegisterMapped);
  if (status != cudaSuccess) return to_error(status);
  // Kernels get the host's address, so a device that maps the memory at another address could not use it.
  void* seen = nullptr;
  status = cudaHostGetDevicePointer(&seen, data, 0);
  if (status == cudaSuccess && seen == data) return {};
  static_cast<void>(to_status(cudaHostUnregister(data)));
  return status == cudaSuccess ? Error{Errc::not_supported, static_cast<int>(cudaErrorNotSupported)} : to_error(status);
}

void CudaDevice::unregister_host(void* data) noexcept {
  const CurrentDevice scope(ordinal_);
  static_cast<void>(to_status(cudaHostUnregister(data)));
}

}  // namespace headrace::detail::cuda
