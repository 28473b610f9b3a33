"""The same answers from NumPy, PyTorch and FAISS, for bench/shipped.py and bench/lookup.py.

Each function returns a callable that answers one query.
"""

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

import row_by_row

Array = npt.NDArray[Any]
Layers = list[tuple[Array, Array]]
Call = Callable[[Array], Array]


def library(name: str) -> Any | None:  # noqa: ANN401
    """The module; if it is not installed, prints that and returns None."""
    try:
        return importlib.import_module(name)
    except ImportError:
        row_by_row.say(f"{name} is not installed, so its rows are left out")
        return None


def network_by_numpy(layers: Layers) -> Call:
    """A dense network; every layer but the last ends with max(0, x)."""

    def answer(values: Array) -> Array:
        for number, (matrix, vector) in enumerate(layers):
            values = matrix @ values + vector
            if number + 1 < len(layers):
                values = np.maximum(values, 0)
        return values

    return answer


def _network_of_torch(torch: Any, layers: Layers, where: str) -> Callable[[Any], Any]:  # noqa: ANN401
    tensors = [(torch.tensor(matrix, device=where), torch.tensor(vector, device=where)) for matrix, vector in layers]

    def answer(values: Any) -> Any:  # noqa: ANN401
        for number, (matrix, vector) in enumerate(tensors):
            values = torch.addmv(vector, matrix, values)
            if number + 1 < len(tensors):
                values = torch.relu(values)
        return values

    return answer


def network_by_torch(torch: Any, layers: Layers, where: str) -> Call:  # noqa: ANN401
    """The network on a PyTorch device, called layer by layer."""
    network = _network_of_torch(torch, layers, where)
    return lambda query: network(torch.from_numpy(query).to(where)).cpu().numpy()


def network_by_graph(torch: Any, layers: Layers) -> Call:  # noqa: ANN401
    """The network and the copies in and out as one CUDA graph, from and to page-locked memory."""
    network = _network_of_torch(torch, layers, "cuda")
    given = torch.zeros(layers[0][0].shape[1], pin_memory=True)
    answered = torch.zeros(layers[-1][0].shape[0], pin_memory=True)
    query = torch.zeros_like(given, device="cuda")

    def step() -> None:
        query.copy_(given, non_blocking=True)
        answered.copy_(network(query), non_blocking=True)

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        step()  # objects created on first use cannot be captured
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        step()
    given_array, answered_array = given.numpy(), answered.numpy()

    def answer(values: Array, used: tuple[Any, ...] = (network, query, given, answered)) -> Array:
        del used  # a graph does not keep its working memory alive
        given_array[:] = values
        with torch.cuda.stream(stream):
            graph.replay()
        stream.synchronize()
        return answered_array.copy()

    return answer


def search_by_numpy(matrix: Array, best: int) -> Call:
    """The rows with the largest dot products, best first."""

    def answer(query: Array) -> Array:
        scores = matrix @ query
        found = np.argpartition(-scores, best)[:best]
        return found[np.argsort(-scores[found])]

    return answer


def search_by_torch(torch: Any, matrix: Array, best: int, where: str) -> Call:  # noqa: ANN401
    """The same on a PyTorch device."""
    stored = torch.tensor(matrix, device=where)
    return lambda query: torch.topk(stored @ torch.from_numpy(query).to(where), best).indices.cpu().numpy()


def search_by_faiss(faiss: Any, matrix: Array, best: int) -> Call:  # noqa: ANN401
    """The same with FAISS's exact index on all processors; a query with several rows is a batch."""
    index = faiss.IndexFlatIP(matrix.shape[1])
    index.add(matrix)
    return lambda query: index.search(np.atleast_2d(query), best)[1]


def pooled_by_numpy(table: Array) -> Call:
    """The sum of a table's rows for each query, an array of row numbers; a batch has one row per query."""
    return lambda query: table[query].astype(np.float32).sum(axis=-2)


def pooled_by_torch(torch: Any, table: Array, where: str) -> Call:  # noqa: ANN401
    """The same with embedding_bag on a PyTorch device that holds the table. Queries of a batch have equal lengths."""
    stored = torch.from_numpy(table).to(where)

    def answer(query: Array) -> Array:
        rows = torch.from_numpy(np.atleast_2d(query)).to(where)
        with torch.inference_mode():
            pooled = torch.nn.functional.embedding_bag(rows, stored, mode="sum")
        found: Array = pooled.float().cpu().numpy()
        return found if query.ndim > 1 else found[0]

    return answer
