#include "operators/function/linked_function.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <new>
#include <span>
#include <utility>

#include "headrace/base/error.hpp"
#include "headrace/device/detail/uploads.hpp"
#include "operators/function/function_state.hpp"
#include "operators/function/linked_code.hpp"

namespace headrace::operators {

namespace {

using serve::KernelMember;
using serve::Operator;

/// The name of a kernel in linked_kernels.cu.
const char* name_of(KernelMember kernel) {
  static constexpr std::array<std::pair<KernelMember, const char*>, 6> kNames{
      {{&Operator::kernel, "headrace_kernel"},
       {&Operator::scattered_kernel, "headrace_scattered"},
       {&Operator::pool, "headrace_pool"},
       {&Operator::pool_inline, "headrace_inline_pool"},
       {&Operator::persistent, "headrace_persistent"},
       {&Operator::persistent_barrier, "headrace_barrier_persistent"}}};
  return std::ranges::find(kNames, kernel, &std::pair<KernelMember, const char*>::first)->second;
}

/// The device memory that one engine keeps.
struct LoadedCode {
  explicit LoadedCode(Device device) : failed_word(device, MemoryKind::mapped, sizeof(std::atomic<std::uint32_t>)) {
    failed = new (failed_word.data()) std::atomic<std::uint32_t>(0);
  }

  Buffer failed_word;  ///< Written by kernels, read by the host.
  std::atomic<std::uint32_t>* failed;
  std::shared_ptr<const void> arrays;
  std::shared_ptr<const void> owner;
};

}  // namespace

struct LinkedFunction::Arrays {
  std::vector<Buffer> buffers;
  std::vector<std::uint64_t> words;  ///< In the format of FunctionState.
};

LinkedFunction::LinkedFunction(std::string name, std::vector<FunctionArray> arrays,
                               decltype(FunctionOptions::code) code)
    : name_(std::move(name)), arrays_(std::move(arrays)), make_code_(std::move(code)) {}

void LinkedFunction::link(serve::Operator& op, Device device, std::span<const KernelMember> kernels) {
  std::vector<std::string> names;
  for (const KernelMember kernel : kernels) names.emplace_back(name_of(kernel));
  const DeviceCode& code = code_for(device, std::move(names));
  for (const KernelMember kernel : kernels) (op.*kernel).set_entry(device.kind(), code.entry(name_of(kernel)));
}

const DeviceCode& LinkedFunction::code_for(Device device, std::vector<std::string> kernels) {
  const std::pair key(device.ordinal(), std::move(kernels));
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = code_.find(key); found != code_.end()) return found->second;
  }
  // Without the lock: the code may be made by Python, and a thread that holds Python's lock may be waiting here.
  DeviceCode made(device, make_code_(device, key.second));
  const std::lock_guard lock(mutex_);
  return code_.try_emplace(key, std::move(made)).first->second;
}

std::shared_ptr<const LinkedFunction::Arrays> LinkedFunction::arrays_on(Device device) {
  const std::lock_guard lock(mutex_);
  std::weak_ptr<const Arrays>& used = used_[device.ordinal()];
  if (auto found = used.lock()) return found;
  const auto doing = fmt::format("copying the arrays of operator {} to {}", name_, device.name());
  const auto made = std::make_shared<Arrays>();
  Uploads uploads(device, doing);
  constexpr std::uint64_t kNowhere = 0;
  std::vector<std::pair<std::size_t, std::size_t>> places;  // a word, and the buffer whose address it will hold
  for (const FunctionArray& array : arrays_) {
    if (array.cuda && array.cuda != device.ordinal()) {
      throw DeviceError(Errc::not_supported,
                        fmt::format("operator {}: {} lies in the memory of cuda:{} and cannot be read on {}", name_,
                                    array.name, *array.cuda, device.name()));
    }
    if (array.cuda) {
      made->words.push_back(reinterpret_cast<std::uint64_t>(array.data));
    } else if (array.bytes == 0) {
      made->words.push_back(kNowhere);
    } else {
      places.emplace_back(made->words.size(),
                          uploads.add(std::span(static_cast<const std::byte*>(array.data), array.bytes)));
      made->words.push_back(kNowhere);
    }
    made->words.insert(made->words.end(), array.shape.begin(), array.shape.end());
  }
  made->buffers = uploads.finish();
  for (const auto& [word, buffer] : places) {
    made->words[word] = reinterpret_cast<std::uint64_t>(made->buffers[buffer].data());
  }
  if (made->words.size() > kFunctionWordsMost) {
    uploads.add(made->words);
    made->buffers.push_back(std::move(uploads.finish().front()));
    made->words = {reinterpret_cast<std::uint64_t>(made->buffers.back().data())};
  }
  used = made;
  return made;
}

serve::LoadedState LinkedFunction::load(Device device, std::shared_ptr<const void> owner) {
  const std::shared_ptr<const Arrays> arrays = arrays_on(device);
  const auto loaded = std::make_shared<LoadedCode>(device);
  loaded->arrays = arrays;
  loaded->owner = std::move(owner);
  FunctionState state{nullptr, nullptr, loaded->failed, {}};
  std::ranges::copy(arrays->words, std::begin(state.words));
  serve::LoadedState made = serve::make_state(state, loaded);
  made.failed = loaded->failed;
  return made;
}

std::span<const std::byte> function_kernels(int compute_capability) {
  const LinkedCode* best = nullptr;
  for (const LinkedCode& one : linked_codes()) {
    if (one.compute_capability > compute_capability) continue;
    if (best == nullptr || one.compute_capability > best->compute_capability) best = &one;
  }
  if (best == nullptr) {
    throw DeviceError(Errc::not_supported,
                      linked_codes().empty()
                          ? std::string("this build of Headrace has no CUDA, so functions run on CPU devices only")
                          : fmt::format("this build of Headrace has no kernels for compute capability {}.{}",
                                        compute_capability / 10, compute_capability % 10));
  }
  return best->bytes;
}

}  // namespace headrace::operators
