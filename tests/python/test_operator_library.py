"""Operators in shared objects built with the CMake function of the installed package."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Run

import headrace
from headrace import DataError, Engine, MissingFileError, UsageError, _core, operators, serve, wire
from headrace.operators.check import check
from headrace.operators.files import find_operators, load_operator

SOURCES = Path(__file__).parent / "operator_library"
BUILD = Path(__file__).parents[2] / "build" / "python"
QUERY = np.dtype([("scale", "i1"), ("from", "<i4", (3,)), ("to", "<i4", (3,))], align=True)


def _cmake(*arguments: object) -> None:
    done = subprocess.run(["cmake", *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with libdistance.so, libbare.so, liblater.so and program."""
    if shutil.which("cmake") is None or not (BUILD / "cmake_install.cmake").is_file():
        pytest.skip("Headrace was not built in this checkout, so there is no package to install: run scripts/build.sh")
    folder = tmp_path_factory.mktemp("operator_library")
    _cmake("--install", BUILD, "--component", "development", "--prefix", folder / "installed")
    _cmake("-S", SOURCES, "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={folder / 'installed'}")
    _cmake("--build", folder / "build")
    return folder / "build"


@pytest.fixture
def distance(built: Path) -> headrace.Operator:
    return operators.load_library(built / "libdistance.so")


def asked(count: int) -> np.ndarray[Any, Any]:
    """Queries other than the operator's own samples."""
    random = np.random.default_rng(5)
    queries = np.zeros(count, QUERY)
    queries["scale"] = random.integers(1, 9, count)
    queries["from"] = random.integers(-9, 9, (count, 3))
    queries["to"] = random.integers(-9, 9, (count, 3))
    return queries


