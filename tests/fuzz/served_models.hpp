#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "headrace/operators/light.hpp"
#include "headrace/serve/engine.hpp"
#include "wire/served_model.hpp"

/// The model that the server's fuzz targets use.
namespace headrace::wire {

inline constexpr std::uint32_t kQueryBytes = 64;

/// One model, with inputs and outputs of many types.
[[nodiscard]] inline Models models() {
  serve::Plan plan;
  plan.threads = 1;
  plan.slots = 2;
  plan.clients_max = 1;
  const serve::Operator op = operators::light({.query_bytes = kQueryBytes});
  Model model{.name = "light",
              .engine = std::make_shared<serve::Engine>(Device::parse("cpu"), op, plan),
              .inputs = {{.name = "a", .type = DataType::uint8, .shape = {16}},
                         {.name = "b", .type = DataType::fp32, .shape = {2, 2}, .offset = 16},
                         {.name = "c", .type = DataType::boolean, .shape = {}, .offset = 32},
                         {.name = "d", .type = DataType::int64, .shape = {1}, .offset = 40}},
              .outputs = {{.name = "x", .type = DataType::uint64, .shape = {8}},
                          {.name = "y", .type = DataType::fp32, .shape = {}, .offset = 0}},
              .batch_max = 8};
  std::vector<Model> list;
  list.push_back(std::move(model));
  return Models(std::move(list), 1);
}

}  // namespace headrace::wire
