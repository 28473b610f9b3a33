from collections.abc import Callable, Iterable, Sequence
import enum
import os
from typing import Annotated, Any

import numpy
import numpy.typing
from numpy.typing import NDArray
from typing_extensions import Buffer


version: str = ...

built_with_cuda: bool = ...

class DeviceProperties:
    """What a device is and can do; None where the machine does not say."""

    @property
    def name(self) -> str:
        """As the vendor writes it."""

    @property
    def driver(self) -> str:
        """Driver version, empty on a CPU device."""

    @property
    def runtime(self) -> str:
        """CUDA version that the driver speaks, empty on a CPU device."""

    @property
    def memory_bytes(self) -> int: ...

    @property
    def multiprocessor_count(self) -> int:
        """Multiprocessors; cores of a CPU device."""

    @property
    def threads_per_multiprocessor(self) -> int: ...

    @property
    def blocks_per_multiprocessor(self) -> int: ...

    @property
    def registers_per_multiprocessor(self) -> int: ...

    @property
    def shared_bytes_per_multiprocessor(self) -> int: ...

    @property
    def compute_capability(self) -> int:
        """90 for 9.0; 0 on a CPU device."""

    @property
    def clock_mhz(self) -> int | None:
        """Highest clock."""

    @property
    def link_generation(self) -> int | None: ...

    @property
    def link_width(self) -> int | None:
        """Lanes of the link to the host."""

    @property
    def numa_node(self) -> int | None: ...

    @property
    def copy_engine_count(self) -> int: ...

    @property
    def managed_memory(self) -> bool: ...

    @property
    def concurrent_managed_access(self) -> bool: ...

    @property
    def virtual_memory_management(self) -> bool: ...

    @property
    def host_native_atomics(self) -> bool: ...

    @property
    def pageable_memory_access(self) -> bool: ...

class MemoryInfo:
    """Memory of a device at one moment."""

    @property
    def free_bytes(self) -> int: ...

    @property
    def total_bytes(self) -> int: ...

class DeviceKind(enum.Enum):
    cpu = 0

    cuda = 1

class Device:
    """A device, as a value: "cpu", "cpu:1", "cuda:0"."""

    @staticmethod
    def list() -> list[Device]:
        """The devices present, CUDA devices first. Never empty."""

    @staticmethod
    def parse(name: str) -> Device:
        """
        The device of that name; "best" is the first of list(). Raises UsageError when there is none.
        """

    @staticmethod
    def cuda_absence() -> str:
        """Why there are no CUDA devices; empty when there are."""

    @property
    def kind(self) -> DeviceKind: ...

    @property
    def ordinal(self) -> int: ...

    @property
    def name(self) -> str:
        """"cuda:0"; parse() takes it back."""

    @property
    def properties(self) -> DeviceProperties: ...

    def memory(self) -> MemoryInfo:
        """Memory at this moment."""

    def __eq__(self, other: object, /) -> bool: ...

    def __hash__(self) -> int: ...

    def __repr__(self) -> str: ...

class LatencySummary:
    """
    Exact percentiles of a run's latencies, in seconds from the scheduled arrival.
    """

    @property
    def count(self) -> int:
        """How many latencies these are."""

    @property
    def mean(self) -> float: ...

    @property
    def p50(self) -> float: ...

    @property
    def p90(self) -> float: ...

    @property
    def p99(self) -> float: ...

    @property
    def p999(self) -> float: ...

    @property
    def max(self) -> float: ...

    def __repr__(self) -> str: ...

