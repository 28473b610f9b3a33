"""`headrace advise`: where to place data that does not fit on the device, and the predicted rates."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.table import Table

import headrace
from headrace import UsageError, advice
from headrace.cli import options, show
from headrace.profiles import Json
from headrace.quiet import Watch
from headrace.span import PAGE_BYTES, AccessProfile, Advice, MemoryRates
from headrace.text import read_json

_MEASURED = "measured in this run"


def size(text: str) -> int:
    """Parses bytes such as "4GiB", "512 MB" or "4096"; above 0."""
    try:
        value = headrace.base.parse_bytes(text)
    except UsageError as error:
        raise typer.BadParameter(str(error)) from None
    if value < 1:
        raise typer.BadParameter(f"a size must be 1 byte or more, not {text}")
    return value


def _sizes(factor: float | None, data: int | None, budget: int | None, pages: int, memory: int) -> tuple[int, int]:
    """Bytes of data and of the budget; the budget defaults to the device's memory."""
    if factor is not None and not 0 < factor < float("inf"):
        raise UsageError(f"--factor must be above 0, not {factor:g}")
    if pages and data is not None and -(-data // PAGE_BYTES) != pages:
        raise UsageError(f"--bytes {data} is {-(-data // PAGE_BYTES)} pages, but --heat has counts for {pages}")
    if pages and data is None:
        data = pages * PAGE_BYTES
    if factor is None:
        if data is None:
            raise UsageError("the size of the data is missing: give --factor, --bytes or --heat")
        return data, budget or memory
    if data is not None and budget is not None:
        raise UsageError("--factor follows from the size of the data and --budget: leave out one of the three")
    if data is not None:
        return data, max(1, int(data / factor))
    budget = budget or memory
    return max(1, int(factor * budget)), budget


def _rates(gpu: str | None, file: Path | None, device: str, *, measure: bool) -> tuple[MemoryRates, str]:
    """The rates to predict from, and their source."""
    if gpu is not None and file is not None:
        raise UsageError("give --gpu or --rates, not both")
    if gpu is not None:
        rates = headrace.span.find_memory_rates(gpu)
        return rates, f"row {rates.name} of the built-in table"
    if file is not None:
        content = read_json(file)
        return advice.rates_from_dict(
            content.get("rates", content) if isinstance(content, dict) else content
        ), file.name
    here = options.find_device(device)
    if measure:
        return headrace.measure.memory_rates(here), _MEASURED
    return headrace.span.memory_rates_of(here), "the table"


def speed(bytes_per_second: float) -> str:
    """Text such as "49.9 GB/s"."""
    value = bytes_per_second
    for unit in ("B/s", "kB/s", "MB/s", "GB/s"):
        if value < 1000:  # noqa: PLR2004
            return f"{value:.3g} {unit}"
        value /= 1000
    return f"{value:,.3g} TB/s"


def _time(seconds: float) -> str:
    """Text such as "206 ms"."""
    for unit, scale in (("us", 1e6), ("ms", 1e3)):
        if seconds * scale < 1000:  # noqa: PLR2004
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds:,.3g} s" if seconds < 1000 else f"{seconds:,.0f} s"  # noqa: PLR2004


