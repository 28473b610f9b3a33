"""What `headrace --version` prints: what a report of a fault should say of this copy and this machine."""

import os

from headrace import Device, Error, __version__, results


def _cuda() -> str:
    try:
        found = [device.properties for device in Device.list() if device.kind.name == "cuda"]
    except Error as error:
        return f"none: {error}"
    if not found:
        return f"none: {Device.cuda_absence()}"
    models = ", ".join(properties.name for properties in found)
    return f"{found[0].runtime}, driver {found[0].driver}: {models}"


def lines() -> list[str]:
    """The version first, and alone on its line; then the commit, where there is one, CUDA and the processor."""
    commit = results.commit()
    return [
        f"headrace {__version__}",
        *([f"commit {commit}"] if commit else []),
        f"CUDA {_cuda()}",
        f"CPU {results.cpu_model()}, {len(os.sched_getaffinity(0))} cores",
    ]
