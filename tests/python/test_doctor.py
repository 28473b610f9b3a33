"""`headrace doctor`: its rules on made-up machines, and the verb on this machine."""

import json
from dataclasses import replace

import pytest
from conftest import Run

from headrace import Device, doctor
from headrace.cli.doctor import lines
from headrace.doctor import DeviceFacts, MachineFacts, PairFacts

GIB = 1 << 30

# A healthy H100.
GPU = DeviceFacts(
    name="cuda:0",
    model="NVIDIA H100",
    pinned_rate=55e9,
    pageable_rate=45e9,
    link_rate=63e9,
    link_generation_max=5,
    device_generation_max=5,
    link_width=16,
    link_width_max=16,
    numa_node=0,
    memory_bytes=80 * GIB,
    bar1_bytes=128 * GIB,
    persistence=True,
)
HEALTHY = MachineFacts(
    devices=(GPU, replace(GPU, name="cuda:1")),
    pairs=(PairFacts("cuda:0", "cuda:1", "NVLink", True), PairFacts("cuda:1", "cuda:0", "NVLink", True)),
    process_nodes=frozenset({0, 1}),
    locked_limit=None,
)


def with_gpu(**changes: object) -> MachineFacts:
    return replace(HEALTHY, devices=(replace(GPU, **changes),))  # type: ignore[arg-type]


def test_a_healthy_machine_has_nothing_wrong():
    assert doctor.examine(HEALTHY) == []
    said = lines(HEALTHY, [])
    assert said[-1] == "Nothing is wrong."
    assert "55 of 63 GB/s" in said[0]


@pytest.mark.parametrize(
    ("facts", "rule", "says"),
    [
        (with_gpu(pageable_rate=8.6e9), "slow_pageable", "8.6 GB/s"),
        (with_gpu(pinned_rate=26e9, pageable_rate=20e9), "slow_link", "26 GB/s of 63 GB/s"),
        (with_gpu(link_width=8), "narrow_link", "x8, but x16"),
        (with_gpu(link_generation_max=4), "old_link", "PCIe 5, but the slot provides 4"),
        (with_gpu(numa_node=3), "far_node", "node 3, but this process runs on 0, 1"),
        (with_gpu(bar1_bytes=256 << 20), "small_bar", "256 MiB of 81,920"),
        (with_gpu(persistence=False), "no_persistence", "-i 0 -pm 1"),
        (with_gpu(virtual_memory_management=False), "no_vmm", "no spans"),
        (with_gpu(verified=False), "not_verified", "arrived corrupted"),
        (replace(HEALTHY, locked_limit=8 << 20), "low_locked_limit", "8,192 KiB"),
    ],
)
def test_each_rule_sees_what_is_its_own(facts: MachineFacts, rule: str, says: str):
    (finding,) = doctor.examine(facts)
    assert finding.rule == rule
    assert says in finding.line


@pytest.mark.parametrize(
    "facts",
    [
        with_gpu(pageable_rate=0.51 * 55e9),
        with_gpu(pinned_rate=0.71 * 63e9, pageable_rate=40e9),
        with_gpu(bar1_bytes=80 * GIB),
        replace(HEALTHY, locked_limit=64 << 20),
        replace(HEALTHY, process_nodes=frozenset()),
        MachineFacts(devices=(DeviceFacts(name="cuda:0"),)),
    ],
)
def test_what_is_within_bounds_or_unknown_is_not_wrong(facts: MachineFacts):
    assert doctor.examine(facts) == []


def test_a_pair_without_access_is_told_once():
    pairs = (PairFacts("cuda:0", "cuda:1", "other node", False), PairFacts("cuda:1", "cuda:0", "other node", False))
    (finding,) = doctor.examine(replace(HEALTHY, pairs=pairs))
    assert finding.rule == "no_peer_access"
    assert finding.subject == "cuda:0 and cuda:1"
    assert "other node" in finding.line


@pytest.mark.parametrize(
    ("absence", "remedy"),
    [
        ("built without CUDA (HEADRACE_CUDA=ON builds it)", "build again with HEADRACE_CUDA=ON"),
        ("excluded by HEADRACE_DEVICES=cpu", "Unset HEADRACE_DEVICES"),
        ("no driver (libcuda.so.1 is not installed, or cannot be loaded)", "driver"),
        ("", "CPU device"),
    ],
)
def test_no_gpu_and_why(absence: str, remedy: str):
    facts = MachineFacts(gpu_absence=absence)
    assert doctor.examine(facts) == []
    assert remedy in doctor.no_gpu(facts)
    assert absence in doctor.no_gpu(facts)
    assert lines(facts, [])[-1] == "Nothing is wrong."


def test_ten_lines_at_most_and_the_worst_first():
    sick = replace(GPU, link_width=8, pageable_rate=1e9, numa_node=7, persistence=False, bar1_bytes=1)
    facts = replace(HEALTHY, devices=tuple(replace(sick, name=f"cuda:{i}") for i in range(8)), pairs=())
    findings = doctor.examine(facts)
    said = lines(facts, findings)
    assert len(findings) == 40
    assert len(said) == 10
    assert "x8" in said[0]
    assert said[-1].startswith("and 31 more")


def test_the_verb_on_this_machine(run: Run):
    done = run("doctor", "--json")
    content = json.loads(done.stdout)
    assert done.returncode == (0 if content["healthy"] else 1), done.stderr
    assert content["healthy"] == (content["findings"] == [])
    if Device.cuda_absence():
        assert "no GPU" in content["no_gpu"]
        text = run("doctor")
        assert text.returncode == done.returncode
        assert "no GPU" in text.stdout
        assert len(text.stdout.splitlines()) <= 10


def test_left_out_gpus_are_told(run: Run):
    done = run("doctor", HEADRACE_DEVICES="cpu")
    assert done.returncode == (0 if "Nothing is wrong" in done.stdout else 1)
    assert "no GPU" in done.stdout
