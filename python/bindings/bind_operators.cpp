#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "answer_type.hpp"
#include "arrays.hpp"
#include "bindings.hpp"
#include "convert.hpp"
#include "gil.hpp"
#include "headrace/base/error.hpp"
#include "headrace/operators/function.hpp"
#include "headrace/operators/light.hpp"
#include "headrace/operators/load_library.hpp"
#include "headrace/operators/reference.hpp"
#include "headrace/operators/retrieval.hpp"
#include "kept.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::python {

namespace {

using serve::Operator;

Bytes2d sample(const Operator& op, std::size_t count, std::uint64_t first) {
  if (!op.sample) throw UsageError(fmt::format("operator {} has no sample queries", op.name));
  auto queries = make_values<std::uint8_t>(count * op.query_bytes);
  {
    const GilRelease released;
    for (std::size_t i = 0; i < count; ++i) {
      op.sample(first + i, reinterpret_cast<std::byte*>(queries.get() + i * op.query_bytes));
    }
  }
  return to_numpy(std::move(queries), count, op.query_bytes);
}

nb::object answer_on_host(const Operator& op, nb::handle object) {
  const BytesView queries(object, "queries");
  const std::size_t count = queries.count(op.query_bytes);
  auto answers = make_values<std::uint8_t>(count * op.answer_bytes);
  {
    const GilRelease released;
    const serve::LoadedState state = op.load(Device::parse("cpu"));
    for (std::size_t i = 0; i < count; ++i) {
      serve::answer_here(op, state, queries.bytes().data() + i * op.query_bytes,
                         reinterpret_cast<std::byte*>(answers.get() + i * op.answer_bytes));
      if (state.has_failed()) {
        throw DeviceError(Errc::device_fault, fmt::format("operator {} could not answer query {}", op.name, i));
      }
    }
  }
  return AnswerType(op).array(std::move(answers), count);
}

void bind_shipped(nb::module_& module) {
  module.def(
      "light",
      [](std::uint32_t query_bytes, std::uint32_t threads, std::uint32_t steps) {
        return operators::light({.query_bytes = query_bytes, .threads = threads, .steps = steps});
      },
      nb::kw_only(), "query_bytes"_a = 1024, "threads"_a = 128, "steps"_a = 64,
      "A query so small that delivering it costs more than answering it: one block sums it and runs two chains of "
      "`steps` multiply-adds a thread; the answer has 64 bytes. Raises UsageError that names the option out of range.");
  module.def(
      "reference",
      [](std::uint32_t query_bytes, std::uint32_t answer_bytes, std::uint32_t blocks, std::uint32_t threads,
         std::uint32_t steps) {
        return operators::reference({.query_bytes = query_bytes,
                                     .answer_bytes = answer_bytes,
                                     .blocks = blocks,
                                     .threads = threads,
                                     .steps = steps});
      },
      nb::kw_only(), "query_bytes"_a = 4096, "answer_bytes"_a = 4096, "blocks"_a = 32, "threads"_a = 128,
      "steps"_a = 2000,
      "A query whose main work is on the device: two chains of `steps` multiply-adds in each of `blocks` * `threads` "
      "threads. Raises UsageError that names the option out of range.");
  module.def(
      "retrieval",
      [](const operators::Index& index, std::uint32_t threads, bool with_samples) {
        const GilRelease released;
        return operators::retrieval(std::make_shared<const operators::Index>(index),
                                    {.threads = threads, .sample = with_samples});
      },
      "index"_a, nb::kw_only(), "threads"_a = 128, "sample"_a = true,
      "Boolean queries over an index, which the operator keeps; Index.compile() makes queries. Load tests need "
      "`sample`, which costs 4 bytes of host memory a posting.");
}

void bind_library(nb::module_& module) {
  module.def(
      "load_library",
      [](const std::filesystem::path& path) {
        const GilRelease released;
        return operators::load_library(path);
      },
      "path"_a, nb::sig("def load_library(path: str | os.PathLike[str]) -> Operator"),
      "The operator in a shared object built by CMake's headrace_add_operator(); see docs/operator-libraries.md. "
      "Loading runs code of the file, which stays loaded until the program ends. Raises MissingFileError, DataError if "
      "it is not a complete shared object for this machine, and UsageError if it has no operator or was built for "
      "another version of Headrace, which the message names.");
}

/// Makes query `index` by calling a Python function.
std::function<void(std::uint64_t, std::byte*)> sampler(nb::object function, std::size_t query_bytes) {
  if (function.is_none()) return {};
  return [kept = keep(std::move(function)), query_bytes](std::uint64_t index, std::byte* query) {
    const GilAcquire acquired;
    const nb::handle call(static_cast<PyObject*>(const_cast<void*>(kept.get())));
    const nb::object made = call(index);
    const BytesView bytes(made, "a sample query");
    bytes.require_one(query_bytes);
    std::memcpy(query, bytes.bytes().data(), query_bytes);
  };
}

/// The arrays of a function, as tuples of a name, an address, a size, a shape, and a device number or None.
std::vector<operators::FunctionArray> function_arrays(const nb::list& arrays) {
  std::vector<operators::FunctionArray> found;
  for (const nb::handle one : arrays) {
    const auto tuple = nb::cast<nb::tuple>(one);
    operators::FunctionArray array{.name = nb::cast<std::string>(tuple[0]), .bytes = nb::cast<std::size_t>(tuple[2])};
    // NOLINTNEXTLINE(performance-no-int-to-ptr): NumPy gives addresses as numbers
    array.data = reinterpret_cast<const void*>(nb::cast<std::uintptr_t>(tuple[1]));
    for (const nb::handle length : nb::cast<nb::tuple>(tuple[3])) {
      array.shape.push_back(nb::cast<std::uint64_t>(length));
    }
    if (!tuple[4].is_none()) array.cuda = nb::cast<int>(tuple[4]);
    found.push_back(std::move(array));
  }
  return found;
}

/// The Python callable that makes a function's machine code for a device.
decltype(operators::FunctionOptions::code) coder(nb::object function) {
  if (function.is_none()) return {};
  return [kept = keep(std::move(function))](Device device, std::span<const std::string> kernels) {
    const GilAcquire acquired;
    const nb::handle call(static_cast<PyObject*>(const_cast<void*>(kept.get())));
    nb::list names;
    for (const std::string& kernel : kernels) names.append(kernel);
    const nb::object made = call(device, names);
    const auto code = nb::cast<nb::bytes>(made);
    const auto* begin = reinterpret_cast<const std::byte*>(code.c_str());
    return std::vector<std::byte>(begin, begin + code.size());
  };
}

/// The Python callable that makes a function's machine code for the host, and returns its address.
std::function<operators::AnswerFunction()> host_coder(nb::object function) {
  if (function.is_none()) return {};
  return [kept = keep(std::move(function))] {
    const GilAcquire acquired;
    const nb::handle call(static_cast<PyObject*>(const_cast<void*>(kept.get())));
    const auto address = nb::cast<std::uintptr_t>(nb::object(call()));
    // NOLINTNEXTLINE(performance-no-int-to-ptr): Numba and ctypes give addresses as numbers
    return reinterpret_cast<operators::AnswerFunction>(address);
  };
}

void bind_function(nb::module_& module) {
  module.def(
      "function_operator",
      [](std::string name, std::size_t query_bytes, std::size_t answer_bytes, nb::object function, std::uintptr_t state,
         nb::object owner, nb::object sample, std::string answer_type, const nb::list& arrays, nb::object code,
         std::uint32_t blocks, std::uint32_t threads) {
        // NOLINTBEGIN(performance-no-int-to-ptr): NumPy gives addresses as numbers
        return operators::function({.name = std::move(name),
                                    .query_bytes = query_bytes,
                                    .answer_bytes = answer_bytes,
                                    .make_function = host_coder(std::move(function)),
                                    .state = reinterpret_cast<const void*>(state),
                                    .owner = keep(std::move(owner)),
                                    .sample = sampler(std::move(sample), query_bytes),
                                    .answer_type = std::move(answer_type),
                                    .arrays = function_arrays(arrays),
                                    .code = coder(std::move(code)),
                                    .blocks = blocks,
                                    .threads = threads});
        // NOLINTEND(performance-no-int-to-ptr)
      },
      "name"_a, "query_bytes"_a, "answer_bytes"_a, "function"_a.none(), "state"_a, "owner"_a, "sample"_a.none(),
      "answer_type"_a, "arrays"_a = nb::list(), "code"_a.none() = nb::none(), "blocks"_a = 1, "threads"_a = 32,
      nb::sig(
          "def function_operator(name: str, query_bytes: int, answer_bytes: int, function: "
          "collections.abc.Callable[[], int] | None, state: int, owner: object, sample: "
          "collections.abc.Callable[[int], object] | None, answer_type: str, arrays: "
          "list[tuple[str, int, int, tuple[int, ...], int | None]] = ..., code: "
          "collections.abc.Callable[[Device, list[str]], bytes] | None = None, blocks: int = 1, threads: int = 32) -> "
          "Operator"),
      "The operator that calls a C function on CPU devices. `function` returns its address whenever it is loaded "
      "there; see operators/function.hpp. `owner` keeps the function and the memory at `state` alive. `sample` returns "
      "query number i, of query_bytes bytes. `code` returns a cubin with the kernels of these names for a CUDA device. "
      "They get `arrays`: name, address, bytes, shape, and the number of the CUDA device that holds it, or None.");
  module.def(
      "function_kernels",
      [](int compute_capability) {
        const std::span<const std::byte> code = operators::function_kernels(compute_capability);
        return nb::bytes(code.data(), code.size());
      },
      "compute_capability"_a,
      "The kernels that call a function on a CUDA device, as LTO-IR, for nvJitLink; `compute_capability` is 90 for "
      "9.0. Raises DeviceError in a build without CUDA, and for GPUs older than those of the build.");
}

}  // namespace

