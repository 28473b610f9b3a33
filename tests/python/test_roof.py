"""Occupancy and topology: the published figures, and the output of the verbs."""

import json

import pytest
from conftest import Run

import headrace
from headrace import UsageError
from headrace.device import Topology

L40 = ("roof", "--gpu", "L40", "--blocks", "32")
DOCUMENT = [(1, 31), (2, 15), (3, 10), (4, 7), (5, 6), (6, 5), (7, 4), (8, 3), (9, 3), (10, 3)]


def test_the_documents_figures():
    l40 = headrace.device.find_gpu("L40")
    assert headrace.device.resident_queries(l40.multiprocessors, 10, 32) == 44
    assert headrace.device.resident_queries(l40.multiprocessors, 7, 32) == 31
    assert headrace.device.combinations(31) == DOCUMENT


def test_occupancy_by_registers():
    found = headrace.device.occupancy(headrace.device.find_gpu("h200"), registers=48, block_threads=128)
    assert (found.blocks, found.limited_by) == (10, "registers")
    with pytest.raises(UsageError, match="a block must have 1 to 1024 threads"):
        headrace.device.occupancy(headrace.device.find_gpu("h200"), registers=48, block_threads=0)
    with pytest.raises(UsageError, match="L40S"):
        headrace.device.find_gpu("toaster")
    assert {"A100", "A10", "L4", "H100 PCIe", "B200"} <= {gpu.name for gpu in headrace.device.known_gpus()}


def test_a_cpu_device_has_no_occupancy():
    taken = headrace.device.kernel_resources("cpu", headrace.light())
    assert (taken.registers, taken.threads_max) == (0, 0)
    assert headrace.device.resident_blocks_max("cpu", headrace.light()) > 0
    with pytest.raises(UsageError, match="no multiprocessors"):
        headrace.device.gpu_limits("cpu")


def test_roof_of_a_gpu_that_is_not_here(run: Run):
    done = run(*L40, "--blocks-per-multiprocessor", "10", "--persistent-blocks-per-multiprocessor", "7")
    assert done.returncode == 0, done.stderr
    ordinary, _, persistent, pairs = done.stdout.splitlines()
    assert ordinary == "ordinary: 142 multiprocessors x 10 blocks / 32 per query = 44 resident queries"
    assert persistent.endswith("= 31 resident queries")
    assert pairs == "  threads x streams: 1x31, 2x15, 3x10, 4x7, 5x6, 6x5, 7x4, 8x3, 9x3, 10x3"


def test_roof_by_registers_as_json(run: Run):
    done = run(*L40, "--registers", "48", "--persistent-registers", "72", "--json")
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    assert content["ordinary"]["resident_queries"] == 44
    assert content["ordinary"]["limited_by"] == "registers"
    assert content["persistent"]["resident_queries"] == 31
    assert content["roofs"] is None
    assert [(pair["threads"], pair["streams_per_thread"]) for pair in content["persistent"]["combinations"]] == DOCUMENT


def test_roof_here(run: Run):
    done = run("roof", "--operator", "light", "--device", "cpu", "--json")
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    assert content["gpu"] is None
    assert content["roofs"]["compute"] > 0
    text = run("roof", "--operator", "light", "--device", "cpu").stdout
    assert "keeps no blocks resident" in text
    assert "generator" in text


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (L40, "needs --registers or --blocks-per-multiprocessor"),
        (("roof", "--gpu", "L41"), "no 'L41'"),
        ((*L40, "--registers", "48", "--blocks-per-multiprocessor", "10"), "not both"),
        (("roof", "--blocks", "0"), "--blocks"),
        (("roof", "--threads", "2000"), "--threads"),
    ],
)
def test_roof_errors(run: Run, arguments: tuple[str, ...], says: str):
    failed = run(*arguments)
    assert failed.returncode == 2
    assert says in failed.stderr
    assert failed.stdout == ""


def test_topology(run: Run):
    machine = Topology.machine()
    done = run("devices", "--topology", "--json")
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    assert [one["processor"] for one in content["order"]] == [one.os_index for one in machine.by_cache_distance()]
    assert content["reordering"] == machine.reordering()
    assert bool(content["round_trips"]) == (len(machine.processors) > 1)
    assert all(one["round_trip_ns"] > 0 for one in content["round_trips"])
    text = run("devices", "--topology").stdout
    assert "Threads are bound in this order" in text
    assert machine.reordering().capitalize() in text


def test_a_machine_that_is_another():
    split = Topology.synthetic("numa:1 l3:4 core:4 pu:2")
    assert split.last_level_cache_count == 4
    assert "4 last level caches" in split.reordering()
    assert "reordering has no effect" in Topology.synthetic("l3:1 core:4 pu:1").reordering()
    with pytest.raises(UsageError, match="bread"):
        Topology.synthetic("bread:2")
