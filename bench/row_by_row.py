"""Runs a benchmark that makes one row after another: what it prints, saves and returns, also when interrupted."""

import argparse
import json
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from headrace import Device, Error, UsageError, results
from headrace.base import parse_bytes
from headrace.profiles import Json
from headrace.tables import figure


def say(text: str) -> None:
    """Prints a message that is not a result."""
    print(text, file=sys.stderr, flush=True)


def size(text: str) -> int:
    """Parses the bytes of an option such as 64KiB."""
    try:
        return parse_bytes(text)
    except UsageError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def is_whole(supported: bool, made: int, wanted: int) -> bool:
    """Whether a measurement is supported and complete. Raises KeyboardInterrupt if Ctrl-C cut runs short."""
    if supported and made < wanted:
        raise KeyboardInterrupt
    return supported


def _print_table(rows: list[Json]) -> None:
    width = max(len(row["id"]) for row in rows)
    for row in rows:
        low, high = row["spread"]
        share = (
            f"  {results.share_of_roof(row):.1%} of {figure(row['roof'])} ({row['roof_is']})" if "roof" in row else ""
        )
        wrong = "" if row["conditions"]["verified"] else "  NOT VERIFIED"
        spread = f"({figure(low)} to {figure(high)})"
        print(f"{row['id']:<{width}}  {figure(row['value'])} {row['unit']} {spread}{share}{wrong}")


def keep(topic: str, given: argparse.Namespace, rows: list[Json], **more: Any) -> bool:  # noqa: ANN401
    """Saves rows, with further members, in given.save; with given.json prints them. Returns whether it printed them."""
    device = Device.parse("cpu:0")
    content = results.document(results.topic_of(given.save, device) if given.save else topic, device, rows, **more)
    if given.save:
        results.save(given.save, content)
    if given.json:
        print(json.dumps(content, indent=2))
    return bool(given.json)


def run(topic: str, given: argparse.Namespace, measure: Callable[[Device], Iterator[Json]]) -> int:
    """Runs `measure` on given.device, keeps its rows in given.save, and prints them, as JSON with given.json.

    Exit status: 0; 1 when an error ended it, or no row could be measured or some row was not verified; 130 after
    Ctrl-C, with the rows so far.
    """
    program = Path(sys.argv[0]).name
    began = time.monotonic()
    rows: list[Json] = []
    interrupted = False
    commit = results.commit()  # before a row is saved, which changes a file that the repository may track
    try:
        device = Device.parse(given.device)
        topic = results.topic_of(given.save, device) if given.save else topic
        try:
            for row in measure(device):
                rows.append(row)
                if given.save:  # saved now, so that a later failure does not lose a long run
                    results.save(given.save, results.document(topic, device, rows) | {"commit": commit})
        except KeyboardInterrupt:
            interrupted = True
            say("interrupted: the rows measured so far are kept")
        if not rows and not interrupted:
            say(f"{program}: no figure could be measured")
            return 1
        content = results.document(topic, device, rows, seconds=round(time.monotonic() - began, 1)) | {"commit": commit}
        if given.save and rows:
            results.save(given.save, content)
    except (Error, ValueError) as error:
        say(f"{program}: error: {error}")
        return 1
    if given.json:
        print(json.dumps(content))
    elif rows:
        _print_table(rows)
    if interrupted:
        return 128 + signal.SIGINT
    return 0 if all(row["conditions"]["verified"] for row in rows) else 1
