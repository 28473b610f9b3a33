#include "headrace/operators/load_library.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>

#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "base/file_descriptor.hpp"
#include "headrace/base/detail/file_identity.hpp"
#include "headrace/base/error.hpp"
#include "operators/library/elf_file.hpp"
#include "operators/library/library_check.hpp"

namespace headrace::operators {

namespace {

using Message = std::array<char, 1024>;

/// A shared object that has passed all checks.
struct Loaded {
  FileIdentity identity;
  const OperatorLibrary* library;
};

struct Libraries {
  std::mutex mutex;
  std::map<std::string, Loaded> by_path;  ///< Under the mutex. Never unloaded: threads may still run their code.
};

/// Never destroyed, because engines may outlive static objects.
[[nodiscard]] Libraries& libraries() {
  static Libraries& all = *new Libraries;
  return all;
}

struct Close {
  void operator()(void* handle) const noexcept { static_cast<void>(::dlclose(handle)); }
};

/// The dynamic linker's description of its last failure, without the path at its start.
[[nodiscard]] std::string linker_says(const std::string& path) {
  const char* said = ::dlerror();
  std::string text = said == nullptr ? "the dynamic linker gives no reason" : said;
  if (text.starts_with(path + ": ")) text.erase(0, path.size() + 2);
  return text;
}

[[nodiscard]] const OperatorLibrary& open_library(const std::string& path) {
  // Binds symbols now, because a missing one would end the program later, and keeps them local to the library.
  std::unique_ptr<void, Close> handle(::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (!handle) throw UsageError(fmt::format("{} cannot be loaded: {}", path, linker_says(path)));
  void* const symbol = ::dlsym(handle.get(), kOperatorSymbol);
  if (symbol == nullptr) {
    throw UsageError(fmt::format("{} exports no operator; write HEADRACE_OPERATOR(TheStruct) in its source, and build "
                                 "it with headrace_add_operator()",
                                 path),
                     Errc::not_found);
  }
  const OperatorLibrary* library = reinterpret_cast<OperatorLibraryFunction>(symbol)();
  if (library == nullptr) throw DataError(fmt::format("{} describes no operator", path));
  require_matching(*library, path);
  [[maybe_unused]] void* const stays = handle.release();
  return *library;
}

/// The library of a file, loaded on first use.
[[nodiscard]] const OperatorLibrary& library_of(const std::string& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) throw_errno("opening " + path);
  require_shared_object(file.get(), path);
  const FileIdentity identity = identity_of(file.get(), path);
  Libraries& all = libraries();
  const std::lock_guard lock(all.mutex);
  if (const auto found = all.by_path.find(path); found != all.by_path.end()) {
    if (is_unchanged(found->second.identity, identity)) return *found->second.library;
    throw UsageError(
        fmt::format("{} has changed since this program loaded it, and a loaded library stays loaded; restart the "
                    "program, or give the new file another name",
                    path));
  }
  const OperatorLibrary& library = open_library(path);
  all.by_path.emplace(path, Loaded{identity, &library});
  return library;
}

[[nodiscard]] serve::LoadedState load_state(const OperatorLibrary& library) {
  serve::LoadedState state{std::vector<std::byte>(library.state_bytes), nullptr};
  Message message{};
  if (library.make_state(state.bytes.data(), message.data(), message.size()) != 0) {
    throw UsageError(fmt::format("operator {}: its state() failed: {}", library.name, message.data()));
  }
  return state;
}

/// A shared object compiled by nvcc has its own copy of the CUDA runtime, and its kernels are registered there.
void link_kernels(const OperatorLibrary& library, serve::Operator& op, Device device) {
  if (device.properties().host_cores) return;
  const std::array<Kernel*, kLibraryKernels> kernels{&op.kernel,      &op.scattered_kernel, &op.pool,
                                                     &op.pool_inline, &op.persistent,       &op.persistent_barrier};
  for (std::size_t i = 0; i < kLibraryKernels; ++i) {
    const void* const entry = library.kernels[i].entry(device.kind());
    if (entry == nullptr) continue;
    const void* found = nullptr;
    if (const int status = library.cuda_kernel(entry, &found); status != 0) {
      throw DeviceError(
          Errc::not_supported,
          fmt::format("operator {} has no code for {}: CUDA error {}", library.name, device.name(), status), status);
    }
    kernels[i]->set_entry(device.kind(), found);
  }
}

}  // namespace

serve::Operator load_library(const std::filesystem::path& path) {
  std::error_code unknown;
  const std::filesystem::path whole = std::filesystem::canonical(path, unknown);
  if (unknown) throw_errno("opening " + path.string(), unknown.value());
  const OperatorLibrary& library = library_of(whole.string());

  serve::Operator op;
  op.name = library.name;
  op.query_bytes = library.query_bytes;
  op.answer_bytes = library.answer_bytes;
  op.shape = {.blocks = library.blocks, .threads = library.threads};
  op.query_type = numpy_type(library.query_fields, library.query_field_count, op.query_bytes, "query", whole.string());
  op.answer_type =
      numpy_type(library.answer_fields, library.answer_field_count, op.answer_bytes, "answer", whole.string());
  const auto kernel = [&](LibraryKernel which) { return library.kernels[static_cast<std::size_t>(which)]; };
  op.kernel = kernel(LibraryKernel::plain);
  op.scattered_kernel = kernel(LibraryKernel::scattered);
  op.pool = kernel(LibraryKernel::pool);
  op.pool_inline = kernel(LibraryKernel::pool_inline);
  op.persistent = kernel(LibraryKernel::persistent);
  op.persistent_barrier = kernel(LibraryKernel::persistent_barrier);
  if (library.cuda_kernel != nullptr) {
    op.link = [&library](serve::Operator& to, Device device, std::span<const serve::KernelMember> /*kernels*/) {
      link_kernels(library, to, device);
    };
  }
  op.load = [&library](Device /*device*/) { return load_state(library); };
  if (library.sample != nullptr) {
    op.sample = [&library](std::uint64_t index, std::byte* query) {
      Message message{};
      if (library.sample(index, query, message.data(), message.size()) == 0) return;
      throw UsageError(fmt::format("operator {}: its sample() failed: {}", library.name, message.data()));
    };
  }
  return op;
}

}  // namespace headrace::operators