def _table(found: Advice) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for heading, justify in (
        ("", "left"),
        ("strategy", "left"),
        ("predicted", "right"),
        ("roof", "right"),
        ("over the link", "right"),
        ("a pass", "right"),
        ("before it", "right"),
    ):
        table.add_column(heading, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    for number, one in enumerate(found.forecasts):
        if one.refused:
            table.add_row("", one.strategy, "refused", style="dim")
            continue
        table.add_row(
            "" if number else "*",
            one.strategy,
            speed(one.bytes_per_second),
            speed(one.roof_per_second),
            f"{one.host_share:.1%}",
            _time(one.pass_seconds),
            _time(one.prepare_seconds),
            style="" if number else "bold",
        )
    return table


def _print(content: Json, found: Advice, rates: MemoryRates) -> None:
    console = show.stdout()
    console.print(found.because, markup=False)
    console.print(_table(found))
    console.print("* the recommendation. Predicted: bytes touched per second, over all passes and their preparation.")
    for one in found.forecasts:
        if one.refused:
            console.print(f"{one.strategy}: refused, {one.refused}", markup=False, soft_wrap=True)
    console.print(
        f"Rates: {content['rates_from']}; sequential reads: device {speed(rates.device.read)}, link "
        f"{speed(rates.link.read)}; random reads: device {speed(rates.device_random.read)}, link "
        f"{speed(rates.link_random.read)}.",
        markup=False,
    )
    for name, key in (("C++", "cpp"), ("Python", "python")):
        console.print(f"\n{name}:\n")
        console.print(content[key].rstrip(), markup=False, soft_wrap=True)


def _content(
    found: Advice, profile: AccessProfile, rates: MemoryRates, source: str, device: str, gpu: str | None
) -> Json:
    """The content of --json. Code for a GPU that is not installed names the first device."""
    here = options.find_device(device).name
    content: Json = {"device": here, "gpu": gpu, "profile": advice.profile_as_dict(profile)}
    content |= advice.advice_as_dict(found)
    if gpu is not None and rates.name != "CPU":
        for key in ("cpp", "python"):
            content[key] = content[key].replace(f'"{here}"', '"cuda:0"')
    return content | {"rates": advice.rates_as_dict(rates), "rates_from": source}


def advise(
    pattern: Annotated[
        str | None,
        typer.Argument(
            help="Access pattern: grid-stride, block-stride, random-warp, zipf-rows or hot-tenth.", show_default=False
        ),
    ] = None,
    heat: Annotated[
        Path | None,
        typer.Option(
            "--heat",
            readable=False,
            help="Read the number of accesses to each 2 MiB page from a .npy file or JSON list instead of a pattern.",
        ),
    ] = None,
    factor: Annotated[
        float | None, typer.Option("--factor", help="Ratio of the data to the device memory available for it.")
    ] = None,
    data: Annotated[
        int | None, typer.Option("--bytes", parser=size, metavar="SIZE", help="Size of the data, such as 100GiB.")
    ] = None,
    budget: Annotated[
        int | None,
        typer.Option(
            "--budget",
            parser=size,
            metavar="SIZE",
            help="Device memory available for the data. Default: all of the device's memory.",
        ),
    ] = None,
    operation: Annotated[
        str, typer.Option("--operation", help="Operation of the kernel: read, write or read-modify-write.")
    ] = "read",
    reuse: Annotated[
        float,
        typer.Option(
            "--reuse",
            help="Number of passes of the kernel over the data; inf ignores the cost of preparation.",
        ),
    ] = 100.0,
    exponent: Annotated[
        float, typer.Option("--exponent", help="zipf-rows: Zipf exponent of the popularity of rows.")
    ] = 1.0,
    row_bytes: Annotated[int, typer.Option("--row-bytes", min=1, help="zipf-rows: bytes per row.")] = 512,
    order: Annotated[
        str, typer.Option("--rows", help="zipf-rows: order of the rows: ordered (by popularity) or scattered.")
    ] = "ordered",
    device: options.DeviceOption = "best",
    gpu: Annotated[
        str | None,
        typer.Option("--gpu", help="Advise for a GPU that is not installed, from the built-in table: H100, H200."),
    ] = None,
    rates_file: Annotated[
        Path | None,
        typer.Option("--rates", readable=False, help="Read the rates from a file that an earlier --json wrote."),
    ] = None,
    measure: Annotated[
        bool, typer.Option(help="Measure the rates of the device; this takes a few tenths of a second.")
    ] = True,
    as_json: options.JsonOption = False,
) -> None:
    """Recommend where to place the data that a kernel works on, with reasons and code to paste.

    Example: headrace advise zipf-rows --factor 2 --rows scattered --gpu H100
    """
    if pattern is None and heat is None:
        raise UsageError("the access pattern is missing: name one, such as zipf-rows, or give --heat FILE")
    counts = advice.read_counts(heat) if heat is not None else []
    watch = Watch()
    rates, source = _rates(gpu, rates_file, device, measure=measure)
    disturbed = watch.stop() if source == _MEASURED else ""
    data_bytes, budget_bytes = _sizes(factor, data, budget, len(counts), rates.memory_bytes)
    profile = AccessProfile(
        data_bytes,
        budget_bytes,
        pattern or "random-warp",
        operation,
        reuse=reuse,
        exponent=exponent,
        row_bytes=row_bytes,
        order=order,
        heat=counts,
    )
    found = headrace.span.advise(profile, rates, device)
    content = _content(found, profile, rates, source, device, gpu) | {"disturbed": disturbed}
    if as_json:
        typer.echo(json.dumps(content, indent=2))
    else:
        _print(content, found, rates)
        if source == _MEASURED:
            show.print_quiet(show.stdout(), disturbed)
