#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

/// headrace-host-pages-probe DEVICE NODE: makes a page of host memory by CUDA's virtual memory management, maps it for
/// the device and the host, and uses it. Writes "ok" or what failed; if the driver crashes, it writes nothing. It is
/// standalone and looks the driver up at run time, so that it starts quickly and always loads.

namespace {

constexpr std::size_t kPageBytes = std::size_t{2} << 20;

/// Exits without the driver's clean-up, which is not under test.
[[noreturn]] void end(int status) {
  std::fflush(stdout);
  std::_Exit(status);
}

[[noreturn]] void give_up(const char* what, int code) {
  std::printf("%s fails (CUDA code %d)\n", what, code);
  end(1);
}

void require(CUresult code, const char* what) {
  if (code != CUDA_SUCCESS) give_up(what, static_cast<int>(code));
}

template <class Function>
Function look_up(void* library, const char* name) {
  const auto function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) give_up(name, CUDA_ERROR_NOT_FOUND);
  return function;
}

void use_page(unsigned char* page) {
  std::memset(page, 0x5a, kPageBytes);
  if (page[kPageBytes - 1] != 0x5a) give_up("reading a host page back", 0);
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) {
    std::printf("usage: %s DEVICE NODE\n", arguments[0]);
    return 2;
  }
  void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) give_up("loading libcuda.so.1", 0);
  require(look_up<decltype(&cuInit)>(library, "cuInit")(0), "cuInit");
  CUdevice device = 0;
  require(look_up<decltype(&cuDeviceGet)>(library, "cuDeviceGet")(&device, std::atoi(arguments[1])), "cuDeviceGet");
  CUcontext context = nullptr;
  require(look_up<decltype(&cuDevicePrimaryCtxRetain)>(library, "cuDevicePrimaryCtxRetain")(&context, device),
          "cuDevicePrimaryCtxRetain");
  require(look_up<decltype(&cuCtxSetCurrent)>(library, "cuCtxSetCurrent")(context), "cuCtxSetCurrent");

  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, std::atoi(arguments[2])};
  CUmemGenericAllocationHandle page = 0;
  require(look_up<decltype(&cuMemCreate)>(library, "cuMemCreate")(&page, kPageBytes, &properties, 0),
          "creating a host page");
  CUdeviceptr at = 0;
  require(look_up<decltype(&cuMemAddressReserve)>(library, "cuMemAddressReserve")(&at, kPageBytes, kPageBytes, 0, 0),
          "reserving addresses");
  require(look_up<decltype(&cuMemMap)>(library, "cuMemMap")(at, kPageBytes, 0, page, 0), "mapping a host page");
  const auto set_access = look_up<decltype(&cuMemSetAccess)>(library, "cuMemSetAccess");
  CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, device}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  require(set_access(at, kPageBytes, &access, 1), "mapping a host page for the device");
  access.location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, std::atoi(arguments[2])};
  if (set_access(at, kPageBytes, &access, 1) != CUDA_SUCCESS) {
    access.location = {CU_MEM_LOCATION_TYPE_HOST, 0};
    require(set_access(at, kPageBytes, &access, 1), "mapping a host page for the host");
  }
  use_page(reinterpret_cast<unsigned char*>(at));
  require(look_up<decltype(&cuMemUnmap)>(library, "cuMemUnmap")(at, kPageBytes), "unmapping a host page");
  require(look_up<decltype(&cuMemRelease)>(library, "cuMemRelease")(page), "releasing a host page");
  std::printf("ok\n");
  end(0);
}
