"""The processes that a launcher such as mpirun started together to share a domain."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from headrace._core import Device, Ranks
from headrace.errors import UsageError

# Variables that launchers set in each process: Open MPI, MPICH and its relatives, and Slurm through PMIx.
_SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
_LAUNCHED = "PMIX_RANK"


def launched() -> bool:
    """Whether a launcher started this process as one of several."""
    sizes = [os.environ[name] for name in _SIZES if name in os.environ]
    return any(size != "1" for size in sizes) if sizes else _LAUNCHED in os.environ


def joined() -> Ranks | None:
    """The ranks of this run, or None if this process is alone. Every rank calls it.

    Raises:
        UsageError: when there are other ranks, and this build has no MPI to reach them.
    """
    if not launched():
        return None
    try:
        from headrace._mpi import join  # noqa: PLC0415 - there only where it was built
    except ImportError as error:
        raise UsageError(
            "this process is one of several started together (such as by mpirun), but this build of Headrace has no "
            f"MPI ({error}): install libopenmpi-dev and build Headrace again, or start a single process"
        ) from None
    ranks = join()
    return ranks if ranks.count > 1 else None


@contextmanager
def failing_together(ranks: Ranks | None) -> Iterator[None]:
    """If an exception leaves the context, the other ranks are told, and end instead of waiting for this one."""
    try:
        yield
    except BaseException as error:
        if ranks:
            ranks.fail(str(error) or type(error).__name__)
        raise


def require_alike(ranks: Ranks | None, what: str, digest: str) -> None:
    """Compares the inputs of the ranks of a run; every rank calls it.

    Raises:
        UsageError: on all ranks, when the digest of one differs from that of rank 0.
    """
    digests = ranks.gather(digest) if ranks else [digest]
    for rank, other in enumerate(digests):
        if other != digests[0]:
            raise UsageError(f"rank {rank} has another {what} than rank 0: give all ranks the same")


def device_of(ranks: Ranks, names: list[str]) -> str:
    """The device of this rank, by its number on its machine: from those given, or all GPUs; cpu:0 without any."""
    names = names or [device.name for device in Device.list() if device.kind.name == "cuda"] or ["cpu:0"]
    return names[ranks.rank_on_machine % len(names)]
