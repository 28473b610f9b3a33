"""Yee's scheme in a few lines of NumPy, with the interface of headrace.grid.Fdtd: slow, plain, and without CPML."""

import numpy as np

EPSILON = 8.8541878128e-12
MU = 4e-7 * np.pi

# Each component: (its sign, the component that it is the curl of, the axis of the derivative), twice.
CURLS = {
    "hx": ((-1, "ez", 1), (+1, "ey", 2)),
    "hy": ((-1, "ex", 2), (+1, "ez", 0)),
    "hz": ((-1, "ey", 0), (+1, "ex", 1)),
    "ex": ((+1, "hz", 1), (-1, "hy", 2)),
    "ey": ((+1, "hx", 2), (-1, "hz", 0)),
    "ez": ((+1, "hy", 0), (-1, "hx", 1)),
}


def difference(values, axis, forward):
    """To the next cell, or from the one before; 0 outside."""
    edge = np.zeros_like(np.take(values, [0], axis))
    parts = [values, edge] if forward else [edge, values]
    return np.diff(np.concatenate(parts, axis), axis=axis)


def around(values, shape):
    """The mean of the four cells around the low corner of each."""
    low = np.pad(np.broadcast_to(values, shape), ((1, 0), (1, 0)), mode="edge")
    return ((low[:-1, :-1] + low[1:, :-1]) + (low[:-1, 1:] + low[1:, 1:])) / 4


class NumpyFdtd:
    def __init__(
        self,
        shape,
        spacing,
        dt,
        devices,
        cut,
        weights,
        redundant,
        push,
        mode,
        wait_limit,
        cpml,
        precision,
        averaging=None,
    ):
        del cut, weights, redundant, push, mode, wait_limit
        self.averaging = len(shape) == 2 if averaging is None else averaging
        self.devices, self.cpml = devices, cpml
        self.shape, self.spacing, self.dt, self.steps_done = tuple(shape), spacing, dt, 0
        self.type = np.float32 if precision == "single" else np.float64
        names = ("ez", "hx", "hy") if len(shape) == 2 else tuple(CURLS)
        self.fields = {name: np.zeros(shape, self.type) for name in names}
        self.sources, self.receivers, self.traces = [], [], []
        self.set_materials(1, 0, 1)

    def set_materials(self, permittivity, conductivity, permeability):
        if self.averaging:
            permittivity, conductivity = around(permittivity, self.shape), around(conductivity, self.shape)
        loss = np.asarray(conductivity) * self.dt / (2 * EPSILON * np.asarray(permittivity))
        factor = self.dt / (EPSILON * np.asarray(permittivity)) / (1 + loss) / self.spacing
        self.ca, self.cb = ((1 - loss) / (1 + loss)).astype(self.type), factor.astype(self.type)
        self.db = (self.dt / (MU * np.asarray(permeability)) / self.spacing).astype(self.type)

    def add_source(self, field, cell, samples):
        self.sources.append((field, tuple(cell), np.asarray(samples, self.type)))

    def add_receiver(self, field, cell):
        self.receivers.append((field, tuple(cell)))
        self.traces.append([])
        return len(self.receivers) - 1

    def curl(self, name, forward):
        terms = [(sign, other, axis) for sign, other, axis in CURLS[name] if other in self.fields]
        return sum(sign * difference(self.fields[other], axis, forward) for sign, other, axis in terms)

    @property
    def moved_bytes(self):
        return 12 * int(np.prod(self.shape)) * np.dtype(self.type).itemsize

    def step(self, count):
        for _ in range(count):
            for name in (name for name in self.fields if name[0] == "h"):
                self.fields[name] += self.db * self.curl(name, forward=True)
            for name in (name for name in self.fields if name[0] == "e"):
                self.fields[name] = self.ca * self.fields[name] + self.cb * self.curl(name, forward=False)
                # The walls conduct perfectly: what lies along them is 0.
                for axis in range(len(self.shape)):
                    if axis != "xyz".index(name[1]):
                        self.fields[name][(slice(None),) * axis + (0,)] = 0
            for field, cell, samples in self.sources:
                if self.steps_done < len(samples):
                    self.fields[field][cell] += samples[self.steps_done]
            for (field, cell), trace in zip(self.receivers, self.traces, strict=True):
                trace.append(self.fields[field][cell])
            self.steps_done += 1

    def field(self, name):
        return self.fields[name].copy()

    def trace(self, receiver):
        return np.array(self.traces[receiver], self.type)

    def state(self):
        traces = {f"trace{number}": np.array(trace) for number, trace in enumerate(self.traces)}
        return {**self.fields, **traces, "steps": np.array(self.steps_done)}

    def restore(self, state):
        self.fields = {name: state[name].copy() for name in self.fields}
        self.traces = [list(state[f"trace{number}"]) for number in range(len(self.traces))]
        self.steps_done = int(state["steps"])
