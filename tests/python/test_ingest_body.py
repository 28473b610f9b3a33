"""Which bytes of a stream are data: ranges that are added in order, looked up by position, and dropped."""

import numpy as np
import pytest

from headrace.ingest.body import Body


def places(*values: int) -> np.ndarray:
    return np.array(values, np.uint64)


@pytest.fixture
def body() -> Body:
    made = Body()
    made.add(3, 5)
    made.extend(places(5, 12), places(9, 20))
    return made


@pytest.mark.parametrize(
    ("begin", "end", "found"),
    [
        (0, 3, []),
        (0, 4, [[3, 4]]),
        (0, 5, [[3, 5]]),  # the next range begins where these bytes end
        (4, 12, [[4, 5], [5, 9]]),
        (5, 13, [[5, 9], [12, 13]]),
        (9, 12, []),
        (14, 16, [[14, 16]]),
        (20, 1 << 62, []),
    ],
)
def test_data_is_found_among_some_bytes(body: Body, begin: int, end: int, found: list[list[int]]):
    within = body.within(begin, end)
    assert within.shape == (len(found), 2)
    assert within.tolist() == found


def test_data_without_an_end_reaches_to_where_it_is_looked_for(body: Body):
    body.add(30, None)
    assert body.within(19, 1 << 62).tolist() == [[19, 20], [30, 1 << 62]]


def test_dropped_data_takes_no_room(body: Body):
    body.drop(8)
    assert len(body) == 2
    body.drop(9)
    assert len(body) == 1
    assert body.within(9, 30).tolist() == [[12, 20]]


def test_data_is_added_in_order_alone(body: Body):
    with pytest.raises(ValueError, match="from byte 19 on begins before the end of earlier data, byte 20"):
        body.extend(places(19), places(25))
    with pytest.raises(ValueError, match="from byte 19 on begins before the end of earlier data, byte 20"):
        body.add(19, 25)
    body.extend(places(), places())
    body.add(25, 25)
    assert len(body) == 3
    body.extend(places(20), places(21))
    assert body.within(0, 100).tolist() == [[3, 5], [5, 9], [12, 20], [20, 21]]