class LoadResult:
    """What a load did, over the windows that count."""

    @property
    def incoming_per_second(self) -> float:
        """Arrivals, whether refused or not."""

    @property
    def measured_per_second(self) -> float:
        """Right answers."""

    @property
    def latency(self) -> LatencySummary:
        """From the scheduled arrival to when the client saw the answer."""

    @property
    def lateness_p99(self) -> float:
        """
        Seconds from the scheduled arrival to when the generator offered the query.
        """

    @property
    def lateness_max(self) -> float: ...

    @property
    def refused(self) -> int:
        """Offered and not admitted. Over the whole run, as are the next three."""

    @property
    def failed(self) -> int:
        """Answered with an error."""

    @property
    def wrong(self) -> int:
        """Answered, but not with the answer expected."""

    @property
    def answered(self) -> int:
        """All that came back."""

    @property
    def windows(self) -> int:
        """Windows run."""

    @property
    def stable(self) -> bool: ...

    @property
    def interrupted(self) -> bool:
        """Ctrl-C ended it early."""

    def __repr__(self) -> str: ...

def sustains(result: LoadResult, bound: float) -> bool:
    """
    Whether the system kept up (99% of what came in), nothing failed, and p99 is within `bound` seconds.
    """

def samples_needed(fraction: float, tolerance: float = ...) -> int:
    """
    How many samples a percentile needs so that, with 95% confidence, its true rank is within `tolerance`.
    """

def read_trace(path: str) -> list[float]:
    """
    The arrival times of a file, in seconds: one a line, ascending; empty lines and lines that start with # are skipped. Raises SystemError when it cannot be read, DataError naming the line that is no such number.
    """

class MemoryRoofs:
    """What a device's memory system can do, in bytes per second."""

    @property
    def to_device(self) -> float:
        """Pinned host memory to the device."""

    @property
    def from_device(self) -> float:
        """The device to pinned host memory."""

    @property
    def on_device(self) -> float:
        """Within the device; bytes read plus bytes written."""

def measure_memory_roofs(device: Device | str = ...) -> MemoryRoofs:
    """Measures them, in some tenths of a second."""

