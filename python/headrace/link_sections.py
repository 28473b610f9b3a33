"""What `headrace link` measures, section by section, as plain data."""

import copy
from collections.abc import Callable
from typing import Any

import headrace
from headrace._core import Device, LinkCurve, LinkRoute, Topology
from headrace.links import LINE, STRIDE_BYTES, Progress, Settings, check_pairs
from headrace.profiles import Json
from headrace.units import GIB, GIGA, MIB

_STRIDES = (8, 32, 128, 512, 2048)
_CURVES = {"bandwidth", "latency"}
_HOST_PATHS = ("to device", "from device", "both ways")


def cores_as_text(cores: list[int]) -> str:
    """Text such as "0-7,16-23"."""
    parts: list[list[int]] = []
    for core in sorted(cores):
        if parts and core == parts[-1][-1] + 1:
            parts[-1][1:] = [core]
        else:
            parts.append([core])
    return ",".join("-".join(map(str, part)) for part in parts)


def _near_cores(device: Device, said: list[int]) -> list[int]:
    """The cores that the management library reports, else those of the device's memory node."""
    node = device.properties.numa_node
    return said or [one.os_index for one in Topology.machine().processors if node is None or one.numa_node == node]


def device_facts(device: Device) -> Json:
    """PCIe slot, memory node and near cores of a device."""
    properties, health = device.properties, headrace.device.read_health(device)
    return {
        "device": device.name,
        "model": properties.name,
        "link_generation_max": health.link_generation_max or properties.link_generation,
        "link_width_max": health.link_width_max or properties.link_width,
        "link_generation": health.link_generation,
        "link_width": health.link_width,
        "link_bytes_per_second": headrace.measure.pcie_rate(properties.link_generation, properties.link_width),
        "nvlink_count": health.nvlink_count,
        "numa_node": properties.numa_node,
        "near_cores": cores_as_text(_near_cores(device, health.near_processors)),
        "bar1_bytes": health.bar1_bytes,
        "persistence": health.persistence,
        "note": health.absence,
    }


def _topology(settings: Settings) -> Json:
    pairs = []
    for a, b in settings.pairs:
        found = headrace.device.peer_connection(a, b)
        pairs.append(
            {
                "from": a.name,
                "to": b.name,
                "way": found.way,
                "access": found.access,
                "native_atomics": found.native_atomics,
            }
        )
    return {"devices": [device_facts(device) for device in settings.devices], "pairs": pairs}


def curve_as_dict(curve: LinkCurve) -> Json:
    """A curve as plain data; rates in GB/s of 10^9, times in us."""
    route = curve.route
    best = max(curve.points, key=lambda point: point.rate, default=None)
    return {
        "device": route.device.name,
        "peer": route.peer.name if route.peer else None,
        "path": route.path,
        "memory": route.memory,
        "means": route.means,
        "peer_access": route.peer_access,
        "gated": curve.gated,
        "note": curve.note,
        "best": best.rate / GIGA if best else None,
        "saturation_bytes": curve.saturation_bytes() or None,
        "points": [
            {
                "bytes": point.bytes,
                "rate": point.rate / GIGA,
                "least": point.least / GIGA,
                "most": point.most / GIGA,
                "alone_us": point.alone * 1e6,
                "samples": point.samples,
                "verified": point.verified,
            }
            for point in curve.points
        ],
    }


def _add_roofs(curves: list[Json], devices: list[Device]) -> None:
    """Adds each path's limit to its curves: the PCIe link's rate where known, else the best rate of the path."""
    for curve in curves:
        alike = [one for one in curves if all(one[key] == curve[key] for key in ("device", "peer", "path"))]
        best = max((one["best"] for one in alike if one["best"]), default=None)
        curve["roof"], curve["roof_is"] = best, "best of this path"
        if curve["peer"] is None and curve["path"] != "within":
            properties = next(one for one in devices if one.name == curve["device"]).properties
            link = headrace.measure.pcie_rate(properties.link_generation, properties.link_width)
            if link:
                ways = 2 if curve["path"] == "both ways" else 1
                curve["roof"] = link * ways / GIGA
                curve["roof_is"] = f"PCIe {properties.link_generation} x{properties.link_width}" + (
                    ", both ways" if ways > 1 else ""
                )


def _routes(settings: Settings) -> list[LinkRoute]:
    routes = [route for device in settings.devices for route in headrace.measure.link_routes(device)]
    for a, b in settings.pairs:
        routes += headrace.measure.link_routes(a, b)
    return routes


def _curves(settings: Settings, step: Callable[[], None], found: list[Json]) -> None:
    per_sample = 256 * MIB if settings.full else 32 * MIB
    for route in _routes(settings):
        curve = headrace.measure.link(route, settings.link_sizes, settings.samples, per_sample)
        found.append(curve_as_dict(curve))
        step()


