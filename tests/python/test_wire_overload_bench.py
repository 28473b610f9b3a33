"""bench/wire_overload.py: what keeps its rows from being verified."""

from types import SimpleNamespace

import pytest
from programs import load_program


@pytest.mark.parametrize(
    ("requests", "counted", "why"),
    [
        ({"answered": 5, "refused": 9, "late": 1, "failed": 0}, 5, ""),
        ({"answered": 5, "refused": 9, "late": 1, "failed": 2}, 5, "requests ended in other ways: {'failed': 2}"),
        ({"answered": 5, "unsent": 1}, 5, "requests ended in other ways: {'unsent': 1}"),
        ({"answered": 5}, 4, "the server counts 4 answers, its client 5"),
    ],
)
def test_rows_are_verified_where_every_request_ended_as_it_may(requests: dict[str, int], counted: int, why: str):
    overload = load_program("bench/wire_overload.py")
    servers = SimpleNamespace(answered=lambda: 100 + counted)
    found = overload._failures(servers, [SimpleNamespace(requests=requests)], 100)
    assert found == ([why] if why else [])
