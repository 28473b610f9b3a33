#include "fetch/query/prune.hpp"

#include <algorithm>
#include <optional>

#include "fetch/host_chunk.hpp"
#include "fetch/program/calendar.hpp"
#include "fetch/query/typing.hpp"
#include "headrace/base/error.hpp"

namespace headrace::fetch {

namespace {

/// Values that an expression may have for some row. The set may be too large, never too small.
struct Outcomes {
  bool yes = true;
  bool no = true;
  bool missing = true;
};

/// How a chunk's least and greatest values compare with a literal: -1 below, 0 equal, 1 above.
struct Beside {
  int least;
  int greatest;
};

int sign(bool below, bool above) noexcept { return below ? -1 : above ? 1 : 0; }

/// Converts a value exactly to units of the common type; empty if the common type cannot hold it in 64 bits.
std::optional<__int128> units_of(std::int64_t bits, const DataType& type, const DataType& common) {
  const __int128 value = kind_of(type) == Kind::natural ? static_cast<__int128>(static_cast<std::uint64_t>(bits))
                                                        : static_cast<__int128>(bits);
  if (common.id == Type::timestamp) {
    const std::int64_t per_day = units_per_day(common.unit);
    return value * (type.id == Type::date32 ? per_day : per_day / units_per_day(type.unit));
  }
  const int scale = common.id == Type::decimal128 ? common.scale : 0;
  const int own = type.id == Type::decimal128 ? type.scale : 0;
  if (scale - own < 0 || scale - own > 18) return {};
  return value * power_of_ten(scale - own);
}

std::optional<Beside> beside(const ChunkBounds& bounds, const DataType& type, const Expression& literal) {
  if (literal.operation() == Operation::text) {
    if (!bounds.strings || type.id != Type::dictionary) return {};
    const auto& [least, greatest] = *bounds.strings;
    return Beside{sign(least<literal.string(), least> literal.string()),
                  sign(greatest<literal.string(), greatest> literal.string())};
  }
  if (!bounds.range || type.id == Type::dictionary) return {};
  const DataType common = common_type(Operation::less, type, literal.type());
  if (common.id == Type::float64) {
    if (!is_float(type.id)) return {};  // rounding could change the result
    const auto folded = is_float(literal.type().id) ? std::optional(literal) : fold(literal, common);
    if (!folded) return {};
    const std::int64_t value = canonical(folded->bits(), Kind::real);
    const auto compare = [&](std::int64_t end) {
      return sign(less_than(end, value, Kind::real), less_than(value, end, Kind::real));
    };
    return Beside{compare(canonical(bounds.range->least, Kind::real)),
                  compare(canonical(bounds.range->greatest, Kind::real))};
  }
  const auto value = units_of(literal.bits(), literal.type(), common);
  const auto least = units_of(bounds.range->least, type, common);
  const auto greatest = units_of(bounds.range->greatest, type, common);
  if (!value || !least || !greatest) return {};
  return Beside{sign(*least<*value, *least> * value), sign(*greatest<*value, *greatest> * value)};
}

bool is_literal(const Expression& one) noexcept {
  return one.operation() == Operation::literal || one.operation() == Operation::text;
}

class Pruner {
 public:
  Pruner(const Source& source, std::uint32_t fragment)
      : source_(source), fragment_(fragment), rows_(source.fragments()[fragment].rows) {}

  [[nodiscard]] Outcomes of(const Expression& one) const {
    const auto& arguments = one.arguments();
    switch (one.operation()) {
      case Operation::literal:
        if (one.is_missing()) return {.yes = false, .no = false};
        if (one.type().id != Type::boolean) return {};
        return {.yes = one.bits() != 0, .no = one.bits() == 0, .missing = false};
      case Operation::column: return compared(Operation::equal, one, Expression::literal({.id = Type::boolean}, 1));
      case Operation::logical_not: {
        const Outcomes inner = of(arguments[0]);
        return {.yes = inner.no, .no = inner.yes, .missing = inner.missing};
      }
      case Operation::logical_and: return both(of(arguments[0]), of(arguments[1]));
      case Operation::logical_or: {
        const auto inverted = [](const Outcomes& o) { return Outcomes{o.no, o.yes, o.missing}; };
        return inverted(both(inverted(of(arguments[0])), inverted(of(arguments[1]))));
      }
      case Operation::is_null: return is_null(arguments[0]);
      case Operation::is_in: return is_in(arguments);
      case Operation::equal:
      case Operation::not_equal:
      case Operation::less:
      case Operation::less_equal:
      case Operation::greater:
      case Operation::greater_equal:
        if (is_literal(arguments[1])) return compared(one.operation(), arguments[0], arguments[1]);
        if (is_literal(arguments[0])) return compared(mirrored(one.operation()), arguments[1], arguments[0]);
        return {};
      default: return {};
    }
  }

 private:
  static Outcomes both(const Outcomes& a, const Outcomes& b) noexcept {
    return {.yes = a.yes && b.yes,
            .no = a.no || b.no,
            .missing = (a.missing && (b.yes || b.missing)) || (b.missing && (a.yes || a.missing))};
  }

  [[nodiscard]] const ChunkBounds* bounds(const Expression& column) const {
    return column.operation() == Operation::column
               ? source_.bounds({.fragment = fragment_, .column = column.column_number()})
               : nullptr;
  }

  [[nodiscard]] Outcomes compared(Operation comparison, const Expression& value, const Expression& literal) const {
    if (literal.is_missing()) return {.yes = false, .no = false};
    const ChunkBounds* const known = bounds(value);
    if (known == nullptr) return {};
    Outcomes may{.missing = known->nulls != 0};
    if (known->nulls == rows_) return {.yes = false, .no = false};
    const auto at = beside(*known, level_type(source_.columns()[value.column_number()].type), literal);
    if (!at) return may;
    switch (comparison) {
      case Operation::less:
        may.yes = at->least < 0;
        may.no = at->greatest >= 0;
        break;
      case Operation::less_equal:
        may.yes = at->least <= 0;
        may.no = at->greatest > 0;
        break;
      case Operation::greater:
        may.yes = at->greatest > 0;
        may.no = at->least <= 0;
        break;
      case Operation::greater_equal:
        may.yes = at->greatest >= 0;
        may.no = at->least < 0;
        break;
      default: {
        const bool same = at->least <= 0 && at->greatest >= 0;
        const bool other = at->least != 0 || at->greatest != 0;
        may.yes = comparison == Operation::equal ? same : other;
        may.no = comparison == Operation::equal ? other : same;
      }
    }
    return may;
  }

  [[nodiscard]] Outcomes is_null(const Expression& value) const {
    const ChunkBounds* const known = bounds(value);
    if (known == nullptr || known->nulls < 0) return {.missing = false};
    return {.yes = known->nulls > 0, .no = known->nulls < rows_, .missing = false};
  }

  [[nodiscard]] Outcomes is_in(const std::vector<Expression>& arguments) const {
    Outcomes may{.yes = false, .missing = false};
    for (std::size_t i = 1; i < arguments.size(); ++i) {
      const Outcomes same = compared(Operation::equal, arguments[0], arguments[i]);
      may.yes = may.yes || same.yes;
      may.missing = may.missing || same.missing;
    }
    return may;
  }

  const Source& source_;
  std::uint32_t fragment_;
  std::int64_t rows_;
};

}  // namespace

bool may_pass(const Expression& filter, const Source& source, std::uint32_t fragment) {
  try {
    return Pruner(source, fragment).of(filter).yes;
  } catch (const UsageError&) {  // the compiler reports what is wrong with the filter
    return true;
  }
}

}  // namespace headrace::fetch
