"""The Python reference: which names are on which page. mkdocstrings writes them from the sources and the stub."""

from pathlib import Path

import griffe

FOLDER = "reference/python"

# The names of `headrace` itself by subject. Every name of its __all__ has to be on one of these pages.
_TOPICS: dict[str, tuple[str, str]] = {
    "serve": (
        "Serving queries",
        "Engine Client Plan Operator EngineStatistics StageTimes StageSample Rung rungs find_rung light reference "
        "retrieval answer_dtype typed_answers same_as why_not",
    ),
    "retrieval": (
        "Indexes and retrieval",
        "Index IndexBuilder Hits Ranking BruteForce RetrievalSampler RETRIEVAL_ANSWER",
    ),
    "load": (
        "Load, the ladder, the tuner",
        "load LoadResult LoadSession LatencySummary Completions ladder LadderResult LadderProgress RungResult "
        "combinations sustains samples_needed read_trace tune search_plan PlanSearch PlanLoad TunedPlan TunerProgress "
        "plan_cache_file",
    ),
    "devices": (
        "Devices and topology",
        "Device DeviceKind DeviceProperties DeviceHealth MemoryInfo Topology Processor PeerConnection peer_connection "
        "read_health built_with_cuda built_with_fetch __version__ parse_bytes",
    ),
    "occupancy": (
        "Occupancy and roofs",
        "occupancy Occupancy Capacity KernelResources kernel_resources resident_blocks_max resident_queries GpuLimits "
        "gpu_limits known_gpus find_gpu Roofs measure_roofs",
    ),
    "placement": (
        "Data larger than the device",
        "Span SpanStatistics SpanUse SharedPages Place Placement Right PAGE_BYTES SPARE_PAGES advise Advice "
        "AdviceConstants AccessProfile AccessRoofs StrategyForecast FaultRates access_operations access_patterns "
        "access_strategies oversubscribe oversubscription_budget OversubscriptionCell OversubscriptionProgress "
        "OversubscriptionReport OversubscriptionResult OwnerCache measure_owner_cache",
    ),
    "links": (
        "Links and memory, measured",
        "measure_link link_routes link_sizes LinkCurve LinkPoint LinkRoute pcie_rate measure_chase ChaseResult "
        "measure_hiding HidingCurve HidingPoint measure_host_atomics measure_peer_atomics AtomicsResult "
        "measure_batched_send BatchedSend measure_host_ways HostWayCost measure_peer_costs PeerCosts measure_counters "
        "CounterCheck OperationRates measure_core_round_trips CoreRoundTrip measure_memory_rates MemoryRates "
        "memory_rates_of known_memory_rates find_memory_rates measure_memory_roofs MemoryRoofs measure_memory_copies "
        "measure_copy_batch measure_copy_roofs CopyRoofs CopyRuns copy_ways",
    ),
    "frames": (
        "Frames, built and timed",
        "Frame FrameBuilder BuildRuns FrameLatencies FrameLatencySample measure_frame_latency measure_gather "
        "measure_device_build measure_resident_build measure_ring_build measure_build_iterations",
    ),
    "columns": ("Columns", "Table col lit FetchOptions Levels"),
    "sparse": ("Sparse matrices", "CsrMatrix CsrPart"),
    "errors": ("Errors", "Error UsageError DataError MissingFileError SystemError DeviceError Errc"),
}
_CONDITIONAL = {"FetchOptions", "Levels"}  # which a build without oneTBB lacks
_MODULES = {
    "headrace.fetch": "Queries over columns",
    "headrace.ingest": "Packets to frames",
    "headrace.grid": "Grids",
    "headrace.grid.solver": "The solver of scenes",
    "headrace.grid.gprmax": "gprMax's files",
    "headrace.operators": "Operators in Python",
    "headrace.each": "One program over many inputs",
}


def _exports(package: griffe.Module, name: str) -> list[str]:
    module = package if name == "headrace" else package[name.removeprefix("headrace.")]
    if module.exports is None:
        raise RuntimeError(f"{name} has no __all__")
    return [str(export) for export in module.exports]


def _page(title: str, intro: str, paths: list[str]) -> str:
    return "\n\n".join([f"# {title}", intro, *(f"::: {path}" for path in paths)]) + "\n"


def pages(root: Path) -> tuple[dict[str, str], list[dict[str, str]]]:
    """The pages by their places, and their part of the navigation.

    Raises:
        RuntimeError: where a public name is on no page, or a page has a name that is not public.
    """
    package = griffe.load("headrace", search_paths=[str(root / "python")])
    assert isinstance(package, griffe.Module)
    public = set(_exports(package, "headrace")) | _CONDITIONAL
    written = [name for _, names in _TOPICS.values() for name in names.split()]
    wrong = sorted(public.symmetric_difference(written)) + sorted({name for name in written if written.count(name) > 1})
    if wrong:
        raise RuntimeError(f"scripts/docsite/python_reference.py has to name each of these once: {', '.join(wrong)}")
    made: dict[str, str] = {}
    navigation: list[dict[str, str]] = []
    rows = ["| page | names |", "|---|---|"]

    def add(file: str, title: str, intro: str, module: str, names: list[str]) -> None:
        place = f"{FOLDER}/{file}.md"
        paths = [f"{module}.{name}" for name in names]
        if "FetchOptions" in names:
            paths = [
                path.replace("headrace.", "headrace._core.") if path[9:] in _CONDITIONAL else path for path in paths
            ]
        made[place] = _page(title, intro, paths)
        navigation.append({title: place})
        rows.append(f"| [{title}]({file}.md) | {', '.join(f'`{name}`' for name in names)} |")

    for file, (title, names) in _TOPICS.items():
        add(file, title, "Import these from `headrace`.", "headrace", names.split())
    for module, title in _MODULES.items():
        exports = [name for name in _exports(package, module) if name not in {"Table", "col", "lit"}]
        add(module.replace(".", "-"), title, f"Import these from `{module}`.", module, exports)
    intro = (package.docstring.value if package.docstring else "").split(">>>")[0].strip()
    made[f"{FOLDER}/index.md"] = "\n".join(["# Python reference", "", intro, "", *rows, ""])
    return made, [{"Overview": f"{FOLDER}/index.md"}, *navigation]
