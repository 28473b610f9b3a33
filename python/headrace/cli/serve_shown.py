"""How `headrace serve` reports what it serves: a table, a line of JSON, events of a log."""

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.text import Text

from headrace import Device, Operator, Plan, _core
from headrace.cli import show
from headrace.cli.serve_security import Security
from headrace.profiles import Json, plan_as_dict
from headrace.serve_log import ServerLog
from headrace.text import printable

if TYPE_CHECKING:
    from headrace.wire import Model, Tensor


@dataclass(frozen=True)
class Source:
    """An operator, and the word of the command line that it comes from."""

    operator: Operator
    given: str
    at: str | None = None
    """The file that defines it; None for a shipped operator."""


@dataclass(frozen=True)
class Served:
    """What is served, and at which addresses."""

    url: str
    grpc: str | None
    shm: str | None
    page: str | None
    prometheus: str | None
    device: Device
    plan: Plan
    sources: dict[str, Source]
    security: Security

    def print(self, models: "list[Model]", *, as_json: bool) -> None:
        """Prints a table of the models, or a line of JSON."""
        if as_json:
            print(json.dumps(self._as_dict(models)), flush=True)
            return
        table = show.plain_table()
        for heading in ("model", "inputs", "outputs", "from"):
            table.add_column(heading, overflow="fold")
        for model in models:
            given = printable(self.sources[model.name].given)
            cells = (model.name, _written(model.inputs), _written(model.outputs), given)
            table.add_row(*(Text(cell) for cell in cells))
        console = show.stdout()
        also = f" and {self.grpc} (gRPC)" if self.grpc is not None else ""
        also += f" and {self.shm} (shared memory)" if self.shm is not None else ""
        title = f"Serving on {self.url}{also}, on {self.device.name} with plan {self.plan.name}. Press Ctrl-C to stop."
        console.print(title, markup=False, soft_wrap=True)
        if self.security.asked_of_clients:
            console.print(f"Clients need {' and '.join(self.security.asked_of_clients)}.", soft_wrap=True)
        if self.page is not None:
            console.print(f"Open {self.page} in a browser for the status page.", markup=False, soft_wrap=True)
        if self.prometheus is not None:
            console.print(f"Metrics for Prometheus: {printable(self.prometheus)}", markup=False, soft_wrap=True)
        console.print(table)

    def log(self, log: ServerLog, models: "list[Model]") -> None:
        """Logs the same as events."""
        log.write(
            "started",
            url=self.url,
            grpc=self.grpc,
            shm=self.shm,
            prometheus=self.prometheus,
            client_certificates=self.security.tls_clients is not None,
            tokens=self.security.token_file is not None,
            device=self.device.name,
            plan=self.plan.name,
            version=_core.version,
            pid=os.getpid(),
        )
        for model in models:
            given = self.sources[model.name].given
            log.write("model_ready", **{"model": model.name, "version": model.version, "from": given})

    def _as_dict(self, models: "list[Model]") -> Json:
        return {
            "url": self.url,
            "grpc": self.grpc,
            "shm": self.shm,
            "page": self.page,
            "prometheus": self.prometheus,
            "client_certificates": self.security.tls_clients is not None,
            "tokens": self.security.token_file is not None,
            "device": self.device.name,
            "plan": plan_as_dict(self.plan),
            "models": [
                {
                    "name": model.name,
                    "version": model.version,
                    "from": self.sources[model.name].given,
                    "inputs": _as_list(model.inputs),
                    "outputs": _as_list(model.outputs),
                }
                for model in models
            ],
        }


def _written(tensors: "list[Tensor]") -> str:
    return "\n".join(f"{printable(one.name)} {one.datatype} {one.shape or ''}".rstrip() for one in tensors)


def _as_list(tensors: "list[Tensor]") -> list[Json]:
    return [{"name": one.name, "datatype": one.datatype, "shape": one.shape} for one in tensors]
