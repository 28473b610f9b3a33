"""The names of the package: few in the root, each of the extension's names in one module, and all documented."""

import doctest
import importlib
import inspect
import pickle
import subprocess
import sys
from types import ModuleType

import pytest

import headrace
from headrace import _core

ROOT_MOST = 30

# Modules whose names are for users, in the order of the reference. Each name of the root is defined in one of them.
MODULES = [
    "base",
    "device",
    "each",
    "errors",
    "fetch",
    "grid",
    "grid.gprmax",
    "grid.scenes",
    "grid.solver",
    "ingest",
    "measure",
    "operators",
    "serve",
    "span",
    "wire",
]

# Names of the extension that only the package itself uses: every other name must be in a module.
INTERNAL = {
    *("Aggregate", "ColumnType", "Operation", "ResultColumn", "ScanExpression", "TimeUnit", "TypeId"),  # fetch.bind
    *("ChunkArray", "Fetch", "FetchSource", "FetchTable", "FetchedChunk", "MappedFile", "ParquetFooter"),  # fetch.files
    *("ParquetStatistics", "StringDictionary", "stream_formats"),
    *("FdtdCore", "FdtdMedium", "FdtdOptions", "JacobiCore", "pole_values_needed"),  # grid.Fdtd and grid.Jacobi
    *(
        "follow_capture",
        "receive_capture",
        "receive_packets",
        "receive_synthetic",
        "receive_tcp",
        "receive_udp",
    ),  # ingest.tcp()
    *("MachineActivity", "MachineWatch", "OutputFile"),  # the commands
    "answer_into",  # serve.answer_into(), which takes arrays
    "function_kernels",  # what operators in Python are linked with
    "function_operator",  # operators.operator()
    "http_chunks",  # ingest.HttpUploads
    *("InputTensor", "ModelInput", "ServerEndpoint", "ServerLoad", "describe_model", "load_server"),  # load --url
    *("PriorityLoad", "PriorityLoads"),  # what load_server() says
    *("RingDescription", "describe_ring", "load_rings"),  # the same through shared memory
    *("lookup_operator", "lookup_operator_of_span", "mlp_operator", "topk_operator"),  # operators.mlp() and others
    "version",  # headrace.__version__
}


def module(name: str) -> ModuleType:
    return importlib.import_module(f"headrace.{name}")


def public(names: object) -> set[str]:
    return {name for name in dir(names) if not name.startswith("_")}


def test_the_root_has_few_names_and_says_which():
    assert len(headrace.__all__) <= ROOT_MOST
    assert len(set(headrace.__all__)) == len(headrace.__all__)
    assert [getattr(headrace, name) for name in headrace.__all__]  # each exists, including those imported late
    there = {
        name
        for name, value in vars(headrace).items()
        if not name.startswith("_")
        and not isinstance(value, ModuleType)
        and name not in {"TYPE_CHECKING", "import_module"}
    }
    assert there <= set(headrace.__all__)
    with pytest.raises(AttributeError, match="no attribute 'measure_link'"):
        _ = headrace.measure_link


def test_dir_lists_what_is_for_users():
    assert set(dir(headrace)) == {*headrace.__all__, *(name for name in MODULES if "." not in name)}


@pytest.mark.parametrize("name", MODULES)
def test_a_module_has_what_it_says_and_nothing_else(name: str):
    of = module(name)
    assert of.__doc__
    assert len(set(of.__all__)) == len(of.__all__)
    for one in of.__all__:
        value = getattr(of, one)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert value.__doc__, f"{name}.{one} says nothing of itself"
        elif type(value).__module__ == "nanobind":  # a function, whose docstring begins with its signatures
            assert value.__doc__.count("\n") > 0, f"{name}.{one} says nothing of itself"


def test_every_name_of_the_extension_has_one_home():
    homes: dict[str, list[str]] = {name: [] for name in public(_core)}
    for name in MODULES:
        of = module(name)
        for one in of.__all__:
            if one in homes and getattr(of, one) is getattr(_core, one):
                homes[one].append(name)
    assert {one: where for one, where in homes.items() if len(where) != 1 and one not in INTERNAL} == {}
    assert {one: where for one, where in homes.items() if where and one in INTERNAL} == {}
    assert homes.keys() >= INTERNAL or not (_core.built_with_fetch and _core.built_with_wire)


def test_every_name_of_the_root_has_one_home():
    for one in set(headrace.__all__) - {"__version__"}:
        homes = [name for name in MODULES if getattr(module(name), one, None) is getattr(headrace, one)]
        assert len([name for name in homes if one in module(name).__all__]) == 1, f"{one} is in {homes}"


@pytest.mark.parametrize("name", ["", *MODULES])
def test_examples_of_modules_are_right(name: str):
    of = module(name) if name else headrace
    found = doctest.testmod(of, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert found.failed == 0
    assert found.attempted > 0 or name in {"each", "grid", "grid.gprmax", "grid.solver"}


@pytest.mark.parametrize("name", [name for name in MODULES if "." not in name])
def test_importing_the_root_is_enough_to_use_a_module(name: str):
    code = f"import headrace; print(headrace.{name}.__name__, len(headrace.{name}.__all__) > 0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == (f"headrace.{name} True\n", "")


def test_importing_the_root_imports_nothing_slow():
    slow = ["headrace.fetch", "headrace.grid", "headrace.ingest", "pandas", "pyarrow", "rich", "typer"]
    code = f"import sys, headrace; print([name for name in {slow} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_classes_can_still_be_pickled_and_say_what_they_are():
    for value in (headrace.Device.parse("cpu:1"), headrace.Plan(), headrace.UsageError("no")):
        assert type(pickle.loads(pickle.dumps(value))) is type(value)
    for name in ("serve", "span", "measure", "device", "operators"):
        for one in module(name).__all__:
            kind = getattr(module(name), one)
            if inspect.isclass(kind) and kind.__module__ == "headrace._core":
                assert kind.__repr__ is not object.__repr__, f"{one} has no text"


def test_pickles_of_earlier_versions_can_be_read():
    assert pickle.loads(b"cheadrace.pickling\ndevice_of\n(Vcpu:1\ntR.").name == "cpu:1"
    assert pickle.loads(b"cheadrace.pickling\nplan_of\n(V{}\ntR.") == headrace.Plan()
    error = pickle.loads(b"cheadrace.errors\nUsageError\n(Vno\ntR.")
    assert type(error) is headrace.UsageError
