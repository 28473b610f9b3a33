#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "bindings.hpp"
#include "headrace/fetch/scan.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::python {

namespace {

nb::bytes to_bytes(const auto& memory) { return nb::bytes(memory.data(), memory.size()); }

void bind_scan_types(nb::module_& module) {
  nb::enum_<fetch::Type>(module, "TypeId", "The types that scans support, as in Arrow.")
      .value("boolean", fetch::Type::boolean)
      .value("int8", fetch::Type::int8)
      .value("int16", fetch::Type::int16)
      .value("int32", fetch::Type::int32)
      .value("int64", fetch::Type::int64)
      .value("uint8", fetch::Type::uint8)
      .value("uint16", fetch::Type::uint16)
      .value("uint32", fetch::Type::uint32)
      .value("uint64", fetch::Type::uint64)
      .value("float32", fetch::Type::float32)
      .value("float64", fetch::Type::float64)
      .value("date32", fetch::Type::date32)
      .value("timestamp", fetch::Type::timestamp)
      .value("decimal128", fetch::Type::decimal128)
      .value("dictionary", fetch::Type::dictionary);
  nb::enum_<fetch::TimeUnit>(module, "TimeUnit", "The unit of a timestamp.")
      .value("second", fetch::TimeUnit::second)
      .value("millisecond", fetch::TimeUnit::millisecond)
      .value("microsecond", fetch::TimeUnit::microsecond)
      .value("nanosecond", fetch::TimeUnit::nanosecond);
  nb::class_<fetch::DataType>(module, "ColumnType", "A type of columns with its parameters.")
      .def(
          "__init__",
          [](fetch::DataType* self, fetch::Type id, fetch::TimeUnit unit, std::uint8_t precision, std::int8_t scale,
             fetch::Type index) {
            new (self) fetch::DataType{.id = id, .unit = unit, .precision = precision, .scale = scale, .index = index};
          },
          "id"_a, "unit"_a = fetch::TimeUnit::second, "precision"_a = 0, "scale"_a = 0, "index"_a = fetch::Type::int32)
      .def_ro("id", &fetch::DataType::id)
      .def_ro("unit", &fetch::DataType::unit)
      .def_ro("precision", &fetch::DataType::precision)
      .def_ro("scale", &fetch::DataType::scale)
      .def_ro("index", &fetch::DataType::index)
      .def("__str__", [](const fetch::DataType& self) { return fetch::to_string(self); });
}

void bind_expressions(nb::module_& module) {
  nb::enum_<fetch::Operation>(module, "Operation", "An operation that a scan applies to a row.")
      .value("add", fetch::Operation::add)
      .value("subtract", fetch::Operation::subtract)
      .value("multiply", fetch::Operation::multiply)
      .value("divide", fetch::Operation::divide)
      .value("modulo", fetch::Operation::modulo)
      .value("equal", fetch::Operation::equal)
      .value("not_equal", fetch::Operation::not_equal)
      .value("less", fetch::Operation::less)
      .value("less_equal", fetch::Operation::less_equal)
      .value("greater", fetch::Operation::greater)
      .value("greater_equal", fetch::Operation::greater_equal)
      .value("logical_and", fetch::Operation::logical_and)
      .value("logical_or", fetch::Operation::logical_or)
      .value("logical_not", fetch::Operation::logical_not)
      .value("is_null", fetch::Operation::is_null)
      .value("is_in", fetch::Operation::is_in)
      .value("year", fetch::Operation::year);
  nb::enum_<fetch::Aggregate>(module, "Aggregate", "An aggregate of a group-by.")
      .value("count_rows", fetch::Aggregate::count_rows)
      .value("count", fetch::Aggregate::count)
      .value("sum", fetch::Aggregate::sum)
      .value("average", fetch::Aggregate::average)
      .value("min", fetch::Aggregate::min)
      .value("max", fetch::Aggregate::max);
  nb::class_<fetch::Expression>(module, "ScanExpression", "An expression over the columns of a table, by number.")
      .def_static("column", &fetch::Expression::column, "number"_a)
      .def_static("literal", &fetch::Expression::literal, "type"_a, "bits"_a)
      .def_static("text", &fetch::Expression::text, "value"_a)
      .def_static("missing", &fetch::Expression::missing, "type"_a)
      .def_static("call", &fetch::Expression::call, "operation"_a, "arguments"_a)
      .def_static("cast", &fetch::Expression::cast, "value"_a, "type"_a);
}

void bind_scan_results(nb::module_& module) {
  nb::class_<fetch::ResultColumn>(module, "ResultColumn", "A column of a scan's result, in Arrow's layout.")
      .def_ro("type", &fetch::ResultColumn::type)
      .def_ro("length", &fetch::ResultColumn::length)
      .def_ro("null_count", &fetch::ResultColumn::null_count)
      .def_prop_ro("values", [](const fetch::ResultColumn& self) { return to_bytes(self.values); })
      .def_prop_ro("validity",
                   [](const fetch::ResultColumn& self) -> std::optional<nb::bytes> {
                     if (self.validity.empty()) return {};
                     return to_bytes(self.validity);
                   })
      .def_prop_ro(
          "dictionary", [](const fetch::ResultColumn& self) { return self.dictionary; },
          nb::sig("def dictionary(self) -> StringDictionary | None"),
          "The strings that its indices refer to, for a column of strings of a table; otherwise None.");
}

}  // namespace

void bind_scan(nb::module_& module) {
  bind_scan_types(module);
  bind_expressions(module);
  bind_scan_results(module);
}

}  // namespace headrace::python
