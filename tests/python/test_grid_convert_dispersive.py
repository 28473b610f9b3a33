"""Input files of gprMax with dispersive materials, soils, water and transmission lines."""

import math
from pathlib import Path

import pytest

from headrace.grid import Debye, Drude, Lorentz
from headrace.grid.gprmax import InputFileError, convert
from headrace.grid.solver.scene import Scene

PATH = Path("soil.in")
BASE = """\
#domain: 0.02 0.02 0.02
#dx_dy_dz: 0.001 0.001 0.001
#time_window: 40
#pml_cells: 0
#waveform: gaussiandot 1 6e9 pulse
#hertzian_dipole: z 0.01 0.01 0.01 pulse
#rx: 0.015 0.015 0.015
#material: 3 0.01 1 0 clay
"""


def scene_of(text: str) -> Scene:
    return convert(BASE + text, PATH).scene


def test_poles_are_in_hertz_and_per_second() -> None:
    made = scene_of(
        "#add_dispersion_lorentz: 2 1.5 20e9 2e9 1 10e9 1e9 clay\n#material: 4 0 1 0 metal\n"
        "#add_dispersion_drude: 1 5e9 4e9 metal\n#material: 5 0 1 0 wet\n#add_dispersion_debye: 2 3 1e-11 2 4e-11 wet\n"
    ).materials
    assert made["clay"].poles == (Lorentz(1.5, 20e9, 2e9), Lorentz(1.0, 10e9, 1e9))
    assert made["metal"].poles == (Drude(5e9, 4e9),)
    assert made["wet"].poles == (Debye(3.0, 1e-11), Debye(2.0, 4e-11))
    assert (made["clay"].permittivity, made["clay"].conductivity) == (3.0, 0.01)


def test_edges_of_dispersive_objects_are_not_averaged() -> None:
    made = scene_of(
        "#add_dispersion_debye: 1 2 1e-11 clay\n#box: 0 0 0 0.01 0.01 0.01 clay\n#material: 6 0 1 0 dry\n"
        "#box: 0 0 0.01 0.01 0.01 0.02 dry\n"
    )
    assert [one.averaging for one in made.objects] == [False, True]


def test_a_second_command_replaces_the_poles() -> None:
    text = "#add_dispersion_debye: 1 2 1e-11 clay\n#add_dispersion_drude: 1 5e9 4e9 clay\n"
    made = convert(BASE + text, PATH)
    assert made.scene.materials["clay"].poles == (Drude(5e9, 4e9),)
    assert any(
        ":10: #add_dispersion_drude: replaces the poles that line 9 gives to 'clay'" in one for one in made.notes
    )


def test_soils_are_the_materials_that_gprmax_makes_of_them() -> None:
    """Numbers that gprMax 4.0.1 wrote to its file of materials (#geometry_objects_write)."""
    made = scene_of(
        "#soil_peplinski: 0.5 0.5 2.0 2.66 0.001 0.25 soil\n"
        "#fractal_box: 0 0 0 0.02 0.02 0.02 1.5 1 1 1 5 soil box 42\n"
    )
    soils = [one for name, one in made.materials.items() if name.startswith("soil")]
    known = [
        (4.656180247100963, 0.34501697957333644, 0.027613181992563445),
        (6.364545578138564, 1.6638188544104189, 0.04556023047778181),
        (7.824324730120115, 3.4926551768466174, 0.057688299244079484),
        (9.156687320851152, 5.702372356210752, 0.06742941735781675),
        (10.40751647312868, 8.229036479372613, 0.07577906510641186),
    ]
    for one, (permittivity, difference, conductivity) in zip(soils, known, strict=True):
        (pole,) = one.poles
        assert isinstance(pole, Debye)
        found = (one.permittivity, pole.difference, one.conductivity, pole.relaxation_time)
        assert found == pytest.approx((permittivity, difference, conductivity, 8.099395053946554e-12), rel=1e-12)
    assert not any(one.averaging for one in made.objects)


def test_water_is_pure_water_unless_the_file_has_some() -> None:
    rough = (
        "#fractal_box: 0 0 0 0.02 0.02 0.01 1.5 1 1 1 1 clay box 42\n"
        "#add_surface_roughness: 0 0 0.01 0.02 0.02 0.01 1.5 1 1 0.008 0.013 box 1\n"
        "#add_surface_water: 0 0 0.01 0.02 0.02 0.01 0.012 box\n"
    )
    made = scene_of(rough)
    (pole,) = made.materials["water"].poles
    assert pole == pytest.approx(Debye(73.33890625, 8.099395053946554e-12)) or (
        isinstance(pole, Debye) and math.isclose(pole.difference, 73.33890625)
    )
    assert {one.material: one.averaging for one in made.objects} == {"clay": True, "water": False}
    assert not scene_of("#material: 80 0.1 1 0 water\n" + rough).materials["water"].poles


def test_a_transmission_line_is_a_line_with_its_times() -> None:
    (_, line) = scene_of("#transmission_line: x 0.01 0.01 0.012 50 pulse 1e-10 1e-9\n").sources
    assert (line.field, line.resistance, line.line, line.wave.amplitude) == ("ex", 50.0, True, 1.0)
    assert (line.wave.delay, line.wave.stop) == (1e-10, 1e-9)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("#soil_peplinski: 1.5 0.5 2.0 2.66 0.001 0.25 soil\n", "a sand fraction of 1.5"),
        ("#soil_peplinski: 0.5 0.5 3.0 2.66 0.001 0.25 soil\n", "a bulk density of 3"),
        ("#soil_peplinski: 0.5 0.5 2.0 2.66 0 0.25 soil\n", "water fractions 0 and 0.25"),
        ("#soil_peplinski: 0.5 0.5 2.0 2.66 0.25 soil\n", "has 6 parameters, not 7"),
        ("#add_dispersion_debye: 1 2 1e-14 clay\n#box: 0 0 0 0.01 0.01 0.01 clay\n", ":9: .*'clay': a pole has a rel"),
        ("#add_dispersion_lorentz: 1 -2 9e9 1e9 clay\n#box: 0 0 0 0.01 0.01 0.01 clay\n", "'clay': its poles generate"),
        ("#add_dispersion_drude: 1 0 1e9 clay\n", "'clay': a frequency of 0 is not above 0"),
    ],
)
def test_what_cannot_be_is_one_line_that_names_the_line(text: str, says: str) -> None:
    with pytest.raises(InputFileError, match=says) as caught:
        convert(BASE + text, PATH)
    assert "\n" not in str(caught.value)