def squared(queries: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    difference = queries["to"].astype(np.int64) - queries["from"]
    return queries["scale"] * (difference**2).sum(axis=1)


def test_answers_have_the_types_of_the_fields(distance: headrace.Operator):
    queries = asked(300)
    for name in ("blocking", "dispatched", "persistent"):
        plan = next(rung.plan for rung in serve.rungs() if rung.plan.schedule == name)
        with Engine("cpu", distance, plan) as engine, engine.connect() as client:
            answers, status = client.ask_many(queries)
        assert not status.any()
        assert answers["squared"].tolist() == squared(queries).tolist()
        assert answers["far"].tolist() == (squared(queries) > 100).tolist()
    assert wire.query_dtype(distance) == QUERY
    assert operators.answer_dtype(distance).names == ("squared", "far")
    assert (distance.name, distance.query_bytes, distance.answer_bytes) == ("distance", 28, 16)


def test_what_has_no_fields_is_bytes(built: Path):
    bare = operators.load_library(str(built / "libbare.so"))
    with Engine("cpu", bare) as engine, engine.connect() as client:
        assert client.ask(np.array([5], np.uint32)).view(np.uint32)[0] == 0xFFFFFFFF - 5
    assert wire.query_dtype(bare) == np.dtype((np.uint8, (4,)))


def test_it_needs_no_symbol_of_headrace_and_exports_one(built: Path):
    tool = shutil.which("nm")
    if tool is None:
        pytest.skip("there is no nm here: install binutils")
    names = subprocess.run(
        [tool, "--dynamic", "--demangle", built / "libdistance.so"], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    assert [line.split()[-1] for line in names if " T " in line or " D " in line] == ["headrace_operator"]
    assert not [line for line in names if "headrace::" in line]


def test_a_program_with_a_copy_of_headrace_of_its_own_loads_it(built: Path, distance: headrace.Operator):
    done = subprocess.run(
        [built / "program", built / "libdistance.so"], capture_output=True, text=True, check=False, timeout=300
    )
    samples = distance.sample(100).view(QUERY).reshape(-1)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"distance {squared(samples).sum()}\n", "")
    done = subprocess.run(
        [built / "program", built / "liblater.so"], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 1
    assert "has an operator of ABI 9, built with Headrace 7.3.0 (fedcba9) by GCC 19.1.0" in done.stderr


def test_another_abi_is_named_with_both_numbers(built: Path, run: Run):
    with pytest.raises(UsageError) as caught:
        operators.load_library(built / "liblater.so")
    assert caught.value.code == headrace.errors.Errc.not_supported
    said = str(caught.value)
    assert "liblater.so has an operator of ABI 9, built with Headrace 7.3.0 (fedcba9) by GCC 19.1.0" in said
    assert f"but this Headrace ({headrace.__version__}) has ABI 4: build it again" in said
    done = run("check", built / "liblater.so")
    assert done.returncode == 2
    assert done.stderr == f"headrace: error: {said}\n"


def test_files_that_are_no_operators_are_one_line(built: Path, tmp_path: Path, run: Run):
    whole = (built / "libdistance.so").read_bytes()
    (tmp_path / "part.so").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "text.so").write_text("no shared object")
    with pytest.raises(MissingFileError):
        operators.load_library(tmp_path / "none.so")
    with pytest.raises(DataError, match="is damaged or incomplete"):
        operators.load_library(tmp_path / "part.so")
    with pytest.raises(DataError, match="does not begin with an ELF header"):
        operators.load_library(tmp_path / "text.so")
    for file in ("none.so", "part.so", "text.so"):
        for arguments in (("check",), ("serve",), ("load", "--rate", 100, "--operator")):
            done = run(*arguments, tmp_path / file)
            assert done.returncode in {1, 2}
            assert done.stderr.startswith("headrace: error: ")
            assert (done.stderr.count("\n"), file in done.stderr) == (1, True)


def test_a_damaged_header_is_an_error_or_harmless(built: Path, tmp_path: Path):
    whole = (built / "libdistance.so").read_bytes()
    for place in range(64):
        (tmp_path / f"{place}.so").write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
    program = tmp_path / "program.py"
    program.write_text(
        "import sys\nfrom headrace import errors, operators\n"
        "for place in range(64):\n"
        "    try:\n"
        "        operators.load_library(f'{sys.argv[1]}/{place}.so')\n"
        "    except errors.Error:\n"
        "        pass\n"
        "print('done')\n"
    )
    done = subprocess.run([sys.executable, program, tmp_path], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def test_check_compares_every_schedule_with_the_host(built: Path, run: Run, distance: headrace.Operator):
    done = run("check", built / "libdistance.so", "--queries", 50, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["operator"] == "distance"
    assert len(found["plans"]) > len(serve.rungs())
    assert all(one["difference"] is None for one in found["plans"])
    done = run("check", built / "libbare.so")
    assert done.returncode == 2
    assert "give its struct a static Query sample(std::uint64_t i)" in done.stderr
    assert next(iter(check(distance, "cpu", 20))).plan == "one query at a time"


def test_a_folder_has_the_operators_of_its_shared_objects(built: Path, tmp_path: Path):
    for name in ("distance", "bare"):
        shutil.copy(built / f"lib{name}.so", tmp_path)
    (tmp_path / "double.py").write_text(
        "import headrace\n\n\n@headrace.operator(query='i8', answer='i8')\n"
        "def double(group, query, answer):\n    answer[0] = 2 * query[0]\n"
    )
    assert list(find_operators(str(tmp_path))) == ["double", "bare", "distance"]
    assert list(find_operators(str(tmp_path / "libbare.so"))) == ["bare"]
    assert load_operator(str(tmp_path / "libbare.so")).name == "bare"
    shutil.copy(built / "libbare.so", tmp_path / "other.so")
    with pytest.raises(UsageError, match=r"libbare.so and .*other.so both have an operator bare"):
        find_operators(str(tmp_path))
    (tmp_path / "other.so").unlink()  # not overwritten, because this process has it loaded
    shutil.copy(built / "liblater.so", tmp_path / "later.so")
    with pytest.raises(UsageError, match=r"later.so has an operator of ABI 9"):
        find_operators(str(tmp_path))


def test_the_server_has_a_tensor_for_each_field(built: Path, tmp_path: Path):
    if not _core.built_with_wire:
        pytest.skip("built without the libraries of wire")
    from test_wire_command import command, infer  # noqa: PLC0415 # skipped where there is no server

    shutil.copy(built / "libdistance.so", tmp_path)
    with command(tmp_path) as (_, served):
        (model,) = served["models"]
        tensors = [(one["name"], one["datatype"], one["shape"]) for one in model["inputs"] + model["outputs"]]
        assert tensors == [
            ("scale", "INT8", []),
            ("from", "INT32", [3]),
            ("to", "INT32", [3]),
            ("squared", "INT64", []),
            ("far", "BOOL", []),
        ]
        given = {"scale": ("INT8", [2]), "from": ("INT32", [[1, 2, 3]]), "to": ("INT32", [[4, 6, 3]])}
        assert infer(served["url"], "distance", **given) == [[50], [False]]


def test_commands_take_it_by_its_path(built: Path, run: Run):
    done = run(
        *(
            "load",
            "--operator",
            built / "libdistance.so",
            "--rate",
            2000,
            "--duration",
            "200ms",
            "--device",
            "cpu",
            "--json",
        )
    )
    assert done.returncode == 0, done.stderr
    done = run("load", "--operator", built / "libdistance.so", "--rate", 2000, "--steps", 3)
    assert done.returncode == 2
    assert "sets its parameters in its file" in done.stderr
