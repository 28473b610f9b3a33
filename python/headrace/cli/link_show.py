"""Shows measured links as tables."""

from collections.abc import Callable, Iterable

from rich import box
from rich.console import Console
from rich.table import Table

from headrace import links
from headrace.profiles import Json
from headrace.units import GIB, KIB, MIB

NONE = "-"
_ROOM = 100
_SIZES_MOST = 10


def size(count: int | None) -> str:
    """Text such as "64K" or "1M": transfer sizes are powers of two."""
    if not count:
        return NONE
    for unit, scale in (("G", GIB), ("M", MIB), ("K", KIB)):
        if count >= scale and count % scale == 0:
            return f"{count // scale}{unit}"
    return str(count)


def gigabytes(value: float | None) -> str:
    """A rate in GB/s with three digits."""
    return NONE if value is None else f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"  # noqa: PLR2004


def table(headings: Iterable[str], left: int = 1) -> Table:
    """An empty table whose first `left` columns are text."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True, header_style="bold", padding=(0, 1))
    for number, heading in enumerate(headings):
        made.add_column(heading, justify="left" if number < left else "right", no_wrap=True)
    return made


def _say(console: Console, sentence: str, style: str | None = None) -> None:
    """Prints a line that a terminal may wrap and a file keeps in one piece."""
    console.print(sentence, style=style, markup=False, soft_wrap=True)


def _route(curve: Json) -> str:
    access = "" if curve["peer_access"] else ", no access"
    return f"{curve['path']}, {curve['memory']}, {curve['means']}{access}"


def _sizes(curves: list[Json]) -> list[int]:
    """The sizes to show: all if there are few, else a selection with the smallest and the largest."""
    sizes = sorted({point["bytes"] for curve in curves for point in curve["points"]})
    stride = -(-len(sizes) // _SIZES_MOST)
    return sorted({*sizes[::-1][::stride], *sizes[:1]})


def _ends(curves: list[Json]) -> list[tuple[str, str | None]]:
    return list(dict.fromkeys((curve["device"], curve["peer"]) for curve in curves))


def _title(device: str, peer: str | None) -> str:
    return f"{device} and the host, and within {device}" if peer is None else f"{device} and {peer}"


def _curve_tables(
    console: Console,
    curves: list[Json],
    what: str,
    extra: dict[str, Callable[[Json], str]],
    cell: Callable[[Json], str],
) -> None:
    for device, peer in _ends(curves):
        group = [curve for curve in curves if (curve["device"], curve["peer"]) == (device, peer) and curve["points"]]
        console.print(f"{what}: {_title(device, peer)}", style="bold")
        if not group:
            console.print("nothing could be measured")
            continue
        sizes = _sizes(group)
        made = table(["", *map(size, sizes), *extra])
        for curve in group:
            by_size = {point["bytes"]: point for point in curve["points"]}
            cells = [cell(by_size[one]) if one in by_size else NONE for one in sizes]
            made.add_row(_route(curve), *cells, *(show(curve) for show in extra.values()))
        console.print(made)


def _saturation(curve: Json) -> str:
    return size(curve["saturation_bytes"])


def _of_roof(curve: Json) -> str:
    return f"{curve['best'] / curve['roof']:.0%}" if curve["roof"] else NONE


def show_bandwidth(console: Console, curves: list[Json]) -> None:
    """GB/s by size, with saturation and share of the roof, then the reasons why some routes have no figures."""
    extra: dict[str, Callable[[Json], str]] = {
        "sat.": lambda curve: size(curve["saturation_bytes"]),
        "of roof": _of_roof,
    }
    _curve_tables(console, curves, "Bandwidth, GB/s", extra, lambda point: gigabytes(point["rate"]))
    for roof_is, roof in dict.fromkeys((curve["roof_is"], curve["roof"]) for curve in curves if curve["roof"]):
        if roof_is.startswith("PCIe"):
            _say(console, f"Roof: {roof_is}, {gigabytes(roof)} GB/s; elsewhere the best of the path.")
    _say(console, "sat.: the smallest size that reaches 90% of the best rate (two RTX 2080 by NVLink: 512K and 128K).")
    show_matrices(console, curves)
    show_notes(console, curves)


def show_matrices(console: Console, curves: list[Json]) -> None:
    """Rates between all devices at the largest size."""
    names = list(dict.fromkeys(curve["device"] for curve in curves))
    for means, path, arrow in (
        ("engine", "from peer", "reads from column"),
        ("kernel", "from peer", "reads from column"),
        ("engine", "to peer", "writes to column"),
        ("kernel", "to peer", "writes to column"),
    ):
        cells = {
            (curve["device"], curve["peer"]): curve["points"][-1]
            for curve in curves
            if (curve["path"], curve["means"], curve["memory"]) == (path, means, "device") and curve["points"]
        }
        if not cells:
            continue
        bytes_moved = next(iter(cells.values()))["bytes"]
        console.print(f"{means}, row {arrow}, GB/s at {size(bytes_moved)}:", style="bold")
        made = table(["", *names])
        for row in names:
            found = [cells.get((row, column)) for column in names]
            made.add_row(row, *(gigabytes(point["rate"]) if point else NONE for point in found))
        console.print(made)


def show_notes(console: Console, curves: list[Json]) -> None:
    """Lists routes without figures and the reasons, ungated ones, and first those that were not verified."""
    reasons: dict[str, list[str]] = {}
    for curve in curves:
        if curve["note"]:
            reasons.setdefault(curve["note"], []).append(f"{curve['device']} {_route(curve)}")
    for reason, routes in reasons.items():
        shown = "; ".join(routes[:2]) + (f" and {len(routes) - 2} more" if len(routes) > 2 else "")  # noqa: PLR2004
        _say(console, f"{shown}: {reason}")
    if any(curve["points"] and not curve["gated"] for curve in curves):
        _say(console, "Pageable and managed copies block the caller, so the host's clock times them.")
    for curve in curves:
        if not all(point["verified"] for point in curve["points"]):
            _say(console, f"NOT VERIFIED: {curve['device']} {_route(curve)}", style="bold red")


def show_latency(console: Console, curves: list[Json]) -> None:
    """Microseconds of a single transfer, by size."""
    _curve_tables(console, curves, "One transfer alone, us", {}, lambda point: f"{point['alone_us']:.3g}")


def show_topology(console: Console, topology: Json) -> None:
    """How devices are attached and connected."""
    console.print("Topology", style="bold")
    made = table(("device", "link", "NVLinks", "node", "near cores"), left=2)
    for one in topology["devices"]:
        generation, width = one["link_generation_max"], one["link_width_max"]
        link = NONE if generation is None or width is None else f"PCIe {generation} x{width}"
        node = NONE if one["numa_node"] is None else str(one["numa_node"])
        made.add_row(one["device"], link, str(one["nvlink_count"]), node, one["near_cores"])
    console.print(made)
    if topology["pairs"]:
        made = table(("from", "to", "way", "access", "atomics"), left=5)
        for one in topology["pairs"]:
            said = ["yes" if one[key] else "no" for key in ("access", "native_atomics")]
            made.add_row(one["from"], one["to"], one["way"], *said)
        console.print(made)


def show_together(console: Console, cases: list[Json]) -> None:
    """Rates while all links are busy: the total, the slowest and the fastest link."""
    console.print("Links together, GB/s", style="bold")
    made = table(["", "size", "links", "all", "slowest", "quickest"])
    for case in cases:
        rates = [curve["best"] for curve in case["curves"]]
        if None in rates:
            made.add_row(case["name"], size(case["bytes"]), str(len(rates)), NONE, NONE, NONE)
            continue
        shown = [gigabytes(rate) for rate in (sum(rates), min(rates), max(rates))]
        made.add_row(case["name"], size(case["bytes"]), str(len(rates)), *shown)
    console.print(made)
    show_notes(console, [curve for case in cases for curve in case["curves"]])


def show_batched(console: Console, sends: list[Json]) -> None:
    """The batched-send experiment."""
    for one in sends:
        whole = size(one["pieces"] * one["piece_bytes"])
        _say(
            console,
            f"{one['device']}: {one['pieces']} x {size(one['piece_bytes'])} sent one by one {one['each_us']:,.1f} us, "
            f"1 x {whole} {one['whole_us']:,.1f} us: {one['gain']:.1f} times (two RTX 2080: 130); "
            f"the pieces through a CopyBatch {one['batch_us']:,.1f} us: {one['batch_gain']:.1f} times",
        )


def _place(one: Json) -> str:
    return f"{one['device']}: {one['memory']}" + (f" {one['peer']}" if one["peer"] else "")


def _cell_of_chase(one: Json) -> str:
    return f"{one['ns']:.3g}" + (f" ({one['cycles']:.0f})" if one["cycles"] else "")


def _chase_table(console: Console, chases: list[Json], key: str, title: str) -> None:
    if not chases:
        return
    console.print(title, style="bold")
    columns = sorted({one[key] for one in chases})
    made = table(["", *map(size, columns)])
    for place, cached in dict.fromkeys((_place(one), one["first_cache"]) for one in chases):
        by_column = {one[key]: one for one in chases if (_place(one), one["first_cache"]) == (place, cached)}
        cells = [_cell_of_chase(by_column[column]) if column in by_column else NONE for column in columns]
        made.add_row(f"{place}, {'L1 too' if cached else 'past L1'}", *cells)
    console.print(made)


def show_chase(console: Console, chase: Json) -> None:
    """Pointer chases by size and by stride, and whose L2 caches the data."""
    chases = chase["chases"]
    lines = [one for one in chases if one["stride_bytes"] == links.LINE]
    _chase_table(console, lines, "bytes", "Pointer chase, ns per step (cycles), 128 bytes apart, by size")
    middle = next((one["bytes"] for one in chases if one["stride_bytes"] != links.LINE), None)
    strides = [one for one in chases if one["bytes"] == middle]
    _chase_table(console, strides, "stride_bytes", f"The same in {size(middle)}, by stride")
    for one in chase["owners"]:
        _say(
            console,
            f"{one['reader']} reads from {one['owner']}: {one['swept_ns']:.0f} ns per step, after the owner has read "
            f"it {one['after_owner_ns']:.0f}, after the reader has {one['after_reader_ns']:.0f}",
        )


def show_atomics(console: Console, atomics: list[Json]) -> None:
    """Remote atomic operations."""
    made = table(("words on", "other", "owner M/s", "other M/s", "both M/s", ""), left=2)
    for one in atomics:
        if one["note"]:
            made.add_row(one["words"], one["other"], NONE, NONE, NONE, one["note"])
            continue
        rates = [f"{one[key] / 1e6:,.0f}" for key in ("local_per_second", "remote_per_second", "together_per_second")]
        made.add_row(one["words"], one["other"], *rates, "exact" if one["verified"] else "NOT EXACT")
    console.print("Additions to the same words", style="bold")
    console.print(made)


def show_hiding(console: Console, curves: list[Json]) -> None:
    """How much work hides behind a remote load."""
    for one in curves:
        unit = "local loads" if one["work"] == "loads" else "steps of arithmetic"
        console.print(f"Between a load and its use, {_place(one)}; ns per round", style="bold")
        made = table([unit, *(str(point["count"]) for point in one["points"])])
        for name, key in (("the work alone", "work_ns"), ("with the far load", "both_ns")):
            made.add_row(name, *(f"{point[key]:.3g}" for point in one["points"]))
        made.add_row("hidden", *(f"{point['hidden']:.0%}" if point["count"] else NONE for point in one["points"]))
        console.print(made)


def show_peer(console: Console, peers: list[Json]) -> None:
    """Costs of access to a peer."""
    for one in peers:
        who = f"{one['device']} from {one['peer']}"
        if one["note"]:
            _say(console, f"{who}: {one['note']}")
            continue
        rights = one["span_note"] or f"rights to {one['span_pages']} pages of a span {one['allow_us']:,.0f} us"
        parts = (
            f"copies {gigabytes(one['copy_without'])} GB/s without access, {gigabytes(one['copy_with'])} with",
            f"enabling takes {one['enable_us']:,.0f} us",
            f"{one['allocations']} allocations of {size(one['allocation_bytes'])} {one['allocate_without_us']:,.0f} us "
            f"without, {one['allocate_with_us']:,.0f} with (two RTX 2080: 0.1 s and 0.23 s)",
            rights,
        )
        _say(console, f"{who}: {'; '.join(parts)}")


def show_counters(console: Console, counters: list[Json]) -> None:
    """NVLink's counters compared with known byte counts."""
    for one in counters:
        who = f"{one['device']} from {one['peer']}"
        if one["note"]:
            _say(console, f"{who}: NVLink counters not available: {one['note']}")
            continue
        _say(
            console,
            f"{who}: {one['moved_bytes'] / GIB:.0f} GiB moved at {gigabytes(one['rate'])} GB/s; counted "
            f"{one['received_share']:.1%} received, {one['sent_share']:.1%} sent",
        )


def show(console: Console, found: Json, sections: tuple[str, ...]) -> None:
    """Shows every measured section."""
    if not console.is_terminal:
        console.width = max(console.width, 2 * _ROOM)
    parts: dict[str, tuple[str, Callable[[Console, Json], None]]] = {
        "topology": ("topology", show_topology),
        "bandwidth": ("curves", show_bandwidth),  # type: ignore[dict-item]
        "latency": ("curves", show_latency),  # type: ignore[dict-item]
        "together": ("together", show_together),  # type: ignore[dict-item]
        "batched": ("batched", show_batched),  # type: ignore[dict-item]
        "chase": ("chase", show_chase),
        "atomics": ("atomics", show_atomics),  # type: ignore[dict-item]
        "hiding": ("hiding", show_hiding),  # type: ignore[dict-item]
        "peer": ("peer", show_peer),  # type: ignore[dict-item]
        "counters": ("counters", show_counters),  # type: ignore[dict-item]
    }
    there = [section for section in sections if parts[section][0] in found]
    for number, section in enumerate(there):
        key, part = parts[section]
        if number > 0:
            console.print()
        part(console, found[key])
