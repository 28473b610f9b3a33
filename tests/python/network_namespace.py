"""Runs tests that create network devices in separate network namespaces, so that they do not interfere."""

import ctypes
import functools
import os
import subprocess
import threading
from collections.abc import Callable
from typing import Any

import pytest

_CLONE_NEWNET = 0x40000000


def _enter() -> str | None:
    """Puts the calling thread, and what it starts, into a new network; returns the reason if that fails."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNET) != 0:
        return f"no new network namespace: {os.strerror(ctypes.get_errno())}"
    try:
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        return f"no working ip command (iproute2): {error}"
    return None


def isolated(test: Callable[..., None]) -> Callable[..., None]:
    """Runs a test in a new network, or skips it if none can be created."""

    @functools.wraps(test)
    def run(*args: Any, **keywords: Any) -> None:
        outcome: list[BaseException | str] = []

        def body() -> None:
            try:
                lack = _enter()
                if lack is not None:
                    outcome.append(lack)
                    return
                test(*args, **keywords)
            except BaseException as error:
                outcome.append(error)

        thread = threading.Thread(target=body)
        thread.start()
        thread.join()
        if outcome and isinstance(outcome[0], str):
            pytest.skip(outcome[0])
        if outcome:
            raise outcome[0]

    return run


def devices() -> list[str]:
    """The network devices in the calling thread's network."""
    listed = subprocess.run(["ip", "-o", "link"], check=True, capture_output=True, text=True).stdout
    return [line.split(":")[1].strip() for line in listed.splitlines()]


def make_veth(mtu: int = 1500, queues: int = 4) -> None:
    """Creates interfaces "left" and "right" in the calling thread's network, joined by a wire.

    Packets that this machine sends to 10.77.0.2 leave on the left and arrive on the right, where the kernel has no
    address.
    """
    share = ["numtxqueues", str(queues), "numrxqueues", str(queues)]
    for command in (
        ["link", "add", "left", *share, "type", "veth", "peer", "name", "right", *share],
        *(["link", "set", side, "addrgenmode", "none"] for side in ("left", "right")),
        ["link", "set", "right", "address", "02:00:00:00:00:02"],
        *(["link", "set", side, "up", "mtu", str(mtu)] for side in ("left", "right")),
        ["addr", "add", "10.77.0.1/24", "dev", "left"],
        ["neigh", "add", "10.77.0.2", "lladdr", "02:00:00:00:00:02", "dev", "left"],
    ):
        subprocess.run(["ip", *command], check=True, capture_output=True)
