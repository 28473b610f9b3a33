"""`headrace link`: sections, sizes, JSON, and refused arguments."""

import json
from pathlib import Path

import pytest
from conftest import Run

import headrace
from headrace import UsageError, link_results, link_sections, results

SMALL = ("--sizes", "1KiB,64KiB")


def test_bandwidth_as_json(run: Run, tmp_path: Path):
    kept = tmp_path / f"link.{results.machine(headrace.Device.parse('cpu'))['name']}.json"
    done = run("link", "--device", "cpu", "--section", "bandwidth,latency", *SMALL, "--json", "--save", kept)
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    assert json.loads(kept.read_text()) == content
    assert content["topic"] == "link"
    curves = content["sections"]["curves"]
    assert {curve["path"] for curve in curves} == {"to device", "from device", "both ways", "within"}
    assert {curve["memory"] for curve in curves} >= {"pageable", "registered", "pinned", "mapped", "managed", "device"}
    for curve in curves:
        assert curve["points"], curve["note"]
        assert [point["bytes"] for point in curve["points"]] == [1024, 65536]
        assert all(point["verified"] and point["alone_us"] > 0 for point in curve["points"])
        assert curve["saturation_bytes"] in (1024, 65536)
        assert 0 < curve["best"] <= curve["roof"]
    rows = {row["id"]: row for row in content["rows"]}
    row = rows["link.to_device.pinned.engine"]
    assert row["unit"] == "GB/s"
    assert row["spread"][0] <= row["value"] <= row["spread"][1]
    assert row["conditions"]["verified"] is True
    assert "link.pinned" not in rows  # that figure comes from a CopyBatch


def test_nvbandwidth_names(run: Run):
    done = run("link", "--device", "cpu:0", "--device", "cpu:1", "--section", "bandwidth", *SMALL, "--json")
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)["nvbandwidth"]
    cases = {case["name"]: case for case in content["testcases"]}
    host = cases["host_to_device_memcpy_ce"]
    assert host["status"] == "Passed"
    assert len(host["bandwidth_matrix"]) == 1
    assert len(host["bandwidth_matrix"][0]) == 2
    assert host["sum"] == pytest.approx(sum(map(float, host["bandwidth_matrix"][0])), rel=1e-4)
    peers = cases["device_to_device_memcpy_read_ce"]["bandwidth_matrix"]
    assert [[cell == "N/A" for cell in row] for row in peers] == [[True, False], [False, True]]
    assert cases["host_to_device_memcpy_sm"]["status"] == "Passed"
    assert content["bufferSize"] == 65536 / (1 << 20)


def test_links_together(run: Run):
    three = [part for i in range(3) for part in ("--device", f"cpu:{i}")]
    done = run("link", *three, "--section", "together", "--sizes", "64KiB", "--json")
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    rows = {row["id"]: row for row in content["rows"]}
    links = {
        "all_devices_and_the_host_to_device": 3,
        "all_devices_and_the_host_from_device": 3,
        "all_devices_and_the_host_both_ways": 3,
        "one_to_all_others_to_peer": 2,
        "all_others_to_one_to_peer": 2,
        "each_to_every_other_to_peer": 6,
    }
    assert {name: rows[f"link.together.{name}"]["conditions"]["links"] for name in links} == links
    for row in rows.values():
        about = row["conditions"]
        assert about["verified"]
        assert 0 < about["slowest"] <= about["quickest"] < row["value"]
        assert row["spread"][0] <= row["value"] <= row["spread"][1]
    cases = {case["name"]: case for case in content["nvbandwidth"]["testcases"]}
    both = cases["host_to_all_bidirectional_memcpy_ce"]
    whole = rows["link.together.all_devices_and_the_host_both_ways"]["value"]
    assert both["sum"] == pytest.approx(whole / 2)
    assert len(both["bandwidth_matrix"][0]) == 3
    assert len(cases["one_to_all_write_ce"]["bandwidth_matrix"][0]) == 1
    assert run("link", "--device", "cpu", "--section", "together").returncode == 2


def test_every_section_is_shown(run: Run):
    done = run(
        "link",
        "--device",
        "cpu:0",
        "--device",
        "cpu:1",
        *SMALL,
        "--section",
        "topology,bandwidth,latency,together,batched",
    )
    assert done.returncode == 0, done.stderr
    for text in (
        "same memory",
        "Bandwidth, GB/s",
        "sat.",
        "One transfer alone, us",
        "512 x 1K",
        "each to every other, to peer",
        "row reads from column",
    ):
        assert text in done.stdout, text
    assert "NOT VERIFIED" not in done.stdout


