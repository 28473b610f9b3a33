"""Converts measured links into rows of a results file, and into nvbandwidth's JSON for comparison."""

from dataclasses import dataclass

from headrace._core import Device
from headrace._core import version as _version
from headrace.profiles import Json


def _ident(text: str) -> str:
    return text.replace(" ", "_").replace(":", "")


def _curve_id(curve: Json, devices: int) -> str:
    parts = ["link", _ident(curve["path"]), curve["memory"], curve["means"]]
    if devices > 1:
        parts.append(_ident(curve["device"]) + (f"-{_ident(curve['peer'])}" if curve["peer"] else ""))
    return ".".join(parts)


def _point_row(identity: str, curve: Json, point: Json) -> Json:
    return {
        "id": identity,
        "value": point["rate"],
        "unit": "GB/s",
        "roof": curve["roof"],
        "roof_is": curve["roof_is"],
        "spread": [point["least"], point["most"]],
        "samples": point["samples"],
        "conditions": {
            "bytes": point["bytes"],
            "alone_us": point["alone_us"],
            "saturation_bytes": curve["saturation_bytes"],
            "gated": curve["gated"],
            "verified": point["verified"],
        },
    }


def _plain_row(identity: str, value: float, unit: str, samples: int, conditions: Json) -> Json:
    return {
        "id": identity,
        "value": value,
        "unit": unit,
        "spread": [value, value],
        "samples": samples,
        "conditions": conditions,
    }


def _curve_rows(curves: list[Json]) -> list[Json]:
    devices = len({curve["device"] for curve in curves})
    rows = []
    for curve in curves:
        if not curve["points"]:
            continue
        best = max(curve["points"], key=lambda point: point["rate"])
        rows.append(_point_row(_curve_id(curve, devices), curve, best))
    return rows


def _together_rows(cases: list[Json]) -> list[Json]:
    """Total rate of the links of each case."""
    made = []
    for case in cases:
        points = [point for curve in case["curves"] for point in curve["points"]]
        if not points:
            continue
        rates = [point["rate"] for point in points]
        about = {
            "bytes": case["bytes"],
            "links": len(points),
            "slowest": min(rates),
            "quickest": max(rates),
            "gated": all(curve["gated"] for curve in case["curves"]),
            "verified": all(point["verified"] for point in points),
        }
        identity = "link.together." + _ident(case["name"].replace(",", ""))
        spread = [sum(point[end] for point in points) for end in ("least", "most")]
        made.append(_plain_row(identity, sum(rates), "GB/s", points[0]["samples"], about) | {"spread": spread})
    return made


def _chase_rows(chase: Json) -> list[Json]:
    """The largest chain of each place, with L1 bypassed."""
    rows = []
    places = {(one["device"], one["memory"], one["peer"]) for one in chase["chases"]}
    for device, memory, peer in sorted(places, key=str):
        alike = [
            one
            for one in chase["chases"]
            if (one["device"], one["memory"], one["peer"]) == (device, memory, peer) and not one["first_cache"]
        ]
        largest = max(alike, key=lambda one: (one["bytes"], one["stride_bytes"]))
        identity = ".".join(["link.chase", memory, _ident(device), *([_ident(peer)] if peer else [])])
        rows.append(
            {
                "id": identity,
                "value": largest["ns"],
                "unit": "ns",
                "spread": [largest["least"], largest["most"]],
                "samples": largest["samples"],
                "conditions": {
                    "bytes": largest["bytes"],
                    "stride_bytes": largest["stride_bytes"],
                    "cycles": largest["cycles"],
                    "verified": largest["verified"],
                },
            }
        )
    return rows


