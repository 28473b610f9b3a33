"""The network of bench/ingest_attacks.py: a server's namespace, and a far one behind a simulated wire with a delay.

    near clients, attackers, servers' TUN devices  |  relay: 25 ms each way  |  far clients
              namespace "near"                     |     two TUN devices     |  namespace "far"

Run as a program, this is the relay: it copies packets between two TUN devices, whose descriptors it is given.
"""

import fcntl
import os
import select
import struct
import subprocess
import sys
import time
from collections import deque
from pathlib import Path

from veth_pair import Namespace

_IFF_TUN_NO_PI = 0x1001
_TUNSETIFF = 0x400454CA
_PACKET_MOST = 1 << 16
_QUEUE_MOST = 1 << 14
"""Maximum number of packets on the wire in each direction; further packets are lost, as on a real wire."""
FORGED = "203.0.113"
"""Attackers forge addresses of this network (TEST-NET-3); answers to them are lost."""
ATTACKERS = tuple(f"198.51.100.{host}" for host in range(1, 17))
"""Attackers connect from these addresses (TEST-NET-2), so honest clients keep their ports."""


def _open_tun(name: str) -> int:
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH22x", name.encode(), _IFF_TUN_NO_PI))
    return device


class Network:
    """Two namespaces and the relay between them."""

    def __init__(self, one_way_seconds: float) -> None:
        self.near = Namespace()
        self.far = Namespace()
        self._relay: subprocess.Popen[bytes] | None = None
        self._relay = self._connect(one_way_seconds)

    def _connect(self, one_way_seconds: float) -> "subprocess.Popen[bytes]":
        ends = [side.run(_open_tun, "wire") for side in (self.near, self.far)]
        try:
            for side, host in ((self.near, 1), (self.far, 2)):
                side.ip("link set lo up")
                side.ip(f"addr add 10.88.0.{host}/24 dev wire")
                side.ip("link set wire up")
            self.far.ip("route add 10.77.0.0/16 via 10.88.0.1")
            self.near.ip(f"route add blackhole {FORGED}.0/24")
            for address in ATTACKERS:
                self.near.ip(f"addr add {address}/32 dev lo")
            self.near.run(_allow_forwarding)
            command = [sys.executable, __file__, *map(str, ends), str(one_way_seconds)]
            return subprocess.Popen(command, pass_fds=ends, stdin=subprocess.PIPE)
        finally:
            for end in ends:
                os.close(end)

    def close(self) -> None:
        """Ends the relay and both namespaces."""
        if self._relay is not None:
            self._relay.communicate()
        self.near.close()
        self.far.close()


def _allow_forwarding() -> None:
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1", encoding="ascii")


def _relay(near: int, far: int, seconds: float) -> None:
    """Copies packets until standard input ends."""
    other = {near: far, far: near}
    queues: dict[int, deque[tuple[float, bytes]]] = {near: deque(), far: deque()}
    poll = select.poll()
    for descriptor in (near, far, sys.stdin.fileno()):
        poll.register(descriptor, select.POLLIN)
    while True:
        now = time.monotonic()
        due = [queue[0][0] for queue in queues.values() if queue]
        wait = max(0.0, min(due) - now) if due else 1.0
        for descriptor, _ in poll.poll(1e3 * wait):
            if descriptor not in other:
                return
            _take(descriptor, queues[other[descriptor]], seconds)
        now = time.monotonic()
        for to, queue in queues.items():
            while queue and queue[0][0] <= now:
                os.write(to, queue.popleft()[1])


def _take(descriptor: int, queue: deque[tuple[float, bytes]], seconds: float) -> None:
    try:
        while True:
            packet = os.read(descriptor, _PACKET_MOST)
            if len(queue) < _QUEUE_MOST:
                queue.append((time.monotonic() + seconds, packet))
    except BlockingIOError:
        return


if __name__ == "__main__":
    _relay(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
