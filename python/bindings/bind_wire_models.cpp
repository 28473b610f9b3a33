#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "convert.hpp"
#include "headrace/wire/server.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::python {

namespace {

using wire::DataType;
using wire::Model;
using wire::ModelRequest;
using wire::Tensor;

void bind_tensor(nb::module_& module) {
  nb::enum_<DataType>(module, "DataType", "The types of a tensor's elements, as the Open Inference Protocol has them.")
      .value("boolean", DataType::boolean)
      .value("uint8", DataType::uint8)
      .value("uint16", DataType::uint16)
      .value("uint32", DataType::uint32)
      .value("uint64", DataType::uint64)
      .value("int8", DataType::int8)
      .value("int16", DataType::int16)
      .value("int32", DataType::int32)
      .value("int64", DataType::int64)
      .value("fp16", DataType::fp16)
      .value("fp32", DataType::fp32)
      .value("fp64", DataType::fp64);
  nb::class_<Tensor>(module, "Tensor",
                     "A part of a query or of an answer, which clients send or get as one tensor. A request of N "
                     "queries has N such parts: its tensor has the shape [N, *shape].")
      .def(
          "__init__",
          [](Tensor* self, std::string name, DataType type, std::vector<std::int64_t> shape, std::size_t offset) {
            new (self) Tensor{.name = std::move(name), .type = type, .shape = std::move(shape), .offset = offset};
          },
          "name"_a, "type"_a, "shape"_a = std::vector<std::int64_t>{}, nb::kw_only(), "offset"_a = 0,
          "`shape` is that of one query, empty for a single element; `offset` is where it begins in the query or "
          "answer, in bytes.")
      .def_ro("name", &Tensor::name)
      .def_ro("type", &Tensor::type)
      .def_prop_ro(
          "datatype", [](const Tensor& tensor) { return std::string(to_string(tensor.type)); },
          "The type as requests and replies write it, such as \"FP32\".")
      .def_ro("shape", &Tensor::shape, "The shape of one query; empty for a single element.")
      .def_ro("offset", &Tensor::offset, "Where it begins in the query or answer, in bytes.")
      .def_prop_ro("bytes", &Tensor::bytes, "Bytes in one query or answer.")
      .def("__repr__", [](const Tensor& tensor) {
        return fmt::format("Tensor('{}', {}, [{}], offset={})", tensor.name, to_string(tensor.type),
                           fmt::join(tensor.shape, ", "), tensor.offset);
      });
}

void bind_model(nb::module_& module) {
  nb::class_<Model>(
      module, "Model",
      "An operator that clients of a server request by name; headrace.wire.model() makes one from an engine.")
      .def(
          "__init__",
          [](Model* self, std::shared_ptr<serve::Engine> engine, std::vector<Tensor> inputs,
             std::vector<Tensor> outputs, std::string name, std::string version, std::uint32_t batch_max,
             std::uint32_t waiting_max, std::string query_type, std::string answer_type) {
            Model model{.name = std::move(name),
                        .version = std::move(version),
                        .engine = std::move(engine),
                        .inputs = std::move(inputs),
                        .outputs = std::move(outputs),
                        .batch_max = batch_max,
                        .waiting_max = waiting_max,
                        .query_type = std::move(query_type),
                        .answer_type = std::move(answer_type)};
            check_model(model);
            new (self) Model(std::move(model));
          },
          "engine"_a, "inputs"_a, "outputs"_a, nb::kw_only(), "name"_a, "version"_a = Model{}.version,
          "batch_max"_a = Model{}.batch_max, "waiting_max"_a = Model{}.waiting_max, "query_type"_a = "",
          "answer_type"_a = "",
          "`inputs` are the parts of a query, `outputs` those of an answer; bytes of a query that no input covers are "
          "zero. A name has letters, digits, '.', '_' and '-'. A request has at most `batch_max` queries, and "
          "`waiting_max` may wait for slots, for each thread of the server; 0: as the server has it. `query_type` "
          "and `answer_type` are the types for clients of shared memory, like Operator.answer_type; empty for those of "
          "the engine's operator. Raises UsageError for an invalid name, for two tensors of one name, and for tensors "
          "that overlap or leave their query or answer.")
      .def_ro("name", &Model::name)
      .def_ro("version", &Model::version)
      .def_ro("engine", &Model::engine)
      .def_ro("inputs", &Model::inputs, "Parts of a query.")
      .def_ro("outputs", &Model::outputs, "Parts of an answer.")
      .def_ro("batch_max", &Model::batch_max, "Queries in one request.")
      .def_ro("waiting_max", &Model::waiting_max, "Queries that may wait for slots; 0: as the server has it.")
      .def("__repr__", [](const Model& model) {
        return fmt::format("<headrace.wire.Model {}: {} inputs, {} outputs>", model.name, model.inputs.size(),
                           model.outputs.size());
      });
}

/// What a change sets, as arguments of Server.change().
nb::dict changes_of(const wire::ModelChange& change) {
  nb::dict changes;
  if (change.plan.share) changes["share"] = *change.plan.share;
  if (change.plan.in_flight_max) changes["in_flight_max"] = *change.plan.in_flight_max;
  if (change.plan.latency_max) changes["latency_max"] = to_seconds(*change.plan.latency_max);
  if (change.waiting_max) changes["waiting_max"] = *change.waiting_max;
  return changes;
}

void bind_model_request(nb::module_& module) {
  nb::class_<ModelRequest>(module, "ModelRequest", "A client's request to load, change or unload a model of a server.")
      .def_ro("model", &ModelRequest::model, "A name that the server knows.")
      .def_ro("load", &ModelRequest::load, "True to load it, again if it is already loaded; False to unload it.")
      .def_prop_ro(
          "change",
          [](const ModelRequest& request) {
            return request.change ? std::optional(changes_of(*request.change)) : std::nullopt;
          },
          nb::sig("def change(self) -> dict[str, float] | None"),
          "Arguments of Server.change() if the model is to be changed; if it is not loaded, it is to be loaded with "
          "them. None: it is to be loaded or unloaded.")
      .def("__repr__", [](const ModelRequest& request) {
        return fmt::format("<headrace.wire.ModelRequest: {} {}>", request.load ? "load" : "unload", request.model);
      });
}

}  // namespace

void bind_wire_models(nb::module_& module) {
  bind_tensor(module);
  bind_model(module);
  bind_model_request(module);
}

}  // namespace headrace::python