class Index:
    """
    Which documents hold which terms. Immutable; made by build(), IndexBuilder or load().
    """

    @staticmethod
    def build(documents: Iterable[str | bytes]) -> Index:
        """
        The index of documents, whose ids count from 0. Raises DataError when there is none, or for bytes that are not UTF-8.
        """

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Index:
        """
        Maps a file that save() wrote, and checks all of it. Raises SystemError when it cannot be read, DataError naming what is wrong with it.
        """

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the file whole or not at all."""

    def compile(self, text: str) -> Annotated[NDArray[numpy.uint8], dict(shape=(None,))]:
        """
        The query, as the 176 bytes that retrieval(index) takes. Words are terms; AND, OR, NOT in any case; parentheses; words beside each other mean AND. Raises UsageError with the position of what is wrong.
        """

    def compile_many(self, texts: Sequence[str]) -> Annotated[NDArray[numpy.uint8], dict(shape=(None, None))]:
        """The same for many queries: one row each."""

    def query(self, text: str, *, device: Device | str = ...) -> Hits:
        """
        Answers one query with an engine of its own. For many queries, keep an Engine.
        """

    def postings(self, term: str) -> Annotated[NDArray[numpy.uint32], dict(shape=(None,))]:
        """The ids of the documents that have the term (lower case), ascending."""

    @property
    def document_count(self) -> int: ...

    @property
    def term_count(self) -> int: ...

    @property
    def posting_count(self) -> int: ...

    def __repr__(self) -> str: ...

class IndexBuilder:
    """Makes an index of documents given one after the other."""

    def __init__(self) -> None: ...

    def add(self, document: str | bytes) -> int:
        """
        Adds a document and returns its id. Raises DataError naming the byte that is not UTF-8, and has then added nothing.
        """

    def add_many(self, documents: Iterable[str | bytes]) -> None:
        """Adds documents up to the first that raises."""

    @property
    def document_count(self) -> int: ...

    def build(self) -> Index:
        """
        The index of all documents added; the builder is then empty. Raises DataError when there is none.
        """

class Hits:
    """The answer to a Boolean query."""

    @property
    def hits(self) -> int:
        """How many documents match."""

    @property
    def ids(self) -> list[int]:
        """The smallest matching ids, at most 15."""

    def __eq__(self, other: object, /) -> bool: ...

    def __hash__(self) -> int: ...

    def __repr__(self) -> str: ...

class BruteForce:
    """
    Answers Boolean queries the slow and plain way, by looking at every document: what an engine's answers are checked against.
    """

    def __init__(self, documents: Sequence[str]) -> None:
        """Raises DataError when a document is not UTF-8."""

    def answer(self, text: str) -> Hits:
        """Raises UsageError where Index.compile() would."""

class RetrievalSampler:
    """
    An endless, reproducible sequence of Boolean queries drawn from an index.
    """

    def __init__(self, index: Index) -> None: ...

    def text(self, number: int) -> str:
        """Query `number` as a person would write it."""

class Operator:
    """
    What is done with a query. Made by light(), reference() or retrieval().
    """

    @property
    def name(self) -> str: ...

    @property
    def query_bytes(self) -> int: ...

    @property
    def answer_bytes(self) -> int: ...

    def sample(self, count: int, first: int = ...) -> Annotated[NDArray[numpy.uint8], dict(shape=(None, None))]:
        """
        Queries number `first` to `first + count - 1` of an endless, reproducible sequence, as rows of bytes.
        """

    def answer_on_host(self, queries: numpy.typing.NDArray[Any] | Buffer) -> numpy.typing.NDArray[numpy.uint8]:
        """
        The answers that the host gives, one after the other, as rows of bytes: what an engine's are checked against. Loads the operator's state each time.
        """

    def __repr__(self) -> str: ...

def light(*, query_bytes: int = ..., threads: int = ..., steps: int = ...) -> Operator:
    """
    A query so small that feeding it costs more than answering it: one block sums it and runs two chains of `steps` multiply-adds a thread; the answer has 64 bytes. Raises UsageError naming the option that is out of range.
    """

def reference(*, query_bytes: int = ..., answer_bytes: int = ..., blocks: int = ..., threads: int = ..., steps: int = ...) -> Operator:
    """
    A query whose main work is on the device: two chains of `steps` multiply-adds in each of `blocks` * `threads` threads. Raises UsageError naming the option that is out of range.
    """

def retrieval(index: Index, *, threads: int = ..., sample: bool = ...) -> Operator:
    """
    Boolean queries over an index, which it keeps; queries are made by Index.compile(). Load tests need `sample`, which costs 4 bytes of host memory a posting.
    """

class Plan:
    """
    Every choice that an engine makes. Choices are names; UsageError lists them for one that is none. What cannot work on a device is refused by Engine.
    """

    def __init__(self, *, name: str = ..., schedule: str = ..., threads: int = ..., streams: str = ..., allocator: str = ..., host_memory: str = ..., binding: str = ..., first_processor: int = ..., clients_max: int = ..., slots: int = ..., spin: float = ..., sample_stages_every: int = ...) -> None: ...

    @property
    def name(self) -> str: ...

    @name.setter
    def name(self, arg: str, /) -> None: ...

    @property
    def schedule(self) -> str:
        """"blocking" or "none"."""

    @schedule.setter
    def schedule(self, arg: str, /) -> None: ...

    @property
    def threads(self) -> int: ...

    @threads.setter
    def threads(self, arg: int, /) -> None: ...

    @property
    def streams(self) -> str:
        """"shared" or "per-thread"."""

    @streams.setter
    def streams(self, arg: str, /) -> None: ...

    @property
    def allocator(self) -> str:
        """"per-query", "stream-ordered" or "pool"."""

    @allocator.setter
    def allocator(self, arg: str, /) -> None: ...

    @property
    def host_memory(self) -> str:
        """Of the slots: "pageable", "pinned", "mapped" or "managed"."""

    @host_memory.setter
    def host_memory(self, arg: str, /) -> None: ...

    @property
    def binding(self) -> str:
        """"none" or "cores"."""

    @binding.setter
    def binding(self, arg: str, /) -> None: ...

    @property
    def first_processor(self) -> int:
        """With binding "cores": where in the order to start."""

    @first_processor.setter
    def first_processor(self, arg: int, /) -> None: ...

    @property
    def clients_max(self) -> int:
        """Clients that can be connected at once."""

    @clients_max.setter
    def clients_max(self, arg: int, /) -> None: ...

    @property
    def slots(self) -> int:
        """Queries that a client may have in flight; a power of two."""

    @slots.setter
    def slots(self, arg: int, /) -> None: ...

    @property
    def spin(self) -> float:
        """Seconds that an idle thread polls before it sleeps."""

    @spin.setter
    def spin(self, arg: float, /) -> None: ...

    @property
    def sample_stages_every(self) -> int:
        """Stage times are taken of one query in so many; 0 takes none."""

    @sample_stages_every.setter
    def sample_stages_every(self, arg: int, /) -> None: ...

    @property
    def parallelism(self) -> int:
        """Queries that the device may work on at once."""

    @property
    def streams_per_thread(self) -> float: ...

    def copy(self) -> Plan:
        """A plan that can be changed without changing this one."""

    def __repr__(self) -> str: ...

class Rung:
    """A named plan of the ladder."""

    @property
    def number(self) -> int: ...

    @property
    def id(self) -> str: ...

    @property
    def title(self) -> str: ...

    @property
    def removes(self) -> str:
        """What costs the rung before it time, and this one does not."""

    @property
    def plan(self) -> Plan:
        """A copy, with one thread."""

    @property
    def many_threads(self) -> bool:
        """Whether the number of threads is searched for."""

    def __repr__(self) -> str: ...

def rungs() -> list[Rung]:
    """All rungs of the ladder, in order."""

def find_rung(text: str) -> Rung:
    """A rung by number or id. Raises UsageError that lists them."""

def same_as(rung: Rung, device: Device | str) -> str:
    """
    Where a rung is no other work than an earlier one on that device: why; else empty.
    """

class StageTimes:
    """
    Mean seconds of the sampled queries in each stage; 0 for a stage that a plan lacks.
    """

    @property
    def samples(self) -> int: ...

    @property
    def queue(self) -> float:
        """Submitted to taken up by a worker."""

    @property
    def copy_in(self) -> float:
        """On the device's own clock, as are the next two."""

    @property
    def kernel(self) -> float:
        """The operator."""

    @property
    def copy_out(self) -> float:
        """The answer back to the host."""

    @property
    def host(self) -> float:
        """Taken up to answered, less the three above."""

    @property
    def notify(self) -> float:
        """Answered to seen by the client."""

