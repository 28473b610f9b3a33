#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include "grid/fdtd/fdtd_dispersive.hpp"
#include "grid/fdtd/fdtd_names.hpp"
#include "grid/fdtd/fdtd_state.hpp"
#include "headrace/grid/stencils/fdtd2d.hpp"

namespace headrace::grid {

void Fdtd::State::set_dispersive(const FdtdMaterials& materials) {
  const FdtdDispersiveMedia media = dispersive_media(materials, options, time_step);
  grade_layers(materials);
  if (stencil_of(options) != FdtdStencil::plane_tm) {
    set_media(media.electric, magnetic_media(materials, options, time_step));
  } else {
    FdtdMaterialFields fields = material_fields(materials, options, time_step);
    fields.ca.clear();
    fields.cb.clear();
    for (const std::uint32_t number : media.electric.numbers) {
      fields.ca.push_back(media.electric.table[number].ca[2]);
      fields.cb.push_back(media.electric.table[number].cb[2]);
    }
    set_coefficients(fields);
    set_numbers(fdtd2d::e_medium(options.cpml.cells > 0), media.electric.numbers);
  }
  set_poles(media);
}

void Fdtd::State::set_poles(const FdtdDispersiveMedia& media) {
  std::visit(
      [&]<class Value>(Parts<Value>& parts) {
        std::vector<FdtdPoleTables> tables;  // uploaded to every part before any part frees its old ones
        for (FdtdPart<Value>& part : parts) tables.push_back(part.upload_poles(media.dispersive, media.poles));
        for (std::size_t part = 0; part < parts.size(); ++part) parts[part].set_poles(std::move(tables[part]));
      },
      parts_);
  restrict_poles(dispersive_boxes(media, options.extent));
}

}  // namespace headrace::grid
