"""Tells the service manager how far a command is, as sd_notify(3) does."""

import contextlib
import os
import socket


def notify(state: str) -> None:
    """Sends lines such as "READY=1" where a service manager listens; does nothing elsewhere.

    It is no failure of the command where the manager cannot be told: its own time limit then decides.
    """
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    with (
        contextlib.suppress(OSError),
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as manager,
    ):
        manager.connect("\0" + address[1:] if address[0] == "@" else address)
        manager.send(state.encode())
