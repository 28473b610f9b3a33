"""The benchmarks of ingest for latency, and for a connection compared with the kernel's receiver: small, on the CPU."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from network_namespace import isolated

import headrace

BENCH = Path(__file__).parents[2] / "bench"
LATENCY = ("--device", "cpu", "--count", "30", "--frame", "64KiB", "--ring", "1MiB", "--samples", "2", "--rate", "0.5")
END_TO_END = ("--device", "cpu", "--bytes", "9MiB", "--frame", "2MiB", "--runs", "2", "--mtu", "1500")


def bench(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCH / program), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def test_the_best_setting_is_measured_again():
    done = bench("ingest_latency.py", *LATENCY, "--ring-access", "direct,slots", "--prompt", "0,1", "--json")
    assert done.returncode == 0, done.stderr
    rows = {row["id"]: row for row in json.loads(done.stdout)["rows"]}
    names = [f"{access}.prompt{count}.flush1024" for access in ("direct", "slots") for count in (0, 1)]
    assert list(rows) == [*(f"ingest.latency.{name}" for name in names), "ingest.latency.p99"]
    for row in rows.values():
        about = row["conditions"]
        assert row["unit"] == "us"
        assert row["samples"] == 2
        assert about["verified"] is True
        assert about["gbit_per_second"] == 0.5
        assert 0 < about["p50_us"] <= about["p999_us"] <= 1.01 * about["max_us"] + 0.1
        assert row["roof_is"] == "one packet alone"
    best = rows["ingest.latency.p99"]["conditions"]
    assert f"{best['ring_access']}.prompt{best['prompt_count']}.flush1024" in names


def test_control_by_the_device_is_one_more_setting():
    done = bench("ingest_latency.py", *LATENCY, "--control", "host,resident", "--prompt", "1", "--json")
    assert done.returncode == 0, done.stderr
    rows = {row["id"]: row for row in json.loads(done.stdout)["rows"]}
    assert list(rows) == ["ingest.latency.automatic.prompt1.flush1024", "ingest.latency.resident", "ingest.latency.p99"]
    about = rows["ingest.latency.resident"]["conditions"]
    assert about["control"] == "resident"
    assert about["verified"] is True
    assert "prompt_count" not in about


def test_one_setting_is_one_row_at_half_of_what_is_reached():
    done = bench("ingest_latency.py", *LATENCY[:-2], "--prompt", "1", "--json")
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)["rows"]
    assert row["id"] == "ingest.latency.p99"
    about = row["conditions"]
    assert about["gbit_per_second"] == pytest.approx(about["reached_gbit_per_second"] / 2, abs=0.1)
    assert about["frames_of_a_sample"] == 30


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (("--flush", "1MiB,3x"), 2, "'3x' is not a size"),
        (("--control", "device"), 2, "'device' is not a control"),
        (("--control", "resident", "--frame", "2KiB", "--payload", "1000"), 1, "frames of at least 4096 bytes"),
        (("--ring-access", "post"), 2, "'post' is not a way to read the ring"),
        (("--count", "0"), 2, "--count must be 1 or more"),
        (("--prompt", "-1"), 2, "--prompt must be 0 or more"),
        (("--prompt", "4"), 1, "prompt_count of a builder with 4 lists must be at most 3, not 4"),
        (("--way", "cub"), 1, "no figure could be measured"),
    ],
)
def test_wrong_use_of_latency_is_told(arguments: tuple[str, ...], status: int, says: str):
    done = bench("ingest_latency.py", "--device", "cpu", *arguments)
    assert done.returncode == status
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_latencies_are_of_every_frame():
    found = headrace.measure.frame_latency(
        "cpu", frame_bytes=8000, frame_count=2, ring_bytes=1 << 16, bytes_per_second=1e8, frames=40, samples=2
    )
    assert [sample.latency.count for sample in found.samples] == [40, 40]
    assert found.verified
    assert found.supported
    with pytest.raises(headrace.UsageError, match="longer than frames"):
        headrace.measure.frame_latency("cpu", frame_bytes=7999)


@isolated
def test_both_receivers_take_the_same_bytes():
    done = bench("ingest_end_to_end.py", *END_TO_END, "--only", "ingest.tcp.vs_kernel", "--chunk", "300KiB", "--json")
    if "CAP_NET_ADMIN" in done.stderr or "/dev/net/tun" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)["rows"]
    assert (row["id"], row["unit"], row["samples"]) == ("ingest.tcp.vs_kernel", "ratio", 2)
    about = row["conditions"]
    assert about["verified"] is True
    assert about["kernel_chunk_kib"] == 300
    assert about["ours_gbit_per_second"] > 0
    assert about["kernel_gbit_per_second"] > 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--chunks", "1"), "--chunks 2 or more"),
        (("--bytes", "lots"), "'lots' is not a size"),
        (("--mtu", "big"), "and --mtu a list of numbers"),
    ],
)
def test_wrong_use_of_end_to_end_is_told(arguments: tuple[str, ...], says: str):
    done = bench("ingest_end_to_end.py", *arguments)
    assert done.returncode == 2
    assert says in done.stderr


@isolated
def test_processor_time_beside_a_plain_receiver():
    arguments = ("--bytes", "48MiB", "--frame", "4MiB", "--runs", "2", "--json")
    done = bench("ingest_cpu.py", *arguments)
    if "permission denied" in done.stderr or "CAP_" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)["rows"]
    assert row["id"] == "ingest.tcp.cpu_ratio"
    assert row["unit"] == "ratio"
    assert row["samples"] == 2
    about = row["conditions"]
    assert about["verified"] is True
    for which in ("ours", "plain"):
        parts = about[f"{which}_user_seconds_per_gb"] + about[f"{which}_system_seconds_per_gb"]
        assert 0 < about[f"{which}_cpu_seconds_per_gb"] <= 2 * parts
        assert about[f"{which}_gbit_per_second"] > 0
    assert 0 < row["spread"][0] <= row["value"] <= row["spread"][1]