def _routes_at_once(settings: Settings) -> dict[str, list[LinkRoute]]:
    """Routes to measure together, by name: every device with the host, one device with all others, all with all."""
    pairs = settings.pairs
    if not pairs:
        return {}
    first = settings.devices[0]
    between = {
        "one to all others": [(a, b) for a, b in pairs if a == first],
        "all others to one": [(a, b) for a, b in pairs if b == first],
        "each to every other": pairs,
    }
    made = {}
    for path in _HOST_PATHS:
        routes = [_route(path, "pinned", device) for device in settings.devices]
        made[f"all devices and the host, {path}"] = routes
    for name, ends in between.items():
        made[f"{name}, to peer"] = [_route("to peer", "device", a, b) for a, b in ends]
    return made


def _route(path: str, memory: str, device: Device, peer: Device | None = None) -> LinkRoute:
    """The route that a copy engine uses."""
    wanted = (path, memory, "engine")
    routes = headrace.measure.link_routes(device, peer)
    return next(route for route in routes if (route.path, route.memory, route.means) == wanted)


def _together(settings: Settings, step: Callable[[], None], found: list[Json]) -> None:
    size = max(settings.link_sizes)
    for name, routes in _routes_at_once(settings).items():
        curves = headrace.measure.links_at_once(routes, [size], settings.samples, 4 * size)
        made = [curve_as_dict(curve) for curve in curves]
        found.append({"name": name, "path": made[0]["path"], "bytes": size, "curves": made})
        step()


def _batched(settings: Settings, step: Callable[[], None], found: list[Json]) -> None:
    for device in settings.devices:
        send = headrace.measure.batched_send(device, samples=3 * settings.samples)
        found.append(
            {
                "device": device.name,
                "pieces": send.pieces,
                "piece_bytes": send.piece_bytes,
                "each_us": send.each * 1e6,
                "whole_us": send.whole * 1e6,
                "batch_us": send.batch * 1e6,
                "gain": send.each / send.whole,
                "batch_gain": send.each / send.batch,
                "samples": send.samples,
                "verified": send.verified,
            }
        )
        step()


def _reachable(settings: Settings, device: Device) -> list[Device]:
    return [b for a, b in settings.pairs if a == device and headrace.device.peer_connection(a, b).access]


def _far_places(settings: Settings, device: Device) -> list[tuple[str, Device | None]]:
    peers: list[tuple[str, Device | None]] = [("peer", peer) for peer in _reachable(settings, device)]
    return [("local", None), *peers, ("host", None)]


def _one_chase(device: Device, memory: str, peer: Device | None, settings: Settings, **more: Any) -> Json:  # noqa: ANN401
    result = headrace.measure.chase(device, memory, peer, samples=settings.samples, **more)
    return {
        "device": device.name,
        "memory": memory,
        "peer": peer.name if peer else None,
        "bytes": more["bytes"],
        "stride_bytes": more["stride_bytes"],
        "first_cache": more["first_cache"],
        "ns": result.nanoseconds,
        "least": result.least,
        "most": result.most,
        "cycles": result.cycles,
        "samples": settings.samples,
        "verified": result.verified,
    }


def _chase(settings: Settings, step: Callable[[], None], chases: list[Json], owners: list[Json]) -> None:
    """Chases by size at a stride of one line, and by stride at one size, and finds out whose L2 caches the data."""
    sizes = settings.chain_sizes
    middle = sizes[-1] if settings.sizes else STRIDE_BYTES
    for device in settings.devices:
        for memory, peer in _far_places(settings, device):
            shapes = [(size, LINE) for size in sizes]
            shapes += [(middle, stride) for stride in _STRIDES if stride != LINE or middle not in sizes]
            for size, stride in shapes:
                for cached in (True, False):
                    shape = {"bytes": size, "stride_bytes": stride, "first_cache": cached}
                    chases.append(_one_chase(device, memory, peer, settings, **shape))
            step()
        for peer in _reachable(settings, device):
            found = headrace.measure.owner_cache(device, peer, settings.samples)
            owners.append(
                {
                    "reader": device.name,
                    "owner": peer.name,
                    "swept_ns": found.swept,
                    "after_owner_ns": found.after_owner,
                    "after_reader_ns": found.after_reader,
                    "verified": found.verified,
                    "note": found.note,
                }
            )


def _atomics(settings: Settings, step: Callable[[], None], found: list[Json]) -> None:
    def as_dict(words: str, other: str, result: headrace.measure.AtomicsResult) -> Json:
        return {
            "words": words,
            "other": other,
            "local_per_second": result.local_per_second,
            "remote_per_second": result.remote_per_second,
            "together_per_second": result.together_per_second,
            "samples": settings.samples,
            "verified": result.verified,
            "note": result.note,
        }

    found.extend(
        as_dict("host", device.name, headrace.measure.host_atomics(device, settings.samples))
        for device in settings.devices
    )
    found.extend(
        as_dict(a.name, b.name, headrace.measure.peer_atomics(a, b, settings.samples)) for a, b in settings.pairs
    )
    step()