void bind_operators(nb::module_& module) {
  nb::class_<Operator>(module, "Operator", nb::dynamic_attr(),
                       "The computation that answers a query. Made by light(), reference(), retrieval(), from a Python "
                       "function by operator(), or from a shared object by load_library().")
      .def_ro("name", &Operator::name)
      .def_ro("query_bytes", &Operator::query_bytes)
      .def_ro("answer_bytes", &Operator::answer_bytes)
      .def_ro("answer_type", &Operator::answer_type,
              "The type of answers for clients; see headrace.dtypes. Empty for bytes.")
      .def_ro("query_type", &Operator::query_type, "The type of queries. Empty if C++ does not know it.")
      .def_prop_ro(
          "answers_inline",
          [](const Operator& op) { return op.pool_inline.cpu_entry() != nullptr && op.shape.blocks == 1; },
          "Whether it supports Plan.answer_inline.")
      .def("sample", &sample, "count"_a, "first"_a = 0,
           "Queries number `first` to `first + count - 1` of an endless, reproducible sequence, as rows of bytes.")
      .def("answer_on_host", &answer_on_host, "queries"_a,
           nb::sig("def answer_on_host(self, queries: numpy.typing.NDArray[typing.Any] | typing_extensions.Buffer) -> "
                   "numpy.typing.NDArray[typing.Any]"),
           "Answers queries on the host, one after the other, in the form that clients return, to verify an engine's "
           "answers. Loads the operator's state each time.")
      .def("__repr__", [](const Operator& op) {
        return fmt::format("<headrace.Operator {}: {} B in, {} B out>", op.name, op.query_bytes, op.answer_bytes);
      });
  bind_shipped(module);
  bind_library(module);
  bind_function(module);
}

}  // namespace headrace::python