class EngineStatistics:
    """What an engine has done since it started."""

    @property
    def submitted(self) -> int: ...

    @property
    def answered(self) -> int:
        """With an answer."""

    @property
    def failed(self) -> int:
        """With an error other than the next two."""

    @property
    def cancelled(self) -> int: ...

    @property
    def expired(self) -> int:
        """Past their deadline."""

    @property
    def refused(self) -> int:
        """Not admitted."""

    @property
    def stages(self) -> StageTimes: ...

class Completions:
    """
    Queries that have come back, in order of submission: arrays with one entry or row each.
    """

    def __len__(self) -> int: ...

    @property
    def tickets(self) -> numpy.typing.NDArray[numpy.uint64]: ...

    @property
    def tags(self) -> numpy.typing.NDArray[numpy.uint64]: ...

    @property
    def status(self) -> numpy.typing.NDArray[numpy.uint8]:
        """0 for an answer; see Errc.of_status()."""

    @property
    def answers(self) -> numpy.typing.NDArray[numpy.uint8]:
        """Zeros where there is no answer."""

class Client:
    """
    A thread's own way into an engine, made by Engine.connect(). It is used by one thread at a time, else it raises UsageError. Every query comes back exactly once. Queries are NumPy arrays of any type, or other buffers, of Operator.query_bytes bytes each; UsageError names both sizes where they do not fit. Deadlines and timeouts are seconds from now.
    """

    def submit(self, query: numpy.typing.NDArray[Any] | Buffer, *, tag: int = 0, deadline: float | None = None) -> int:
        """
        Offers one query and returns its ticket. Raises Error with the code full when Plan.slots queries are in flight or not yet polled, stopped after Engine.stop().
        """

    def submit_many(self, queries: numpy.typing.NDArray[Any] | Buffer, *, tag: int = 0, deadline: float | None = None) -> int:
        """
        Offers queries that lie one behind the other; how many were admitted, from the front. Query i has tag + i.
        """

    def poll(self, most: int = ...) -> Completions:
        """Takes in what has come back, at most `most`. Never waits."""

    def wait(self, ticket: int, timeout: float | None = ...) -> bool:
        """
        Waits until that query has come back, which is still to be polled; False when `timeout` has passed.
        """

    def ask(self, query: numpy.typing.NDArray[Any] | Buffer, *, deadline: float | None = None) -> numpy.typing.NDArray[numpy.uint8]:
        """
        Submits one query and waits for its answer. Only while nothing else of this client is in flight. Raises Error with the code that the query came back with.
        """

    def ask_many(self, queries: numpy.typing.NDArray[Any] | Buffer, *, deadline: float | None = None) -> tuple[numpy.typing.NDArray[numpy.uint8], numpy.typing.NDArray[numpy.uint8]]:
        """
        Submits all queries, as many at once as there are slots, and waits: (answers, status), a row and an entry each. A status is 0 for an answer; see Errc.of_status(). Ctrl-C drains what is in flight and raises.
        """

    def cancel(self, ticket: int) -> None:
        """
        Asks for a query not to be answered; if not yet started it comes back with the status cancelled.
        """

    @property
    def in_flight(self) -> int:
        """Queries submitted and not yet polled."""

    @property
    def oldest(self) -> int:
        """
        The ticket of the oldest query not yet polled; with none in flight, the next one's.
        """

    def close(self) -> None:
        """
        Waits for what is in flight, drops it, and lets another client connect.
        """

    def __enter__(self) -> Client: ...

    def __exit__(self, *exception: object) -> None: ...