def _hiding(settings: Settings, step: Callable[[], None], found: list[Json]) -> None:
    for device in settings.devices:
        for memory, peer in _far_places(settings, device)[1:]:
            for work in ("loads", "arithmetic"):
                curve = headrace.measure.hiding(device, memory, peer, work, settings.samples)
                found.append(
                    {
                        "device": device.name,
                        "memory": memory,
                        "peer": peer.name if peer else None,
                        "work": work,
                        "samples": settings.samples,
                        "verified": curve.verified,
                        "points": [
                            {
                                "count": point.count,
                                "far_ns": point.far_only,
                                "work_ns": point.work_only,
                                "both_ns": point.both,
                                "hidden": point.hidden,
                            }
                            for point in curve.points
                        ],
                    }
                )
            step()


def _peer(settings: Settings, step: Callable[[], None], found: list[Json]) -> None:
    for a, b in settings.pairs:
        costs = headrace.measure.peer_costs(a, b, settings.samples)
        found.append(
            {
                "device": a.name,
                "peer": b.name,
                "note": costs.note,
                "copy_without": costs.copy_without / GIGA,
                "copy_with": costs.copy_with / GIGA,
                "enable_us": costs.enable * 1e6,
                "allocations": costs.allocations,
                "allocation_bytes": costs.allocation_bytes,
                "allocate_without_us": costs.allocate_without * 1e6,
                "allocate_with_us": costs.allocate_with * 1e6,
                "span_pages": costs.span_pages,
                "allow_us": costs.allow * 1e6,
                "span_note": costs.span_note,
            }
        )
        step()


def _counters(settings: Settings, step: Callable[[], None], found: list[Json]) -> None:
    for a, b in settings.pairs:
        check = headrace.measure.counters(a, b, (16 if settings.full else 4) * GIB)
        moved = check.moved_bytes
        found.append(
            {
                "device": a.name,
                "peer": b.name,
                "note": check.note,
                "moved_bytes": moved,
                "received_bytes": check.received_bytes,
                "sent_bytes": check.sent_bytes,
                "received_share": check.received_bytes / moved if moved else None,
                "sent_share": check.sent_bytes / moved if moved else None,
                "rate": check.rate / GIGA,
            }
        )
        step()


def _steps(settings: Settings) -> int:
    """Approximate number of progress steps."""
    devices, pairs = len(settings.devices), len(settings.pairs)
    counts = {
        "together": len(_routes_at_once(settings)),
        "batched": devices,
        "chase": 2 * devices + pairs,
        "atomics": 1,
        "hiding": devices + pairs,
        "peer": pairs,
        "counters": pairs,
    }
    steps = sum(counts.get(section, 0) for section in settings.sections)
    return steps + (len(_routes(settings)) if _CURVES & set(settings.sections) else 0)


def about_seconds(settings: Settings) -> float:
    """Estimated duration of the measurement."""
    return _steps(settings) * (8.0 if settings.full else 1.0)


def measure(settings: Settings, found: Json, progress: Progress = lambda _: None) -> None:
    """Measures the sections into `found`, by name, for complete() to finish; `curves` holds bandwidth or latency.

    Each figure is added as soon as it is known, so an interrupted measurement can still show results.

    Raises:
        UsageError: for sizes that cannot be measured, and sections that need two devices.
        DeviceError: when a device fails.
    """
    check_pairs(settings)
    total, done = max(1, _steps(settings)), 0

    def step() -> None:
        nonlocal done
        done += 1
        progress(min(1.0, done / total))

    if "topology" in settings.sections:
        found["topology"] = _topology(settings)
    if _CURVES & set(settings.sections):
        _curves(settings, step, found.setdefault("curves", []))
    parts: dict[str, Callable[[Settings, Callable[[], None], Any], None]] = {
        "together": _together,
        "batched": _batched,
        "chase": lambda settings, step, chase: _chase(settings, step, chase["chases"], chase["owners"]),
        "atomics": _atomics,
        "hiding": _hiding,
        "peer": _peer,
        "counters": _counters,
    }
    for name, part in parts.items():
        if name in settings.sections:
            found[name] = {"chases": [], "owners": []} if name == "chase" else []
            part(settings, step, found[name])


def complete(found: Json, settings: Settings) -> Json:
    """The measurements so far, with roofs added to curves and empty sections removed."""
    there = {name: part for name, part in copy.deepcopy(found).items() if part and part != {"chases": [], "owners": []}}
    _add_roofs(there.get("curves", []), settings.devices)
    return there
