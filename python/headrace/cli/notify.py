"""Reports the state of a command to the service manager, as sd_notify(3) does."""

import contextlib
import os
import socket


def notify(state: str) -> None:
    """Sends lines such as "READY=1" if a service manager listens, else does nothing.

    A failed notification is not a failure of the command: the manager's own time limit applies then.
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
