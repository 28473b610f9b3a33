#pragma once

// A Model is an operator that clients of a Server query by name: an engine, and the tensors that make up its queries
// and answers.
//
//     auto serve_as = [](std::string name, std::shared_ptr<headrace::serve::Engine> engine) {
//       headrace::wire::Model model;
//       model.name = std::move(name);
//       model.engine = std::move(engine);
//       model.inputs = {{.name = "x", .type = headrace::wire::DataType::fp32, .shape = {64}}};
//       model.outputs = {{.name = "y", .type = headrace::wire::DataType::fp32}};
//       headrace::wire::check_model(model);
//       return model;
//     };

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "headrace/serve/engine.hpp"
#include "headrace/wire/detail/tensor.hpp"

namespace headrace::wire {

/// An operator that clients of a server query by name. Bytes of a query that no input covers are zero.
///
///   Model model{.name = "light", .engine = engine, .inputs = {{.name = "x", .type = DataType::fp32}}, ...};
struct Model {
  std::string name;                       ///< Letters, digits, '.', '_' and '-'.
  std::string version = "1";              ///< As clients see it.
  std::shared_ptr<serve::Engine> engine;  ///< Answers the queries; must not be null.
  std::vector<Tensor> inputs;             ///< Parts of a query that do not overlap, at least one.
  std::vector<Tensor> outputs;            ///< Parts of an answer, at least one.
  std::uint32_t batch_max = 1024;         ///< Most queries in one request.
  /// Queries that may wait for slots of the engine, for each thread of the server; 0: ServerConfig::waiting_max. May
  /// change: Server::change().
  std::uint32_t waiting_max = 0;
  /// How Python shows queries to clients of shared memory, see serve::Operator::query_type. Empty: as the engine's
  /// operator defines.
  std::string query_type = {};
  /// The same for answers.
  std::string answer_type = {};
};

/// Throws UsageError for a model that cannot be served: no engine, a bad name, two tensors of one name, or tensors that
/// overlap or exceed the query or the answer.
void check_model(const Model& model);

}  // namespace headrace::wire
