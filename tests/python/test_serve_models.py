"""The engines of `headrace serve` on a full device: a new version takes half of the old one's share."""

from types import SimpleNamespace

import pytest

from headrace import Errc, UsageError
from headrace.cli.serve_models import ServedModels


class Device:
    """A device with room for shares up to 1 in total, each at least a block of every multiprocessor."""

    least = 0.1

    def __init__(self) -> None:
        self.engines: list[FakeEngine] = []

    def take(self, asking: "FakeEngine", share: float) -> None:
        held = sum(one.share for one in self.engines if one is not asking)
        if held + share > 1 or share < self.least:
            raise UsageError("there is no room", Errc.full)


class FakeEngine:
    def __init__(self, device: Device, share: float, schedule: str = "dispatched") -> None:
        self._device, self.stopped = device, False
        self.plan = SimpleNamespace(schedule=schedule, share=0.0)
        self.change(share=share)
        device.engines.append(self)

    @property
    def share(self) -> float:
        return self.plan.share

    def change(self, share: float) -> None:
        self._device.take(self, share)
        self.plan.share = share

    def stop(self) -> None:
        self.stopped = True
        self._device.engines.remove(self)


class FakeServer:
    """A server that may still have requests for an engine, and may refuse a model."""

    def __init__(self) -> None:
        self.in_use: list[FakeEngine] = []
        self.refuses = False
        self.models: dict[str, FakeEngine] = {}

    def load(self, _model: object) -> None:
        if self.refuses:
            raise UsageError("another shape")

    def unload(self, _name: str) -> bool:
        return True

    def change(self, name: str, share: float) -> None:
        self.models[name].change(share=share)

    def uses(self, engine: FakeEngine) -> bool:
        return engine in self.in_use


@pytest.fixture
def device() -> Device:
    return Device()


def serve(device: Device, names: str, schedule: str = "dispatched") -> ServedModels:
    source = {name: SimpleNamespace(operator=None, at=None) for name in names}
    part = 1 / len(names)
    served = ServedModels(
        source,
        lambda _operator, changes: FakeEngine(device, changes.get("share", part), schedule),
        lambda engine, *_: engine,
    )
    served.models()
    return served


def test_a_new_version_grows_once_the_old_one_has_gone(device):
    server = FakeServer()
    served = serve(device, "ab")
    first, other = device.engines
    server.in_use.append(first)
    served._load(server, "a")
    assert not first.stopped
    new = served._engines["a"]
    assert (first.share, new.share, other.share) == (0.25, 0.25, 0.5)
    served._stop_left(server)
    assert new.share == 0.25, "a request still waits for the old one"
    server.in_use.clear()
    served._stop_left(server)
    assert first.stopped
    assert new.share == 0.5
    served._load(server, "a")
    served._stop_left(server)
    assert [one.share for one in device.engines] == [0.5, 0.5]


def test_a_version_that_fails_gives_the_share_back(device, monkeypatch):
    server = FakeServer()
    served = serve(device, "ab")
    first, _ = device.engines
    server.refuses = True
    with pytest.raises(UsageError, match="another shape"):
        served._load(server, "a")
    assert first.share == 0.5
    assert len(device.engines) == 2
    monkeypatch.setattr(device, "least", 0.25)
    monkeypatch.setattr(server, "refuses", False)
    served._load(server, "a")  # a quarter each
    served._stop_left(server)
    monkeypatch.setattr(device, "least", 0.3)
    with pytest.raises(UsageError, match="no room"):
        served._load(server, "a")
    assert [one.share for one in device.engines] == [0.5, 0.5]


def test_other_schedules_and_other_failures_take_no_share(device):
    served = serve(device, "ab", schedule="blocking")
    with pytest.raises(UsageError, match="no room"):
        served._load(FakeServer(), "a")
    assert [one.share for one in device.engines] == [0.5, 0.5]


def test_a_share_that_a_client_changed_stays_with_the_name(device):
    server = FakeServer()
    served = serve(device, "ab")
    first, other = device.engines
    server.models["a"] = first
    served._change(server, "a", {"share": 0.25})
    served._load(server, "a")
    served._stop_left(server)
    assert first.stopped
    assert (served._engines["a"].share, other.share) == (0.25, 0.5)
    served._unload(server, "a")
    served._stop_left(server)
    served._load(server, "a", {"share": 0.375})
    assert served._engines["a"].share == 0.375


def test_a_changed_share_replaces_one_that_is_owed(device):
    server = FakeServer()
    served = serve(device, "ab")
    server.in_use.append(device.engines[0])
    served._load(server, "a")  # with half of the share until the old one has gone
    server.models["a"] = served._engines["a"]
    served._change(server, "a", {"share": 0.125})
    server.in_use.clear()
    served._stop_left(server)
    assert served._engines["a"].share == 0.125