def test_the_experiments_are_shown(run: Run):
    pair = ("--device", "cpu:0", "--device", "cpu:1")
    done = run("link", *pair, "--section", "chase,atomics,hiding,counters", "--sizes", "16KiB,64KiB")
    assert done.returncode == 0, done.stderr
    for text in ("Pointer chase", "past L1", "after the owner", "exact", "steps of arithmetic", "hidden"):
        assert text in done.stdout, text
    assert "not available: a CPU device has no management library" in done.stdout
    assert "NOT EXACT" not in done.stdout


def test_latencies_under_nvbandwidths_names():
    def chase(device: str, memory: str, peer: str | None, count: int, ns: float) -> dict[str, object]:
        return {
            "device": device,
            "memory": memory,
            "peer": peer,
            "bytes": count,
            "stride_bytes": 128,
            "first_cache": False,
            "ns": ns,
            "verified": True,
        }

    chases = [chase("cpu:0", "host", None, 4096, 1.0), chase("cpu:0", "host", None, 65536, 2.0)]
    chases += [chase("cpu:1", "host", None, 4096, 3.0), chase("cpu:0", "peer", "cpu:1", 4096, 4.0)]
    devices = [headrace.Device.parse("cpu:0"), headrace.Device.parse("cpu:1")]
    made = link_results.nvbandwidth({"chase": {"chases": chases, "owners": []}}, devices)
    cases = {case["name"]: case for case in made["testcases"]}
    assert cases["host_device_latency_sm"]["bandwidth_matrix"] == [["2", "3"]]
    assert cases["device_to_device_latency_sm"]["bandwidth_matrix"] == [["N/A", "4"], ["N/A", "N/A"]]
    assert cases["device_local_copy"]["status"] == "Waived"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--section", "bandwith"), "no section 'bandwith'"),
        (("--section", ""), "no section ''"),
        (("--sizes", "0"), "above 0"),
        (("--sizes", "1000"), "multiples of 16"),
        (("--sizes", "much"), "'much' is not a size"),
        (("--device", "cuda:99"), "no device 'cuda:99'"),
        (("--device", "cpu", "--section", "peer"), "needs two devices"),
        (("--device", "cpu", "--section", "counters"), "there is only cpu:0"),
        (("--save", "nowhere.json"), "results of this machine go to"),
    ],
)
def test_what_cannot_be_measured_is_refused(run: Run, arguments: tuple[str, ...], says: str):
    failed = run("link", *arguments)
    assert failed.returncode == 2
    assert says in failed.stderr
    assert failed.stdout == ""


def test_one_route_from_python():
    routes = {(route.path, route.memory, route.means): route for route in headrace.measure.link_routes("cpu")}
    route = routes["to device", "mapped", "kernel"]
    curve = headrace.measure.link(route, [1024, 4096], samples=1)
    assert [point.bytes for point in curve.points] == [1024, 4096]
    assert all(point.verified for point in curve.points)
    with pytest.raises(UsageError, match="ascend"):
        headrace.measure.link(route, [4096, 1024])
    with pytest.raises(UsageError, match="local, peer, host"):
        headrace.measure.chase("cpu", "elsewhere")
    with pytest.raises(UsageError, match="loads or arithmetic"):
        headrace.measure.hiding("cpu", work="idling")


def test_cores_as_text():
    assert link_sections.cores_as_text([]) == ""
    assert link_sections.cores_as_text([3]) == "3"
    assert link_sections.cores_as_text([0, 1, 2, 5, 8, 7]) == "0-2,5,7-8"


def test_a_wrong_byte_fails_nvbandwidths_case():
    point = {"bytes": 64, "rate": 1.0, "least": 1.0, "most": 1.0, "alone_us": 1.0, "samples": 1, "verified": False}
    curve = {
        "device": "cpu:0",
        "peer": None,
        "path": "to device",
        "memory": "pinned",
        "means": "engine",
        "peer_access": True,
        "points": [point],
    }
    cases = link_results.nvbandwidth({"curves": [curve]}, [headrace.Device.parse("cpu:0")])["testcases"]
    states = {case["name"]: case["status"] for case in cases}
    assert states["host_to_device_memcpy_ce"] == "Error"
    assert states["device_to_host_memcpy_ce"] == "Waived"
