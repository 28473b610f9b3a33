"""Two network namespaces on this machine, joined by a veth pair: one for a sender, one for a receiver."""

import ctypes
import os
import shutil
import subprocess
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from headrace import Errc, Error

T = TypeVar("T")
_CLONE_NEWNET = 0x40000000


class Namespace:
    """A separate network for a thread that runs given calls, and for everything that these start."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1)
        try:
            self.path = self.run(self._enter)
        except BaseException:
            self.close()
            raise

    def _enter(self) -> str:
        if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWNET) != 0:
            why = os.strerror(ctypes.get_errno())
            raise Error(f"no new network namespace (this needs CAP_SYS_ADMIN): {why}", Errc.no_permission)
        return f"/proc/{os.getpid()}/task/{threading.get_native_id()}/ns/net"

    def run(self, call: Callable[..., T], *arguments: Any, **keywords: Any) -> T:  # noqa: ANN401
        """Runs `call` in the namespace, and returns or raises what it does. Its sockets and processes stay there."""
        return self._thread.submit(call, *arguments, **keywords).result()

    def ip(self, words: str) -> None:
        """Runs an ip command in the namespace."""
        done = self.run(subprocess.run, ["ip", *words.split()], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Error(f"ip {words}: {done.stderr.strip()}")

    def close(self) -> None:
        """The network disappears with its last process and socket."""
        self._thread.shutdown()


class VethPair:
    """A sender and a receiver in a namespace each, at both ends of a wire, with the kernel's own offloads."""

    address = "10.77.0.2"  # the receiver's address

    def __init__(self, mtu: int) -> None:
        if shutil.which("ip") is None:
            raise Error("there is no ip command: install iproute2", Errc.not_found)
        self.sender = Namespace()
        try:
            self.receiver = Namespace()
        except BaseException:
            self.sender.close()
            raise
        try:
            self._connect(mtu)
        except BaseException:
            self.close()
            raise

    def _connect(self, mtu: int) -> None:
        self.sender.ip(f"link add veth0 mtu {mtu} type veth peer name veth1 mtu {mtu}")
        self.sender.ip(f"link set veth1 netns {self.receiver.path}")
        for side, name, host in ((self.sender, "veth0", "10.77.0.1"), (self.receiver, "veth1", self.address)):
            side.ip(f"addr add {host}/24 dev {name}")
            side.ip(f"link set {name} up")

    def close(self) -> None:
        """Ends both namespaces."""
        self.sender.close()
        self.receiver.close()
