"""The output of `headrace --version`: what a bug report should say about this copy and this machine."""

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


def _built_for(names: str | None) -> str:
    return f"; built for {', '.join(names.split(';'))}" if names else ""


def lines() -> list[str]:
    """The version alone on the first line, then the commit, CUDA and the processor, and what they were built for."""
    built = results.built()
    return [
        f"headrace {__version__}",
        f"commit {results.commit() or 'unknown: built outside a repository, without HEADRACE_COMMIT'}",
        f"CUDA {_cuda()}{_built_for(built.get('cuda_architectures') if built.get('cuda') else None)}",
        f"CPU {results.cpu_model()}, {len(os.sched_getaffinity(0))} cores{_built_for(built.get('processor'))}",
    ]