class Engine:
    """
    Serves one operator on one device by one plan: takes all memory and starts all threads when it is made, and ends them in stop(), or at the end of a with block.
    """

    def __init__(self, device: Device | str, operator: Operator, plan: Plan = ...) -> None:
        """
        Raises UsageError for a plan that cannot work there, DeviceError when the device has no room.
        """

    def connect(self) -> Client:
        """
        A client of the caller's own. Raises UsageError when all Plan.clients_max are taken.
        """

    def drain(self, timeout: float | None = ...) -> bool:
        """
        Waits until everything submitted so far has been answered, or `timeout` seconds have passed; whether it has been.
        """

    def stop(self) -> None:
        """
        Refuses new queries, answers those not yet started with the status stopped, and ends the threads. Clients may still poll.
        """

    def statistics(self) -> EngineStatistics: ...

    @property
    def plan(self) -> Plan: ...

    @property
    def operator(self) -> Operator: ...

    @property
    def device(self) -> Device: ...

    def __enter__(self) -> Engine: ...

    def __exit__(self, *exception: object) -> None: ...

    def __repr__(self) -> str: ...

class Roofs:
    """
    The limits that the hardware sets for one operator, each measured alone, in queries per second.
    """

    @property
    def link_in(self) -> float:
        """Queries copied to the device at the bandwidth of a large copy."""

    @property
    def link_out(self) -> float:
        """Answers copied back likewise."""

    @property
    def compute(self) -> float:
        """Queries that lie on the device, one saturating launch after the other."""

    @property
    def generator(self) -> float:
        """Arrivals of one generator thread against an engine that does nothing."""

    @property
    def generators(self) -> int: ...

    @property
    def lowest(self) -> float:
        """The least of them, with all generator threads counted."""

    @property
    def lowest_name(self) -> str:
        """Which one: "link to device", "link to host", "compute" or "generator"."""

