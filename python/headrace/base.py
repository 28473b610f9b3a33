"""Sizes as text, and the features of this build of Headrace.

>>> from headrace import base
>>> base.parse_bytes("64KiB")
65536
"""

from headrace._core import (
    built_with_cuda,
    built_with_fetch,
    built_with_grpc,
    built_with_tls,
    built_with_wire,
    built_with_xdp,
    parse_bytes,
)

__all__ = [
    "built_with_cuda",
    "built_with_fetch",
    "built_with_grpc",
    "built_with_tls",
    "built_with_wire",
    "built_with_xdp",
    "parse_bytes",
]
