"""`headrace link`: measures the rate and latency of every link, and what hides them."""

from typing import Annotated

import typer

import headrace
from headrace import UsageError, link_results, link_sections, links, outputs, quiet, results
from headrace.cli import link_show, options, show, stopping
from headrace.cli.errors import STATUS_INTERRUPTED, finish
from headrace.profiles import Json


def _sizes(text: str | None) -> tuple[int, ...]:
    """Parses sizes such as "1KiB,64KiB" in ascending order."""
    if text is None:
        return ()
    sizes = sorted({headrace.base.parse_bytes(word) for word in text.split(",")})
    wrong = [size for size in sizes if size == 0 or size % 16 != 0]
    if wrong:
        raise UsageError(f"sizes must be multiples of 16 bytes above 0, not {wrong[0]}")
    return tuple(sizes)


def link(
    device: Annotated[
        list[str] | None,
        typer.Option("--device", help="Device; may be repeated. Default: every GPU, or cpu:0 and cpu:1 without a GPU."),
    ] = None,
    section: Annotated[
        str | None,
        typer.Option(
            "--section", metavar="NAMES", help=f"Sections to measure: any of {', '.join(links.SECTIONS)}. Default: all."
        ),
    ] = None,
    sizes: Annotated[
        str | None,
        typer.Option("--sizes", metavar="SIZES", help="Sizes of transfers and chains, such as 1KiB,64KiB,1MiB."),
    ] = None,
    full: Annotated[
        bool,
        typer.Option(
            "--full",
            help="Measure all powers of two from 1 KiB to 1 GiB with more samples; takes minutes, not seconds.",
        ),
    ] = False,
    save: options.ResultsOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Measure the links: bandwidth and latency by size, pointer chases, atomics, overlap, peer access.

    Example: headrace link --section bandwidth,latency --sizes 1KiB,64KiB,4MiB
    """
    devices = [options.find_device(name) for name in dict.fromkeys(device)] if device else links.default_devices()
    settings = links.Settings(devices, links.chosen_sections(section), _sizes(sizes), full)
    links.check_pairs(settings)
    topic = results.topic_of(save, devices[0]) if save else "link"
    largest = max(settings.link_sizes, default=0)
    show.expect(link_sections.about_seconds(settings), 3 * largest * len(devices))
    watch = quiet.Watch()
    partial: Json = {}
    try:
        with show.progress_bar("Links") as bar:
            interrupted = stopping.stopped(lambda: link_sections.measure(settings, partial, bar))
    except KeyboardInterrupt:  # before the first measurement
        interrupted = True
    found = link_sections.complete(partial, settings)
    content = results.document(
        topic,
        devices[0],
        link_results.rows(found),
        watch,
        nvbandwidth=link_results.nvbandwidth(found, devices),
        sections=found,
        interrupted=interrupted,
    )
    if as_json:
        typer.echo(results.dumps(content), nl=False)
    else:
        link_show.show(show.stdout(), found, settings.sections)
        show.print_quiet(show.stdout(), watch.stop())
    attempts = outputs.Attempts()
    attempts.write(save, lambda path: results.save(path, content))
    finish(attempts, STATUS_INTERRUPTED if interrupted else 0)
