"""The model of Ito 2024: its own table, fits to measured iterations, and the verb that prints both."""

import json
import math

import pytest
from conftest import Run

import headrace
from headrace import UsageError, ingest_model
from headrace.ingest_model import Model

# "The correspondence between GPU frequency and theoretical throughput [Gbps]", for 1, 2 and 32 payloads a copy.
DOCUMENT_TABLE = {
    1000: [34, 69, 1111],
    1400: [48, 97, 1555],
    1800: [62, 125, 2000],
    2200: [76, 152, 2444],
    2600: [90, 180, 2888],
    3000: [104, 208, 3333],
}


def test_the_document_constants_give_the_document_table():
    table = ingest_model.throughput_table(
        ingest_model.document_model(), ingest_model.DOCUMENT_CLOCKS_MHZ, ingest_model.DOCUMENT_MERGES
    )
    assert {row["clock_mhz"]: row["gbps"] for row in table} == DOCUMENT_TABLE


@pytest.mark.parametrize(("clock", "merge", "says"), [(1410, 1, 49), (1005, 1, 35), (210, 32, 233)])
def test_the_document_results_name_the_same_limits(clock: int, merge: int, says: int):
    limit = ingest_model.document_model(clock, merge).limit()
    assert round(limit / ingest_model.DOCUMENT_GIGABIT) == says


def test_the_equation_and_its_inverse_agree():
    for merge in (1, 2, 32):
        for offset in ingest_model.DOCUMENT_OFFSETS:
            model = ingest_model.document_model(1950, merge, offset)
            for share in (0.01, 0.5, 0.99):
                target = share * model.limit()
                packets = model.packets_for(target)
                assert packets is not None
                assert model.rate(packets) == pytest.approx(target)
            assert model.packets_for(model.limit()) is None
            assert model.rate(1e12) == pytest.approx(model.limit(), rel=1e-4)


def test_a_fit_finds_the_costs_that_made_the_times():
    model = Model(cycles=1800, offset=200_000, clock_mhz=1410, payload_bytes=8000)
    packets = [32, 128, 512, 2048]
    found = ingest_model.fit(packets, [model.seconds(n) for n in packets], 1410, 8000)
    assert found.model.cycles == pytest.approx(1800)
    assert found.model.offset == pytest.approx(200_000)
    assert found.error_worst == pytest.approx(0, abs=1e-9)
    wrong = [model.seconds(n) * factor for n, factor in zip(packets, (1.1, 0.9, 1.1, 0.9), strict=True)]
    assert 0.05 < ingest_model.fit(packets, wrong, 1410, 8000).error_worst < 0.2


def test_costs_are_not_fitted_below_nothing():
    flat = ingest_model.fit([1, 2], [2e-6, 1e-6], 1000, 64)
    assert flat.model.cycles == 0
    assert flat.model.limit() == math.inf
    steep = ingest_model.fit([1, 2], [1e-6, 3e-6], 1000, 64)
    assert steep.model.offset == 0
    with pytest.raises(UsageError, match="two different numbers of packets"):
        ingest_model.fit([5, 5], [1e-6, 1e-6], 1000, 64)


def test_every_known_gpu_has_its_rates():
    assert {gpu.name for gpu in headrace.device.known_gpus()} == ingest_model.GPU_RATES.keys()
    rows = {row["gpu"]: row for row in ingest_model.which_gpus(100e9, 1800, 8000, (1, 2, 32))}
    assert rows["RTX A6000"]["enough"] == ["copies-2", "copies-32", "gather"]
    assert rows["H100 SXM"]["enough"] == ["copies-2", "copies-32", "gather"]
    assert rows["RTX 4090"]["peer_dma"] is False
    # More than the link's rate is out of reach, whatever the memory does.
    assert ingest_model.which_gpus(1e12, 1800, 8000, (32,))[0]["enough"] == []


def test_the_device_here_is_fitted():
    found = ingest_model.fit_device(headrace.Device.parse("cpu"), "gather", 1460, 1000, packets=(64, 256, 1024), runs=5)
    assert found.packets == (64, 256, 1024)
    assert all(seconds > 0 for seconds in found.seconds)
    assert found.model.clock_mhz == 1000
    assert 0 <= found.error_median <= found.error_worst


def test_the_verb_prints_the_document_table(run: Run):
    done = run("ingest", "model", COLUMNS="200")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    for clock, row in DOCUMENT_TABLE.items():
        assert any(line.split() == [f"{clock:,}", *(f"{cell:,}" for cell in row)] for line in lines), clock
    assert "RTX A6000" in done.stdout
    assert "out of reach" in done.stdout  # 100 Gb/s at 1000 MHz, one payload per copy


def test_the_verb_answers_in_json(run: Run):
    done = run("ingest", "model", "--measure", "--device", "cpu", "--payload", "1460B", "--target", "1T", "--json")
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    assert content["target_bits_per_second"] == 1e12
    assert content["model"]["payload_bytes"] == 1460
    assert len(content["fit"]["seconds"]) == len(content["fit"]["packets"]) == len(content["fit"]["model_seconds"])
    assert content["fit"]["error_worst"] >= content["fit"]["error_median"] >= 0
    given = run("ingest", "model", "--cycles", "0", "--offset", "0", "--merge", "1", "--json")
    assert json.loads(given.stdout)["table"][0]["gbps"] == [None]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--target", "fast"), "not a rate in bits/s"),
        (("--merge", "1,x"), "--merge takes whole numbers"),
        (("--clocks", "0"), "--clocks takes whole numbers"),
        (("--payload", "0"), "at least 1 byte"),
        (("--measure", "--cycles", "5"), "either it or them"),
        (("--measure", "--device", "cpu", "--way", "magic"), "'magic' is not a way"),
        (("--measure", "--device", "cpu", "--way", "cub"), "does not support copy way 'cub'"),
    ],
)
def test_wrong_use_is_refused(run: Run, arguments: tuple[str, ...], says: str):
    done = run("ingest", "model", *arguments)
    assert done.returncode == 2, done.stdout
    assert says in done.stderr