def _other_rows(found: Json) -> list[Json]:
    rows = []
    for send in found.get("batched", []):
        about = {key: send[key] for key in ("pieces", "piece_bytes", "each_us", "whole_us", "batch_us", "verified")}
        rows.append(
            _plain_row(f"link.batched.gain.{_ident(send['device'])}", send["gain"], "ratio", send["samples"], about)
        )
    for one in found.get("atomics", []):
        if one["note"]:
            continue
        about = {key: one[key] for key in ("local_per_second", "remote_per_second", "verified")}
        identity = f"link.atomics.{_ident(one['words'])}-{_ident(one['other'])}"
        rows.append(_plain_row(identity, one["together_per_second"], "additions/s", one["samples"], about))
    for one in found.get("counters", []):
        if one["note"]:
            continue
        about = {"moved_bytes": one["moved_bytes"], "rate": one["rate"], "verified": True}
        identity = f"link.counters.{_ident(one['device'])}-{_ident(one['peer'])}"
        rows.append(_plain_row(identity, one["received_share"], "of bytes moved", 1, about))
    return rows


def rows(found: Json) -> list[Json]:
    """The rows `link.*`: the best rate of each route, and the figures of the other sections."""
    made = _curve_rows(found.get("curves", []))
    made += _chase_rows(found["chase"]) if "chase" in found else []
    made += _together_rows(found.get("together", []))
    return made + _other_rows(found)


@dataclass(frozen=True)
class _Case:
    """A test case of nvbandwidth, and the matching route of Headrace."""

    name: str
    path: str
    memory: str
    means: str
    text: str
    between: bool = False
    directions: int = 1


_CASES = tuple(
    _Case(name.format(short), path, memory, means, text.format(short.upper()), between, directions)
    for means, short, memory in (("engine", "ce", "pinned"), ("kernel", "sm", "mapped"))
    for name, path, text, directions in (
        ("host_to_device_memcpy_{}", "to device", "memcpy {} CPU(row) -> GPU(column) bandwidth (GB/s)", 1),
        ("device_to_host_memcpy_{}", "from device", "memcpy {} CPU(row) <- GPU(column) bandwidth (GB/s)", 1),
        (
            "host_to_device_bidirectional_memcpy_{}",
            "both ways",
            "memcpy {} CPU(row) <-> GPU(column), each way (GB/s)",
            2,
        ),
    )
    for between in (False,)
) + tuple(
    _Case(name.format(short), path, "device", means, text.format(short.upper()), between=True)
    for means, short in (("engine", "ce"), ("kernel", "sm"))
    for name, path, text in (
        ("device_to_device_memcpy_read_{}", "from peer", "memcpy {} GPU(row) <- GPU(column) bandwidth (GB/s)"),
        ("device_to_device_memcpy_write_{}", "to peer", "memcpy {} GPU(row) -> GPU(column) bandwidth (GB/s)"),
    )
)
# nvbandwidth's copy-engine cases over several GPUs at once, and Headrace's names for them.
_TOGETHER = (
    ("host_to_all_memcpy_ce", "all devices and the host, to device", 1),
    ("all_to_host_memcpy_ce", "all devices and the host, from device", 1),
    ("host_to_all_bidirectional_memcpy_ce", "all devices and the host, both ways", 2),
    ("one_to_all_write_ce", "one to all others, to peer", 1),
    ("all_to_one_write_ce", "all others to one, to peer", 1),
)
_LOCAL = _Case("device_local_copy", "within", "device", "engine", "memcpy local GPU(column) bandwidth (GB/s)")


def _last(curves: list[Json], case: _Case, device: str, peer: str | None) -> Json | None:
    for curve in curves:
        key = (curve["path"], curve["memory"], curve["means"], curve["device"], curve["peer"], curve["peer_access"])
        if key == (case.path, case.memory, case.means, device, peer, True) and curve["points"]:
            point: Json = curve["points"][-1]
            return point
    return None


