"""Yee's scheme in a few lines of NumPy, with the interface of headrace.grid.Fdtd: slow, simple, and without CPML."""

import numpy as np

EPSILON = 8.8541878128e-12
MU = 4e-7 * np.pi

# For each component, twice: the sign, the component that it is the curl of, the axis of the derivative.
CURLS = {
    "hx": ((-1, "ez", 1), (+1, "ey", 2)),
    "hy": ((-1, "ex", 2), (+1, "ez", 0)),
    "hz": ((-1, "ey", 0), (+1, "ex", 1)),
    "ex": ((+1, "hz", 1), (-1, "hy", 2)),
    "ey": ((+1, "hx", 2), (-1, "hz", 0)),
    "ez": ((+1, "hy", 0), (-1, "hx", 1)),
}


def difference(values, axis, forward):
    """Difference to the next cell, or from the previous one; 0 outside."""
    edge = np.zeros_like(np.take(values, [0], axis))
    parts = [values, edge] if forward else [edge, values]
    return np.diff(np.concatenate(parts, axis), axis=axis)


def around(values, shape):
    """The mean of the four cells around the low corner of each."""
    low = np.pad(np.broadcast_to(values, shape), ((1, 0), (1, 0)), mode="edge")
    return ((low[:-1, :-1] + low[1:, :-1]) + (low[:-1, 1:] + low[1:, 1:])) / 4


def at_edge(values, shape, name):
    """The mean of the four cells around the edge of a component of E; cells at a wall count twice."""
    mean = np.array(np.broadcast_to(values, shape), float)
    for axis in range(len(shape)):
        if axis != "xyz".index(name[1]):
            mean = (mean + np.concatenate([np.take(mean, [0], axis), np.delete(mean, -1, axis)], axis)) / 2
    return mean


def at_face(values, shape, name):
    """The harmonic mean of the two cells that share the face of a component of H; in a plane, that of its cell."""
    values, axis = np.array(np.broadcast_to(values, shape), float), "xyz".index(name[1])
    if len(shape) == 2:
        return values
    return 2 / (1 / values + 1 / np.concatenate([np.take(values, [0], axis), np.delete(values, -1, axis)], axis))


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
        averaging=True,
        polarisation="tm",
    ):
        del cut, weights, redundant, push, mode, wait_limit
        self.averaging = averaging
        self.devices, self.cpml = devices, cpml
        self.shape, self.dt, self.steps_done = tuple(shape), dt, 0
        self.spacing = tuple(np.broadcast_to(spacing, len(shape)).tolist())
        self.type = np.float32 if precision == "single" else np.float64
        flat = ("hz", "ex", "ey") if polarisation == "te" else ("ez", "hx", "hy")
        names = flat if len(shape) == 2 else tuple(CURLS)
        self.fields = {name: np.zeros(shape, self.type) for name in names}
        self.sources, self.receivers, self.traces = [], [], []
        self.set_materials(1, 0, 1)

    def set_materials(self, permittivity, conductivity, permeability, edges=None):
        self.keep, self.move = {}, {}
        for name in self.fields:
            mean = (at_edge if name[0] == "e" else at_face) if self.averaging else lambda values, *_: np.asarray(values)
            if name[0] == "h":
                factor = self.dt / (MU * mean(permeability, self.shape, name)) / min(self.spacing)
            else:
                epsilon = EPSILON * np.array(np.broadcast_to(mean(permittivity, self.shape, name), self.shape), float)
                sigma = np.array(np.broadcast_to(mean(conductivity, self.shape, name), self.shape), float)
                if name in (edges or {}):
                    nodes, own_permittivity, own_conductivity = edges[name]
                    epsilon[tuple(np.transpose(nodes))] = EPSILON * own_permittivity
                    sigma[tuple(np.transpose(nodes))] = own_conductivity
                loss = sigma * self.dt / (2 * epsilon)
                factor = self.dt / epsilon / (1 + loss) / min(self.spacing)
                self.keep[name] = ((1 - loss) / (1 + loss)).astype(self.type)
            self.move[name] = factor.astype(self.type)

    def add_source(self, field, cell, samples):
        self.sources.append((field, tuple(cell), np.asarray(samples, self.type)))

    def add_receiver(self, field, cell):
        self.receivers.append((field, tuple(cell)))
        self.traces.append([])
        return len(self.receivers) - 1

    def curl(self, name, forward):
        terms = [(sign, other, axis) for sign, other, axis in CURLS[name] if other in self.fields]
        # In units of the shortest edge: exactly the difference in cubes.
        shares = [one / min(self.spacing) for one in self.spacing]
        return sum(sign * difference(self.fields[other], axis, forward) / shares[axis] for sign, other, axis in terms)

    redundant = 1
    parts = (("cpu:0", "all cells"),)

    @property
    def moved_bytes(self):
        return 12 * int(np.prod(self.shape)) * np.dtype(self.type).itemsize

    def step(self, count):
        for _ in range(count):
            for name in (name for name in self.fields if name[0] == "h"):
                self.fields[name] += self.move[name] * self.curl(name, forward=True)
            self.add(kind="h")
            for name in (name for name in self.fields if name[0] == "e"):
                curl = self.curl(name, forward=False)
                self.fields[name] = self.keep[name] * self.fields[name] + self.move[name] * curl
                # The walls conduct perfectly: tangential fields are 0.
                for axis in range(len(self.shape)):
                    if axis != "xyz".index(name[1]):
                        self.fields[name][(slice(None),) * axis + (0,)] = 0
            self.add(kind="e")
            for (field, cell), trace in zip(self.receivers, self.traces, strict=True):
                trace.append(self.fields[field][cell])
            self.steps_done += 1

    def add(self, kind):
        for field, cell, samples in self.sources:
            if field[0] == kind and self.steps_done < len(samples):
                self.fields[field][cell] += samples[self.steps_done]

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