def measure_roofs(device: Device | str, operator: Operator, generators: int = ...) -> Roofs:
    """Measures all roofs, in about half a second."""

class LadderProgress:
    """What a climb is doing."""

    @property
    def rung(self) -> int:
        """0 while roofs are measured."""

    @property
    def threads(self) -> int: ...

    @property
    def rate_per_second(self) -> float:
        """Incoming rate being tried; 0 while measuring capacity."""

    @property
    def measured_per_second(self) -> float: ...

    @property
    def p99(self) -> float: ...

    @property
    def best_per_second(self) -> float:
        """Of this rung so far."""

class Capacity:
    """Queries per second of so many threads when nothing bounds latency."""

    @property
    def threads(self) -> int: ...

    @property
    def per_second(self) -> float: ...

class RungResult:
    """One rung's figures. Without `load` there are none; `note` says why."""

    @property
    def rung(self) -> Rung: ...

    @property
    def plan(self) -> Plan:
        """With the thread count that did best."""

    @property
    def load(self) -> LoadResult | None: ...

    @property
    def stages(self) -> StageTimes: ...

    @property
    def capacities(self) -> list[Capacity]:
        """Of every thread count tried."""

    @property
    def note(self) -> str: ...

class LadderResult:
    @property
    def roofs(self) -> Roofs: ...

    @property
    def rungs(self) -> list[RungResult]: ...

    @property
    def interrupted(self) -> bool:
        """Ctrl-C ended it early."""

class PlanLoad:
    """What one plan did under one load."""

    @property
    def load(self) -> LoadResult: ...

    @property
    def stages(self) -> StageTimes: ...

    @property
    def roofs(self) -> Roofs: ...

def ladder(device: Device | str, operator: Operator, *, bound: float = ..., rungs: Sequence[int] = ..., arrivals: str = ..., seed: int = ..., generators: int = ..., threads_max: int = ..., window: float = ..., rank_tolerance: float = ..., progress: Callable[[LadderProgress], None] | None = ..., finished: Callable[[RungResult], None] | None = ...) -> LadderResult:
    """
    Climbs: for each rung (all, where none is named), the highest incoming rate that is sustained with p99 within `bound` seconds. Every answer is compared with the host's. `progress` and `finished` are called from another thread. Ctrl-C ends the climb: the result then is `interrupted` and has the rungs measured so far. Raises UsageError naming the option that is out of range.
    """

def load(device: Device | str, operator: Operator, plan: Plan = ..., *, rate: float | None = ..., arrivals: str = ..., seed: int = ..., trace: Sequence[float] = ..., generators: int = ..., warm_up: float = ..., window: float = ..., windows_max: int = ..., stable_windows: int = ..., stable_within: float = ..., samples: int = ..., progress: Callable[[int, float, float], None] | None = ...) -> PlanLoad:
    """
    Puts one load of `rate` queries/s on one plan, answers verified, until `stable_windows` windows in a row differ by no more than `stable_within` and hold `samples` latencies, or `windows_max` have passed. `progress(windows, measured_per_second, p99)` is called from another thread. Ctrl-C ends it early. Raises UsageError when the rate is beyond the generator's ceiling.
    """

class LoadSession:
    """
    An engine that one load after the other is put on, every answer verified.
    """

    def __init__(self, device: Device | str, operator: Operator, plan: Plan = ..., *, generators: int = ..., seed: int = ...) -> None: ...

    def run(self, *, rate: float | None = ..., arrivals: str = ..., seed: int = ..., trace: Sequence[float] = ..., warm_up: float = ..., window: float = ..., windows_max: int = ..., stable_windows: int = ..., stable_within: float = ..., samples: int = ..., progress: Callable[[int, float, float], None] | None = ...) -> LoadResult:
        """
        One load, as load() does it; everything of it has been answered when this returns.
        """

    def statistics(self) -> EngineStatistics:
        """Over all runs so far."""

    def stop(self) -> None:
        """Ends the engine's threads."""