def _testcase(curves: list[Json], case: _Case, devices: list[str]) -> Json:
    lines = devices if case.between else [None]
    matrix: list[list[str]] = []
    values, verified = [], True
    for line in lines:
        cells = []
        for column in devices:
            at = (line, column) if case.between else (column, None)
            point = None if at[0] == at[1] else _last(curves, case, str(at[0]), at[1])
            if point is not None:
                values.append(point["rate"] / case.directions)
                verified = verified and point["verified"]
            cells.append("N/A" if point is None else f"{point['rate'] / case.directions:.6g}")
        matrix.append(cells)
    if not values:
        return {"name": case.name, "status": "Waived"}
    return {
        "name": case.name,
        "status": "Passed" if verified else "Error",
        "bandwidth_description": case.text,
        "bandwidth_matrix": matrix,
        "sum": sum(values),
        "min": min(values),
        "max": max(values),
        "average": sum(values) / len(values),
    }


def _of_several(found: list[Json], name: str, ours: str, directions: int) -> Json:
    """A case over several GPUs at once: per-GPU figures with the host, as in nvbandwidth, and a total between GPUs."""
    curves = [curve for case in found if case["name"] == ours for curve in case["curves"]]
    points = [point for curve in curves for point in curve["points"]]
    if not points:
        return {"name": name, "status": "Waived"}
    values = [point["rate"] / directions for point in points]
    if curves[0]["peer"] is not None:
        values = [sum(values)]
    return {
        "name": name,
        "status": "Passed" if all(point["verified"] for point in points) else "Error",
        "bandwidth_description": f"{ours}, each way (GB/s)" if directions > 1 else f"{ours} (GB/s)",
        "bandwidth_matrix": [[f"{value:.6g}" for value in values]],
        "sum": sum(values),
        "min": min(values),
        "max": max(values),
        "average": sum(values) / len(values),
    }


def _latency(chase: Json, name: str, memory: str, devices: list[str]) -> Json:
    """The largest chain of each place, with L1 bypassed, under nvbandwidth's name of the latency case."""
    lines = devices if memory == "peer" else [None]
    largest: dict[tuple[str, str | None], Json] = {}
    for one in chase["chases"]:
        at = (one["device"], one["peer"])
        if one["memory"] == memory and not one["first_cache"] and one["bytes"] >= largest.get(at, one)["bytes"]:
            largest[at] = one
    if not largest:
        return {"name": name, "status": "Waived"}
    matrix = []
    for line in lines:
        at_line = [largest.get((line, column) if line else (column, None)) for column in devices]
        matrix.append([f"{one['ns']:.6g}" if one else "N/A" for one in at_line])
    values = [one["ns"] for one in largest.values()]
    return {
        "name": name,
        "status": "Passed" if all(one["verified"] for one in largest.values()) else "Error",
        "bandwidth_description": f"memory latency SM {'GPU' if memory == 'peer' else 'CPU'}(row) <-> GPU(column) (ns)",
        "bandwidth_matrix": matrix,
        "sum": sum(values),
        "min": min(values),
        "max": max(values),
        "average": sum(values) / len(values),
    }


_LATENCIES = (("host_device_latency_sm", "host"), ("device_to_device_latency_sm", "peer"))


def nvbandwidth(found: Json, devices: list[Device]) -> Json:
    """The curves' largest sizes under nvbandwidth's names; bidirectional cases report one direction, as here."""
    curves = found.get("curves", [])
    names = [device.name for device in devices]
    sizes = [point["bytes"] for curve in curves for point in curve["points"]]
    return {
        "version": f"headrace {_version}",
        "CUDA Runtime Version": devices[0].properties.runtime,
        "Driver Version": devices[0].properties.driver,
        "bufferSize": max(sizes, default=0) / (1 << 20),
        "testSamples": max((point["samples"] for curve in curves for point in curve["points"]), default=0),
        "useMean": False,
        "testcases": [
            *(_testcase(curves, case, names) for case in (*_CASES, _LOCAL)),
            *(_of_several(found["together"], *case) for case in _TOGETHER if "together" in found),
            *(_latency(found["chase"], name, memory, names) for name, memory in _LATENCIES if "chase" in found),
        ],
    }
