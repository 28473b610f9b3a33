import asyncio
from collections.abc import Callable, Iterable, Sequence
import enum
import os
from typing import Annotated, Any, overload

import numpy
import numpy.typing
from numpy.typing import NDArray
from typing_extensions import Buffer



version: str = ...

built_with_cuda: bool = ...

built_with_fetch: bool = ...

built_with_wire: bool = ...

built_with_grpc: bool = ...

built_with_tls: bool = ...

built_with_xdp: bool = ...

class OutputFile:
    """
    A file that gets its name, or its new content, at commit(): completely or not at all. Symbolic links are followed. If the path is not a regular file, the bytes are written into it.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None: ...

    @property
    def staging(self) -> str:
        """A name under which the bytes can be written until commit()."""

    def commit(self) -> None:
        """Gives the file its new content, durably."""

class DeviceProperties:
    """The properties of a device; None if the machine does not report one."""

    @property
    def name(self) -> str:
        """The vendor's name for it."""

    @property
    def driver(self) -> str:
        """Driver version, empty on a CPU device."""

    @property
    def runtime(self) -> str:
        """CUDA version that the driver supports, empty on a CPU device."""

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
    """Free and total memory of a device or of the host at one moment."""

    @property
    def free_bytes(self) -> int: ...

    @property
    def total_bytes(self) -> int: ...

def host_memory() -> MemoryInfo:
    """
    The host memory that this process may use: the least of what the machine and each control group above the process allow and have left. Swap does not count.
    """

class DeviceKind(enum.Enum):
    """The kind of driver behind a device."""

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
        The device of that name; "best" is the first of list(). Raises UsageError if there is none.
        """

    @staticmethod
    def cuda_absence() -> str:
        """Why there are no CUDA devices; empty if there are some."""

    @property
    def kind(self) -> DeviceKind: ...

    @property
    def ordinal(self) -> int: ...

    @property
    def name(self) -> str:
        """The device's name, such as "cuda:0"; parse() accepts it."""

    @property
    def properties(self) -> DeviceProperties: ...

    def memory(self) -> MemoryInfo:
        """Memory at this moment."""

    def __eq__(self, other: object, /) -> bool: ...

    def __hash__(self) -> int: ...

    def __repr__(self) -> str: ...

def parse_bytes(text: str) -> int:
    """
    The number of bytes in "64KiB", "1.5 GiB", "128MB" or "4096" (KiB is 1024, KB is 1000). Raises UsageError for other text.
    """

class LatencySummary:
    """
    Exact percentiles of a run's latencies, in seconds from the scheduled arrival.
    """

    @property
    def count(self) -> int:
        """The number of latencies."""

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

class MachineActivity:
    """What else the processors of this process did, as shares of their time."""

    @property
    def others(self) -> float:
        """Time in which other processes ran."""

    @property
    def steal(self) -> float:
        """Time in which the hypervisor ran something else."""

    @property
    def waiting(self) -> float:
        """Time in which some task waited for a processor."""

    @property
    def runnable(self) -> float:
        """Other tasks that ran or waited for each processor, at the end."""

    @property
    def over(self) -> float:
        """Seconds observed."""

    @property
    def disturbed(self) -> str:
        """Why the machine was not quiet; empty if it was."""

    def __repr__(self) -> str: ...

class MachineWatch:
    """Observes what else the machine does, from one lap to the next."""

    def __init__(self) -> None: ...

    def lap(self) -> MachineActivity:
        """The activity since construction or the previous lap."""

class LoadResult:
    """The results of a load, over the windows that count."""

    @property
    def incoming_per_second(self) -> float:
        """Arrivals, whether refused or not."""

    @property
    def measured_per_second(self) -> float:
        """Correct answers."""

    @property
    def latency(self) -> LatencySummary:
        """
        From the scheduled arrival until the client saw the answer, for admitted queries.
        """

    @property
    def refusal(self) -> LatencySummary:
        """
        From the scheduled arrival until the client saw a server's refusal, over the whole run.
        """

    @property
    def lateness_p99(self) -> float:
        """
        Seconds from the scheduled arrival until the generator offered the query.
        """

    @property
    def measured_for(self) -> float:
        """Total length of the windows that count, in seconds."""

    @property
    def lateness_max(self) -> float: ...

    @property
    def refused(self) -> int:
        """
        Offered but not admitted. Over the whole run, like the counts that follow.
        """

    @property
    def late(self) -> int:
        """
        Queries whose deadline passed before the answer; for loads on a server.
        """

    @property
    def lost(self) -> int:
        """Sent, with no response; for loads on a server."""

    @property
    def unsent(self) -> int:
        """Not sent before the load ended; for loads on a server."""

    @property
    def failed(self) -> int:
        """Answered with an error."""

    @property
    def wrong(self) -> int:
        """Answered, but not with the expected answer."""

    @property
    def answered(self) -> int:
        """All that came back with an answer, correct or not."""

    @property
    def windows(self) -> int:
        """The number of windows."""

    @property
    def stable(self) -> bool:
        """Whether the windows' rates agree and nothing was refused."""

    @property
    def complete(self) -> bool:
        """Whether everything scheduled in the windows was offered and answered."""

    @property
    def machine(self) -> MachineActivity:
        """What else the machine did meanwhile."""

    @property
    def disturbed(self) -> str:
        """Why the figures may not be this machine's own; empty if it was quiet."""

    @property
    def refused_counted(self) -> int:
        """Refused arrivals in the windows that count."""

    @property
    def unanswered_counted(self) -> int:
        """
        Arrivals in the same windows that got no answer for any reason, including refused ones.
        """

    @property
    def p99_offered(self) -> float:
        """
        p99 with each unanswered query counted as later than any answer; inf if it falls among these.
        """

    @property
    def gave_up(self) -> bool:
        """
        Whether it ended early as hopeless; the figures then cover part of a window.
        """

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended it early."""

    def __repr__(self) -> str: ...

def sustains(result: LoadResult, bound: float) -> bool:
    """
    Whether the system kept up (99% of arrivals), nothing failed, and p99 is within `bound` seconds.
    """

def samples_needed(fraction: float, tolerance: float = ...) -> int:
    """
    The number of samples that a percentile needs so that, with 95% confidence, its true rank is within `tolerance`.
    """

def read_trace(path: str) -> list[float]:
    """
    The arrival times in a file, in seconds: one on each line, ascending; empty lines and lines that start with # are skipped. Raises SystemError if the file cannot be read, and DataError that names the line with an invalid time.
    """

class MemoryRoofs:
    """The bandwidths of a device's memory system, in bytes per second."""

    @property
    def to_device(self) -> float:
        """From pinned host memory to the device."""

    @property
    def from_device(self) -> float:
        """From the device to pinned host memory."""

    @property
    def on_device(self) -> float:
        """Within the device; bytes read plus bytes written."""

def memory_roofs(device: Device | str = ...) -> MemoryRoofs:
    """Measures these rates, in a few tenths of a second."""

def memory_copies(devices: Sequence[Device | str], bytes: int, runs: int = ...) -> list[float]:
    """
    Bytes read plus bytes written per second, of all devices together, for copies of `bytes` within the memory of each at the same time: one figure for each run.
    """

class CopyRuns:
    """The results of a copy benchmark, run by run."""

    @property
    def seconds(self) -> list[float]:
        """Seconds of each run, from the first add to the end of the wait."""

    @property
    def bytes(self) -> int:
        """Bytes that each run moves."""

    @property
    def supported(self) -> bool:
        """False if the route is not available on this device."""

    @property
    def verified(self) -> bool:
        """Whether the target of every run held the bytes of its sources."""

    def __repr__(self) -> str: ...

class HostWayCost:
    """The cost of one way to move host memory to a device, in seconds."""

    @property
    def way(self) -> str: ...

    @property
    def supported(self) -> bool:
        """False if this device or system does not support it."""

    @property
    def bytes(self) -> int:
        """Bytes of each pass."""

    @property
    def once(self) -> float:
        """Seconds before the first pass."""

    @property
    def back(self) -> float:
        """Seconds after the last pass."""

    @property
    def fill(self) -> list[float]:
        """Seconds of one host thread in each pass."""

    @property
    def transfer(self) -> list[float]:
        """Seconds of transfer in each pass."""

    @property
    def verified(self) -> bool: ...

class CopyRoofs:
    """
    The best rates of the link, in bytes per second, one figure for each run.
    """

    @property
    def engine(self) -> list[float]:
        """One large copy from pinned memory."""

    @property
    def kernel(self) -> list[float]:
        """A kernel that streams through pinned memory."""

def copy_batch(device: Device | str = ..., *, copy_bytes: int = ..., count: int = ..., layout: str = ..., odd: bool = ..., source: str = ..., route: str = ..., threads: int = ..., slot_bytes: int = ..., stores: str = ..., linger: float = ..., repeats: int = ..., runs: int = ...) -> CopyRuns:
    """
    Copies a batch from the host to the device several times, through a CopyBatch.

    `layout` is contiguous, scattered_source or scattered; `odd` puts both sides at odd addresses; `route` is automatic, engine, batch_call, merged or gather. `threads` (0: by the machine), `slot_bytes` and `stores` (cached, streaming) say how pageable sources are staged. `linger`: seconds that a kernel stays after a short batch, to take the next. Every run is verified. Ctrl-C ends it early.
    """

def copy_roofs(device: Device | str = ..., bytes: int = ..., runs: int = ...) -> CopyRoofs:
    """Measures the roofs that copies are compared with."""

def host_ways(device: Device | str = ..., bytes: int = ..., passes: int = ...) -> list[HostWayCost]:
    """
    Measures what each way from ordinary host memory to the device costs: pageable, staged, pool, registered, read.
    """

class Hits:
    """The answer to a Boolean query."""

    @property
    def hits(self) -> int:
        """The number of matching documents, listed or not."""

    @property
    def ids(self) -> list[int]:
        """The matching ids of the page, ascending."""

    @property
    def offset(self) -> int:
        """The position of the first of them among all matches, from 0."""

    def __eq__(self, other: object, /) -> bool: ...

    def __hash__(self) -> int: ...

    def __repr__(self) -> str: ...

class Ranking:
    """The documents that match a query, the most relevant first."""

    @property
    def hits(self) -> int:
        """The number of matching documents, listed or not."""

    @property
    def ids(self) -> Annotated[NDArray[numpy.uint32], dict(shape=(None,))]:
        """The ids of the page."""

    @property
    def scores(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """
        Their BM25 scores, descending. Documents of equal score are in the order of their ids.
        """

    def __repr__(self) -> str: ...

class Index:
    """
    Records which documents have which terms. Immutable; made by build(), IndexBuilder or load().
    """

    @staticmethod
    def build(documents: Iterable[str | bytes], *, fold_diacritics: bool = False, frequencies: bool = False, stem: str | None = None) -> Index:
        """
        Builds the index of documents, whose ids count from 0. Words are those of UAX #29, case-folded by NFKC; with `fold_diacritics` without accents, in documents and in queries. With `frequencies` it stores how often words occur, for rank(). With `stem`, one of stem_languages(), words are reduced to stems by Snowball, in documents and in queries. Raises DataError if there is no document or one is not UTF-8, and UsageError for an unknown language.
        """

    @staticmethod
    def stem_languages() -> list[str]:
        """
        The values of `stem`: the names of the algorithms of libstemmer; empty if Headrace was built without it.
        """

    @staticmethod
    def synthetic(*, documents: int, terms: int, length: float = ..., exponent: float = ..., seed: int = ..., threads: int = ..., progress: Callable[[float], None] | None = ...) -> Index:
        """
        Builds the index of a synthetic corpus whose words are independent and follow Zipf's law; word k, counted from 1 in order of frequency, is w and k with leading zeros. `length` is the mean number of words of a document. The result is the same for any number of threads (0: all). Raises UsageError for a value out of range, and SystemError if there is not enough memory: 4 bytes a posting, about 36 a term and 4 a term and thread.
        """

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Index:
        """
        Maps or unpacks a file that save() wrote, and checks all of it. Raises SystemError if it cannot be read, and DataError that names the defect.
        """

    def save(self, path: str | os.PathLike[str], *, packed: bool = False) -> None:
        """
        Writes the file completely or not at all. With `packed` it is about a third as large, and load() unpacks it into memory instead of mapping it.
        """

    def compile(self, text: str) -> NDArray[numpy.uint8]:
        """
        Compiles a query into the 240 bytes that retrieval(index) takes. Words are split like documents; "quoted" ones are never operators; AND, OR, NOT in any case; parentheses; adjacent words mean AND. At most 32 terms and 64 levels of parentheses. Raises UsageError with the position of the error.
        """

    def compile_many(self, texts: Sequence[str]) -> NDArray[numpy.uint8]:
        """The same for many queries, one row each, with as many threads as pay."""

    def query(self, text: str, *, device: Device | str = 'best', offset: int = 0, limit: int = 15) -> Hits:
        """
        The number of matching documents, and the ids of a page of them: at most `limit`, from number `offset` on. The first 15 are found by a separate engine on the device; every other page is found on the host. For many queries, keep an Engine.
        """

    def rank(self, text: str, *, offset: int = 0, limit: int = 15, k1: float = 1.2, b: float = 0.75) -> Ranking:
        """
        The matching documents, the most relevant first by BM25, found on the host. Terms that are not negated count. Raises UsageError if the index has no frequencies.
        """

    def matches(self, text: str) -> Annotated[NDArray[numpy.uint32], dict(shape=(None,))]:
        """
        The ids of all documents that satisfy a query, ascending, found on the host; an answer of the operator only counts them. Raises UsageError as compile() does.
        """

    def postings(self, term: str) -> Annotated[NDArray[numpy.uint32], dict(shape=(None,))]:
        """
        The ids of the documents that have the term (lower case, stemmed), ascending.
        """

    @property
    def words(self) -> str:
        """
        How text is split into words: unicode, or ascii in an index from a file of version 1.
        """

    @property
    def fold_diacritics(self) -> bool:
        """Whether accents are removed."""

    @property
    def stem(self) -> str | None:
        """The language whose rules stem words, or None."""

    @property
    def frequencies(self) -> bool:
        """Whether it stores how often words occur, for rank()."""

    @property
    def document_count(self) -> int: ...

    @property
    def term_count(self) -> int: ...

    @property
    def posting_count(self) -> int: ...

    def __repr__(self) -> str: ...

class IndexBuilder:
    """Builds an index from documents given one after the other."""

    def __init__(self, *, fold_diacritics: bool = ..., frequencies: bool = ..., stem: str | None = ...) -> None: ...

    def add(self, document: str | bytes) -> int:
        """
        Adds a document and returns its id. Raises DataError that names the byte that is not UTF-8, and adds nothing then.
        """

    def add_many(self, documents: Iterable[str | bytes]) -> None:
        """Adds documents up to the first that raises."""

    @property
    def document_count(self) -> int: ...

    def build(self) -> Index:
        """
        Builds the index of all documents added, and empties the builder. Raises DataError if there is none.
        """

class BruteForce:
    """
    Answers Boolean queries in the slow, obvious way, by looking at every document, to verify an engine's answers.
    """

    def __init__(self, documents: Sequence[str], *, fold_diacritics: bool = ..., stem: str | None = ...) -> None:
        """Raises DataError if a document is not UTF-8."""

    def answer(self, text: str) -> Hits:
        """Raises UsageError if Index.compile() would."""

class RetrievalSampler:
    """
    An endless, reproducible sequence of Boolean queries drawn from an index.
    """

    def __init__(self, index: Index) -> None: ...

    def text(self, number: int) -> str:
        """The text of query `number`, as a person would write it."""

class Operator:
    """
    The computation that answers a query. Made by light(), reference(), retrieval(), from a Python function by operator(), or from a shared object by load_library().
    """

    @property
    def name(self) -> str: ...

    @property
    def query_bytes(self) -> int: ...

    @property
    def answer_bytes(self) -> int: ...

    @property
    def answer_type(self) -> str:
        """The type of answers for clients; see headrace.dtypes. Empty for bytes."""

    @property
    def query_type(self) -> str:
        """The type of queries. Empty if C++ does not know it."""

    @property
    def answers_inline(self) -> bool:
        """Whether it supports Plan.answer_inline."""

    def sample(self, count: int, first: int = ...) -> Annotated[NDArray[numpy.uint8], dict(shape=(None, None))]:
        """
        Queries number `first` to `first + count - 1` of an endless, reproducible sequence, as rows of bytes.
        """

    def answer_on_host(self, queries: numpy.typing.NDArray[Any] | Buffer) -> numpy.typing.NDArray[Any]:
        """
        Answers queries on the host, one after the other, in the form that clients return, to verify an engine's answers. Loads the operator's state each time.
        """

    def __repr__(self) -> str: ...

def light(*, query_bytes: int = ..., threads: int = ..., steps: int = ...) -> Operator:
    """
    A query so small that delivering it costs more than answering it: one block sums it and runs two chains of `steps` multiply-adds a thread; the answer has 64 bytes. Raises UsageError that names the option out of range.
    """

def reference(*, query_bytes: int = ..., answer_bytes: int = ..., blocks: int = ..., threads: int = ..., steps: int = ...) -> Operator:
    """
    A query whose main work is on the device: two chains of `steps` multiply-adds in each of `blocks` * `threads` threads. Raises UsageError that names the option out of range.
    """

def retrieval(index: Index, *, threads: int = ..., sample: bool = ...) -> Operator:
    """
    Boolean queries over an index, which the operator keeps; Index.compile() makes queries. Load tests need `sample`, which costs 4 bytes of host memory a posting.
    """

def load_library(path: str | os.PathLike[str]) -> Operator:
    """
    The operator in a shared object built by CMake's headrace_add_operator(); see docs/operator-libraries.md. Loading runs code of the file, which stays loaded until the program ends. Raises MissingFileError, DataError if it is not a complete shared object for this machine, and UsageError if it has no operator or was built for another version of Headrace, which the message names.
    """

def function_operator(name: str, query_bytes: int, answer_bytes: int, function: Callable[[], int] | None, state: int, owner: object, sample: Callable[[int], object] | None, answer_type: str, arrays: list[tuple[str, int, int, tuple[int, ...], int | None]] = ..., code: Callable[[Device, list[str]], bytes] | None = None, blocks: int = 1, threads: int = 32) -> Operator:
    """
    The operator that calls a C function on CPU devices. `function` returns its address whenever it is loaded there; see operators/function.hpp. `owner` keeps the function and the memory at `state` alive. `sample` returns query number i, of query_bytes bytes. `code` returns a cubin with the kernels of these names for a CUDA device. They get `arrays`: name, address, bytes, shape, and the number of the CUDA device that holds it, or None.
    """

def function_kernels(compute_capability: int) -> bytes:
    """
    The kernels that call a function on a CUDA device, as LTO-IR, for nvJitLink; `compute_capability` is 90 for 9.0. Raises DeviceError in a build without CUDA, and for GPUs older than those of the build.
    """

def mlp_operator(layers: list[tuple[numpy.typing.NDArray[numpy.float32], numpy.typing.NDArray[numpy.float32] | None]], activation: str, dtype: str, threads: int) -> Operator:
    """
    A dense network: for each layer its weights (outputs x inputs) and its biases or None. See operators.mlp().
    """

def topk_operator(matrix: numpy.typing.NDArray[numpy.float32] | numpy.typing.NDArray[numpy.float16], k: int, metric: str, dtype: str, threads: int) -> Operator:
    """The best rows of a matrix of float32 or float16. See operators.topk()."""

class Plan:
    """
    All choices of an engine. A choice is a name; UsageError for an unknown name lists the known ones. Engine rejects what does not work on a device.
    """

    def __init__(self, *, name: str = ..., schedule: str = ..., threads: int = ..., streams_per_thread: int = ..., streams: str = ..., allocator: str = ..., host_memory: str = ..., binding: str = ..., first_processor: int = ..., batch_max: int = ..., batch_age: float = ..., doorbell: str = ..., blocks: int = ..., block_threads: int = ..., workers: int = ..., share: float = ..., answer_inline: bool = ..., hang_after: float = ..., clients_max: int = ..., slots: int = ..., in_flight_max: int = ..., latency_max: float = ..., spin: float = ..., sample_stages_every: int = ...) -> None: ...

    @property
    def name(self) -> str: ...

    @name.setter
    def name(self, arg: str, /) -> None: ...

    @property
    def schedule(self) -> str:
        """
        "blocking", "pipelined", "async", "graph", "persistent", "dispatched", "caller" or "none".
        """

    @schedule.setter
    def schedule(self, arg: str, /) -> None: ...

    @property
    def threads(self) -> int:
        """Engine threads; "dispatched" and "caller" have none."""

    @threads.setter
    def threads(self, arg: int, /) -> None: ...

    @property
    def streams_per_thread(self) -> int:
        """
        Batches that a thread has in flight, each on its own stream; "persistent": kernels that it feeds.
        """

    @streams_per_thread.setter
    def streams_per_thread(self, arg: int, /) -> None: ...

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
        """Memory of the slots: "pageable", "pinned", "mapped" or "managed"."""

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
    def batch_max(self) -> int:
        """A batch closes at this many queries ..."""

    @batch_max.setter
    def batch_max(self, arg: int, /) -> None: ...

    @property
    def batch_age(self) -> float:
        """... or when its first query has been held for this many seconds."""

    @batch_age.setter
    def batch_age(self, arg: float, /) -> None: ...

    @property
    def doorbell(self) -> str:
        """The doorbell of persistent kernels: "words" or "barrier"."""

    @doorbell.setter
    def doorbell(self, arg: str, /) -> None: ...

    @property
    def blocks(self) -> int:
        """Blocks that answer one query; 0 leaves it to the operator."""

    @blocks.setter
    def blocks(self, arg: int, /) -> None: ...

    @property
    def block_threads(self) -> int:
        """Threads of each block; 0 leaves it to the operator."""

    @block_threads.setter
    def block_threads(self, arg: int, /) -> None: ...

    @property
    def workers(self) -> int:
        """"dispatched": resident blocks; 0 means as many as fit into `share`."""

    @workers.setter
    def workers(self, arg: int, /) -> None: ...

    @property
    def share(self) -> float:
        """
        "dispatched": the part of the device that resident blocks take, above 0 and at most 1, so that engines can share it. It may change: Engine.change().
        """

    @share.setter
    def share(self, arg: float, /) -> None: ...

    @property
    def answer_inline(self) -> bool:
        """
        "dispatched": the block that dispatches queries answers a query that comes alone.
        """

    @answer_inline.setter
    def answer_inline(self, arg: bool, /) -> None: ...

    @property
    def hang_after(self) -> float:
        """
        Seconds after which a resident kernel that does not answer is given up.
        """

    @hang_after.setter
    def hang_after(self, arg: float, /) -> None: ...

    @property
    def clients_max(self) -> int:
        """The most connected clients."""

    @clients_max.setter
    def clients_max(self, arg: int, /) -> None: ...

    @property
    def slots(self) -> int:
        """Queries that a client has memory for; a power of two."""

    @slots.setter
    def slots(self, arg: int, /) -> None: ...

    @property
    def in_flight_max(self) -> int:
        """
        Queries that a client may have in flight, at most `slots`; 0: `slots`. It may change: Engine.change().
        """

    @in_flight_max.setter
    def in_flight_max(self, arg: int, /) -> None: ...

    @property
    def latency_max(self) -> float:
        """
        Seconds from a query's submission after which it comes back as deadline exceeded, at most 3600; an earlier deadline of its own holds. 0: no bound. It may change: Engine.change().
        """

    @latency_max.setter
    def latency_max(self, arg: float, /) -> None: ...

    @property
    def spin(self) -> float:
        """Seconds that an idle thread polls before it sleeps."""

    @spin.setter
    def spin(self, arg: float, /) -> None: ...

    @property
    def sample_stages_every(self) -> int:
        """Stage times are recorded for one query in this many; 0 records none."""

    @sample_stages_every.setter
    def sample_stages_every(self, arg: int, /) -> None: ...

    @property
    def parallelism(self) -> int:
        """
        Batches that the device may work on at once; not for schedules without engine threads.
        """

    def copy(self) -> Plan:
        """A separate copy of the plan."""

    def __repr__(self) -> str: ...

    def __eq__(self, other: object, /) -> bool: ...

    __hash__: None  # type: ignore[assignment]

    def to_json(self) -> str:
        """All choices as a JSON object; durations in microseconds."""

    @staticmethod
    def from_json(text: str) -> Plan:
        """
        The plan that to_json() wrote. Raises UsageError that names an invalid choice, and DataError for invalid JSON.
        """

    @staticmethod
    def tuned(device: Device | str, operator: Operator, bound: float = ...) -> Plan:
        """
        The plan with the highest rate at p99 within `bound` seconds: searched for, which takes up to a minute, or taken from the cache of earlier searches. Raises Error if no plan keeps the bound. tune() gives figures and more choice.
        """

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
        """The cost of the previous rung that this one avoids."""

    @property
    def plan(self) -> Plan:
        """A copy, with one thread."""

    @property
    def many_threads(self) -> bool:
        """Whether the number of threads is searched for."""

    @property
    def many_streams(self) -> bool:
        """Whether streams_per_thread is searched for."""

    @property
    def many_batches(self) -> bool:
        """Whether batch_max is searched for."""

    def __repr__(self) -> str: ...

def rungs() -> list[Rung]:
    """All rungs of the ladder, in order."""

def find_rung(text: str) -> Rung:
    """A rung by number or id. Raises UsageError that lists them."""

def same_as(rung: Rung, device: Device | str) -> str:
    """
    Why a rung does the same work as an earlier one on that device; empty if it does not.
    """

class AsyncClient:
    """
    A client of an engine for coroutines: made by Engine.connect_async(), or from the URL shm://NAME/MODEL for an engine that another process of this machine and user serves, like Client. All coroutines of one event loop may share it; the first call determines the loop. Answers have the operator's type. A cancelled call, as by asyncio.timeout(), does not get its answer and leaves the line of waiting calls.
    """

    def __init__(self, url: str, *, slots: int = ..., waiting_max: int = ...) -> None:
        """
        Connects to a server's model, like Client and with the same errors. `waiting_max` calls may wait for free slots. Once the server has ended, unanswered queries come back as stopped.
        """

    def ask(self, query: numpy.typing.NDArray[Any] | Buffer, *, deadline: float | None = None) -> asyncio.Future[Any]:
        """
        Submits one query immediately, without being awaited, and returns the future of its answer. If Plan.in_flight_max queries are in flight, a copy waits in line for a free slot. Awaiting raises Error with the code of a query that failed. The call itself raises UsageError for a query of the wrong size and if no event loop or another one is running, and Error with the code full if the line is full.
        """

    def ask_many(self, queries: numpy.typing.NDArray[Any] | Buffer, *, deadline: float | None = None) -> asyncio.Future[tuple[numpy.typing.NDArray[Any], numpy.typing.NDArray[numpy.uint8]]]:
        """
        Like ask(), with all queries of an array, which must stay unchanged until the future is done: (answers, status), with a row and an entry each. A status is 0 for an answer; see Errc.of_status(). In line it counts as one call.
        """

    @property
    def query_dtype(self) -> object:
        """Same as for Client."""

    @property
    def answer_dtype(self) -> object:
        """Same as for Client."""

    @property
    def in_flight(self) -> int:
        """Submitted queries that have not come back."""

    @property
    def waiting(self) -> int:
        """Calls that wait for free slots."""

    def close(self) -> asyncio.Future[None]:
        """
        Rejects new queries. The future is done once all queries are back; then another client may connect.
        """

    def __aenter__(self) -> asyncio.Future[AsyncClient]: ...

    def __aexit__(self, *exception: object) -> asyncio.Future[None]: ...

class StageTimes:
    """
    Mean seconds of the sampled queries in each stage; 0 for a stage that a plan does not have.
    """

    @property
    def samples(self) -> int: ...

    @property
    def queue(self) -> float:
        """From submission until a worker takes it up."""

    @property
    def copy_in(self) -> float:
        """On the device's own clock, like the next two."""

    @property
    def kernel(self) -> float:
        """The operator."""

    @property
    def copy_out(self) -> float:
        """The copy of the answer to the host."""

    @property
    def host(self) -> float:
        """From being taken up until answered, less the three stages above."""

    @property
    def notify(self) -> float:
        """From the answer until the client sees it."""

class StageSample:
    """The stages of one sampled query, in seconds."""

    @property
    def submitted(self) -> float:
        """On a steady clock: only differences are meaningful."""

    @property
    def queue(self) -> float:
        """From submission until taken up."""

    @property
    def host(self) -> float:
        """From being taken up until answered, less the next three."""

    @property
    def copy_in(self) -> float:
        """On the device's own clock, like the next two."""

    @property
    def kernel(self) -> float:
        """The operator."""

    @property
    def copy_out(self) -> float:
        """The copy of the answer to the host."""

    @property
    def whole(self) -> float:
        """From submission until answered."""

class EngineStatistics:
    """What an engine has done since it started."""

    @property
    def submitted(self) -> int: ...

    @property
    def answered(self) -> int:
        """Queries answered."""

    @property
    def failed(self) -> int:
        """Queries with an error other than the next two."""

    @property
    def cancelled(self) -> int: ...

    @property
    def expired(self) -> int:
        """Queries past their deadline."""

    @property
    def refused(self) -> int:
        """Queries not admitted."""

    @property
    def stages(self) -> StageTimes: ...

    @property
    def recent(self) -> list[StageSample]:
        """
        The last sampled queries of each worker, at most 32 of each, by `submitted`.
        """

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
    def answers(self) -> numpy.typing.NDArray[Any]:
        """
        In the operator's type, or rows of bytes. Zeros for queries without an answer.
        """

class Client:
    """
    A thread's client of an engine: made by Engine.connect(), or from the URL shm://NAME/MODEL for an engine that another process of this machine and user serves (`headrace serve --shm NAME`, or wire.Server with `shm`). Only one thread at a time may use it, otherwise it raises UsageError. Every query comes back exactly once. Queries are NumPy arrays of any type, or other buffers, of Operator.query_bytes bytes each; UsageError names both sizes if they differ. Deadlines and timeouts are seconds from now.
    """

    def __init__(self, url: str, *, slots: int = ...) -> None:
        """
        Connects to a server's model: shm://NAME/MODEL, or shm://NAME if the server has one model. `slots` queries may be in flight, a power of two; 0 is 256, or as many as the server allows if that is less. Once the server has ended, is about to stop or has another model under the name, unanswered queries come back as stopped. Raises UsageError for another URL and for a model that the server does not have, and SystemError if there is no such server, it does not answer for 10 s, or it has no room.
        """

    def submit(self, query: numpy.typing.NDArray[Any] | Buffer, *, tag: int = 0, deadline: float | None = None) -> int:
        """
        Offers one query and returns its ticket. Raises Error with the code full if Plan.in_flight_max queries are in flight, not yet polled, or late and still being answered, and with the code stopped after Engine.stop().
        """

    def submit_many(self, queries: numpy.typing.NDArray[Any] | Buffer, *, tag: int = 0, deadline: float | None = None) -> int:
        """
        Offers consecutive queries; returns how many were admitted, from the front. Query i has tag + i.
        """

    def poll(self, most: int = ...) -> Completions:
        """
        Returns queries that have come back, at most `most`, in order of submission; a query whose deadline has passed does not wait for those before it. Never waits.
        """

    def wait(self, ticket: int, timeout: float | None = ...) -> bool:
        """
        Waits until that query has come back, at its deadline at the latest; it must still be polled. False if only `timeout` has passed.
        """

    def ask(self, query: numpy.typing.NDArray[Any] | Buffer, *, deadline: float | None = None) -> Any:
        """
        Submits one query and waits for its answer, in the operator's type, or as an array of bytes without one. Only while nothing else of this client is in flight. Raises Error with the code of a query that failed.
        """

    def ask_many(self, queries: numpy.typing.NDArray[Any] | Buffer, *, deadline: float | None = None) -> tuple[numpy.typing.NDArray[Any], numpy.typing.NDArray[numpy.uint8]]:
        """
        Submits all queries, as many at once as there are slots, and waits: (answers, status), with a row and an entry each. A status is 0 for an answer; see Errc.of_status(). Ctrl-C drains the queries in flight and raises.
        """

    def cancel(self, ticket: int) -> None:
        """
        Requests that a query not be answered; if it has not started, it comes back with the status cancelled.
        """

    @property
    def in_flight(self) -> int:
        """Submitted queries not yet polled."""

    @property
    def oldest(self) -> int:
        """
        The ticket of the oldest query not yet polled; with none in flight, that of the next one.
        """

    @property
    def query_dtype(self) -> object:
        """The type of a query, from the operator; bytes if it has none."""

    @property
    def answer_dtype(self) -> object:
        """The type of an answer; bytes if the operator has none."""

    def close(self) -> None:
        """
        Waits for queries in flight, drops them, and lets another client connect. A client of another process drops them at once.
        """

    def __enter__(self) -> Client: ...

    def __exit__(self, *exception: object) -> None: ...

class Engine:
    """
    Serves one operator on one device by one plan. It takes all memory and starts all threads when it is made, and ends them in stop(), or at the end of a with block.
    """

    def __init__(self, device: Device | str, operator: Operator, plan: Plan = ...) -> None:
        """
        Raises UsageError for a plan that cannot work there, and DeviceError if the device has no room.
        """

    def connect(self) -> Client:
        """
        A client for the caller. Raises UsageError if Plan.clients_max clients are connected.
        """

    def connect_async(self, *, waiting_max: int = ...) -> AsyncClient:
        """
        A client for the coroutines of one asyncio event loop, in which `waiting_max` calls may wait for free slots. Raises UsageError if Plan.clients_max clients are connected.
        """

    def drain(self, timeout: float | None = ...) -> bool:
        """
        Waits until everything submitted so far has been answered, or `timeout` seconds have passed; returns whether it has been.
        """

    def stop(self) -> None:
        """
        Rejects new queries, returns those not yet started with the status stopped, and ends the threads. Clients may still poll.
        """

    def change(self, *, share: float | None = ..., in_flight_max: int | None = ..., latency_max: float | None = ...) -> None:
        """
        Changes these fields of the plan while queries are in flight; none is lost, and each comes back once. It returns when the change is in force, and `plan` then has it. A new `share` restarts the pool: queries that no block works on yet wait some milliseconds. A lower `in_flight_max` leaves the queries beyond it in flight. `latency_max` holds for queries submitted from then on. Raises UsageError for values that the plan could not have had and, with the code full, if the device has no room for the share; nothing has changed then. Callable from any thread.
        """

    def statistics(self) -> EngineStatistics:
        """What the engine has done so far. Callable from any thread."""

    @property
    def plan(self) -> Plan:
        """A copy of the plan in force, with what change() has changed."""

    @property
    def operator(self) -> Operator: ...

    @property
    def device(self) -> Device: ...

    def __enter__(self) -> Engine: ...

    def __exit__(self, *exception: object) -> None: ...

    def __repr__(self) -> str: ...

def answer_into(engine: Engine, queries: int, query_bytes: int, answers: int, answer_bytes: int, stream: int) -> None:
    """
    Answers queries at an address of the engine's device, in the order of that stream, whose handle is given (0: the default one). On a CPU device it waits for the answers. headrace.serve.answer_into() takes arrays.
    """

class Roofs:
    """
    The limits that the hardware sets for one operator, each measured alone, in queries per second.
    """

    @property
    def link_in(self) -> float:
        """Queries copied to the device at the bandwidth of a large copy."""

    @property
    def link_out(self) -> float:
        """Answers copied back in the same way."""

    @property
    def compute(self) -> float:
        """
        Queries that are already on the device, one saturating launch after the other.
        """

    @property
    def generator(self) -> float:
        """Arrivals of one generator thread against an engine that does nothing."""

    @property
    def generators(self) -> int: ...

    @property
    def lowest(self) -> float:
        """The lowest of them, with all generator threads counted."""

    @property
    def lowest_name(self) -> str:
        """Its name: "link to device", "link to host", "compute" or "generator"."""

def roofs(device: Device | str, operator: Operator, generators: int = ...) -> Roofs:
    """Measures all roofs, in about half a second."""

class LadderProgress:
    """The progress of a climb."""

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
        """Best rate of this rung so far."""

class Capacity:
    """Queries per second with this many threads when nothing bounds latency."""

    @property
    def threads(self) -> int:
        """Engine threads; generator threads under "dispatched"."""

    @property
    def streams_per_thread(self) -> int: ...

    @property
    def batch_max(self) -> int: ...

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
    def generators(self) -> int:
        """Generator threads of `load`."""

    @property
    def tried(self) -> list[LoadResult]:
        """All loads on `plan`, by incoming rate."""

    @property
    def stages(self) -> StageTimes: ...

    @property
    def samples(self) -> list[StageSample]:
        """Some queries of `load`, for a timeline."""

    @property
    def capacities(self) -> list[Capacity]:
        """For every thread count tried."""

    @property
    def note(self) -> str: ...

class LadderResult:
    """
    The results of a climb for each rung, and the roofs to compare them with.
    """

    @property
    def roofs(self) -> Roofs:
        """The higher ones of two measurements, before and after the climb."""

    @property
    def roofs_disturbed(self) -> str:
        """Why they may not be the machine's own, or empty."""

    @property
    def rungs(self) -> list[RungResult]: ...

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended it early."""

class PlanSearch:
    """
    The highest rate that one plan sustains. Without `confirmed` there is none; `note` says why.
    """

    @property
    def plan(self) -> Plan:
        """As it ran: with a client for each generator thread."""

    @property
    def generators(self) -> int: ...

    @property
    def capacity(self) -> float:
        """Queries per second when nothing bounds latency."""

    @property
    def confirmed(self) -> list[LoadResult]:
        """The loads at the highest rate at which all of them were sustained."""

    @property
    def loads(self) -> int:
        """
        Loads that it took to confirm that rate, including those not sustained.
        """

    @property
    def tried(self) -> list[LoadResult]:
        """Every load, by incoming rate."""

    @property
    def note(self) -> str: ...

class PlanLoad:
    """The results of one plan under one load."""

    @property
    def load(self) -> LoadResult: ...

    @property
    def stages(self) -> StageTimes: ...

    @property
    def roofs(self) -> Roofs:
        """The higher ones of two measurements, before and after the load."""

    @property
    def roofs_disturbed(self) -> str:
        """Why they may not be the machine's own, or empty."""

def ladder(device: Device | str, operator: Operator, *, bound: float = ..., rungs: Sequence[int] = ..., arrivals: str = ..., seed: int = ..., generators: int = ..., single_thread: bool = ..., threads_max: int = ..., window: float = ..., rank_tolerance: float = ..., budget: float | None = ..., progress: Callable[[LadderProgress], None] | None = ..., finished: Callable[[RungResult], None] | None = ...) -> LadderResult:
    """
    Climbs: for each rung (all, where none is named), the highest incoming rate that is sustained with p99 within `bound` seconds. Every answer is compared with the host's. `progress` and `finished` are called from another thread. Ctrl-C ends the climb: the result then is `interrupted` and has the rungs measured so far. `budget` ends it likewise after so many seconds. `single_thread` keeps every rung to one engine thread and one generator. Raises UsageError naming the option that is out of range.
    """

def search_plan(device: Device | str, operator: Operator, plan: Plan = ..., *, bound: float = ..., arrivals: str = ..., seed: int = ..., generators: int = ..., start: float = ..., most: float = ..., confirmations: int = ..., tries: int = ..., resolution: float = ..., window: float = ..., rank_tolerance: float = ...) -> PlanSearch:
    """
    Searches for the highest incoming rate that `plan` sustains with p99 within `bound` seconds, from `start` queries/s (0: from its capacity) and never above `most`, and confirms it `confirmations` times. A rate is not sustained when `tries` loads in a row are not; in the end a good and a bad rate differ by the share `resolution`. Answers are verified. Ctrl-C ends it with what there is. Raises UsageError naming the option that is out of range.
    """

def load(device: Device | str, operator: Operator, plan: Plan = ..., *, rate: float | None = ..., arrivals: str = ..., seed: int = ..., trace: Sequence[float] = ..., generators: int = ..., warm_up: float = ..., window: float = ..., windows_max: int = ..., stable_windows: int = ..., stable_within: float = ..., samples: int = ..., progress: Callable[[int, float, float], None] | None = ...) -> PlanLoad:
    """
    Puts one load of `rate` queries/s on one plan, answers verified, until `stable_windows` windows in a row differ by no more than `stable_within` and hold `samples` latencies, or `windows_max` have passed. `progress(windows, measured_per_second, p99)` is called from another thread. Ctrl-C ends it early. Raises UsageError when the rate is beyond the generator's ceiling.
    """

class LoadSession:
    """An engine for consecutive loads, every answer verified."""

    def __init__(self, device: Device | str, operator: Operator, plan: Plan = ..., *, generators: int = ..., seed: int = ...) -> None: ...

    def run(self, *, rate: float | None = ..., arrivals: str = ..., seed: int = ..., trace: Sequence[float] = ..., warm_up: float = ..., window: float = ..., windows_max: int = ..., stable_windows: int = ..., stable_within: float = ..., samples: int = ..., progress: Callable[[int, float, float], None] | None = ...) -> LoadResult:
        """
        Runs one load, like load(); everything of it has been answered when this returns.
        """

    def statistics(self) -> EngineStatistics:
        """Over all runs so far."""

    def stop(self) -> None:
        """Ends the engine's threads."""

class GpuLimits:
    """The limits of a GPU that determine how many blocks it holds."""

    @property
    def name(self) -> str: ...

    @property
    def compute_capability(self) -> int:
        """89 for 8.9."""

    @property
    def multiprocessors(self) -> int: ...

    @property
    def threads(self) -> int:
        """For each multiprocessor, like the next three."""

    @property
    def blocks(self) -> int: ...

    @property
    def registers(self) -> int: ...

    @property
    def shared_bytes(self) -> int: ...

    @property
    def shared_bytes_per_block(self) -> int: ...

    def __repr__(self) -> str: ...

class KernelResources:
    """The resources of a multiprocessor that a kernel takes."""

    @property
    def registers(self) -> int:
        """For each thread."""

    @property
    def shared_bytes(self) -> int:
        """For each block, static."""

    @property
    def local_bytes(self) -> int:
        """For each thread, including spilled registers."""

    @property
    def threads_max(self) -> int:
        """Most threads of a block."""

class Occupancy:
    """How many blocks a multiprocessor holds, and what limits them."""

    @property
    def blocks(self) -> int:
        """The least of the next four."""

    @property
    def by_threads(self) -> int: ...

    @property
    def by_blocks(self) -> int: ...

    @property
    def by_registers(self) -> int: ...

    @property
    def by_shared(self) -> int: ...

    @property
    def limited_by(self) -> str:
        """"threads", "blocks", "registers" or "shared memory"."""

def known_gpus() -> list[GpuLimits]:
    """The GPUs with known limits, by name."""

def find_gpu(name: str) -> GpuLimits:
    """
    A GPU of the table: "L40", "h100-sxm". Raises UsageError that lists them.
    """

def gpu_limits(device: Device | str) -> GpuLimits:
    """
    The limits of a CUDA device that is present. Raises UsageError for a CPU device.
    """

def occupancy(gpu: GpuLimits, registers: int, shared_bytes: int = ..., block_threads: int = ...) -> Occupancy:
    """
    Blocks that one multiprocessor holds, by the rules of NVIDIA's occupancy calculator.
    """

def resident_queries(multiprocessors: int, blocks_per_multiprocessor: int, blocks_per_query: int) -> int:
    """Queries that can be resident at once: 142 x 10 / 32 = 44."""

def combinations(parallelism: int, threads_max: int = ...) -> list[tuple[int, int]]:
    """
    (threads, streams of each) for each number of threads: 31 gives (1, 31), (2, 15), (3, 10), ...
    """

def kernel_resources(device: Device | str, operator: Operator) -> KernelResources:
    """
    The resources that the operator's kernel takes on that device; zeros on a CPU device.
    """

def resident_blocks_max(device: Device | str, operator: Operator, block_threads: int = ...) -> int:
    """
    Blocks of the operator's kernel that can be resident at once, as the device itself reports.
    """

class CsrPart:
    """The part of a sparse matrix on one device."""

    @property
    def device(self) -> Device: ...

    @property
    def first_row(self) -> int: ...

    @property
    def row_count(self) -> int: ...

    @property
    def entry_count(self) -> int: ...

    @property
    def bytes(self) -> int:
        """Bytes that each multiplication reads besides the vectors."""

    @property
    def remote_read_count(self) -> int:
        """Entries whose element of x is on a page of another device."""

    @property
    def remote_bytes(self) -> int:
        """
        Bytes that its blocks read over links if x is read in place: 32 for each sector, once a block.
        """

    @property
    def copied_count(self) -> int:
        """
        Elements of x that every multiplication copies to the device; 0 if x is read in place.
        """

    def __repr__(self) -> str: ...

def gather(reader: Device | str, owner: Device | str) -> float:
    """
    Bytes per second at which a kernel on `reader` copies data on pages of `owner` to its own memory.
    """

class CsrMatrix:
    """
    A sparse matrix in compressed rows over one or several devices; vectors are one range over all of them.
    """

    def __init__(self, devices: Device | str | Sequence[Device | str], indptr: numpy.typing.NDArray[Any], indices: numpy.typing.NDArray[Any], data: numpy.typing.NDArray[Any], shape: tuple[int, int], *, reads: str = ...) -> None:
        """
        Copies a matrix to its devices, with rows cut by equal numbers of entries. `indptr` and `indices` are int32 or int64, `data` is float32 or float64. The part of x on other devices is read "in-place" or "copied" first; "automatic" takes the one that moves less. Raises UsageError that names the first wrong row or entry.
        """

    @staticmethod
    def from_scipy(devices: Device | str | Sequence[Device | str], matrix: object, *, reads: str = ...) -> CsrMatrix:
        """
        The same from a sparse matrix or array of SciPy, which converts formats other than CSR.
        """

    @property
    def shape(self) -> tuple[int, int]: ...

    @property
    def nnz(self) -> int:
        """Number of entries, whether zero or not."""

    @property
    def dtype(self) -> str:
        """"float32" or "float64"."""

    @property
    def parts(self) -> list[CsrPart]:
        """The part of each device."""

    def multiply(self, x: numpy.typing.NDArray[Any], times: int = ...) -> numpy.typing.NDArray[Any]:
        """
        A x, or A^times x for a square matrix, as a new array; x stays on the devices in between.
        """

    def __matmul__(self, x: numpy.typing.NDArray[Any]) -> numpy.typing.NDArray[Any]: ...

    def time(self, samples: int = ..., repeats: int = ...) -> list[float]:
        """
        Seconds of one multiplication with the x that is on the devices, measured `samples` times over `repeats` in a row, without copies from or to the host.
        """

    def __repr__(self) -> str: ...

class Processor:
    """A logical processor that this process may run on."""

    @property
    def os_index(self) -> int:
        """Its number in the operating system."""

    @property
    def core(self) -> int: ...

    @property
    def last_level_cache(self) -> int: ...

    @property
    def numa_node(self) -> int: ...

    @property
    def package(self) -> int: ...

    def __repr__(self) -> str: ...

class Topology:
    """Processors and caches, as reported by hwloc."""

    @staticmethod
    def machine() -> Topology:
        """This machine."""

    @staticmethod
    def synthetic(description: str) -> Topology:
        """A machine in hwloc's description, such as "numa:2 l3:4 core:4 pu:2"."""

    @property
    def processors(self) -> list[Processor]: ...

    @property
    def core_count(self) -> int: ...

    @property
    def last_level_cache_count(self) -> int: ...

    def by_cache_distance(self) -> list[Processor]:
        """
        The processors by cache distance from the first: the order in which threads are bound.
        """

    def describe(self) -> str:
        """One line for each cache: which cores share it."""

    def reordering(self) -> str:
        """Whether the order of cores can matter here, and why."""

class CoreRoundTrip:
    """The time of a word from one processor to another and back."""

    @property
    def a(self) -> Processor: ...

    @property
    def b(self) -> Processor: ...

    @property
    def distance(self) -> str: ...

    @property
    def round_trip(self) -> float:
        """Seconds."""

def core_round_trips(each: int = ...) -> list[CoreRoundTrip]:
    """
    The round trip between pairs of processors, at most `each` of every distance from the first; empty on a machine of one processor.
    """

class DeviceHealth:
    """
    What the management library reports for a device at this moment; None for what it does not report.
    """

    @property
    def absence(self) -> str:
        """Why it reports nothing at all; empty if it does."""

    @property
    def persistence(self) -> bool | None: ...

    @property
    def bar1_bytes(self) -> int | None:
        """The window through which PCIe peers and the host see its memory."""

    @property
    def link_generation(self) -> int | None:
        """Current PCIe generation; an idle device may run at a lower rate."""

    @property
    def link_width(self) -> int | None: ...

    @property
    def link_generation_max(self) -> int | None:
        """The generation that device and machine agree on."""

    @property
    def link_width_max(self) -> int | None: ...

    @property
    def device_generation_max(self) -> int | None:
        """The highest generation of the device in any machine."""

    @property
    def nvlink_count(self) -> int:
        """NVLinks that are up."""

    @property
    def near_processors(self) -> list[int]: ...

def read_health(device: Device | str) -> DeviceHealth:
    """
    Reads what the management library reports for a device at the moment; nothing for a CPU device.
    """

class PeerConnection:
    """How two devices are joined."""

    @property
    def way(self) -> str: ...

    @property
    def access(self) -> bool:
        """Whether kernels of the first can access the memory of the second."""

    @property
    def native_atomics(self) -> bool: ...

def peer_connection(from_device: Device | str, to_device: Device | str) -> PeerConnection:
    """How one device reaches the memory of another."""

class LinkRoute:
    """A route of bytes: from which memory to which, and by what means."""

    @property
    def device(self) -> Device:
        """The device that does the work."""

    @property
    def path(self) -> str:
        """
        "to device", "from device", "both ways", "within", "from peer", "to peer" or "both peers".
        """

    @property
    def memory(self) -> str: ...

    @property
    def means(self) -> str:
        """"engine" or "kernel"."""

    @property
    def peer(self) -> Device | None: ...

    @property
    def peer_access(self) -> bool: ...

    def __repr__(self) -> str: ...

def link_routes(device: Device | str, peer: Device | str | None = ...) -> list[LinkRoute]:
    """
    Every route of a device to the host and within itself; with `peer`, those between the two instead.
    """

def why_not(route: LinkRoute) -> str:
    """
    Why a route cannot be measured; empty if it can be tried. Raises UsageError for an invalid route.
    """

class LinkPoint:
    """The rate of a link at one size of transfer."""

    @property
    def bytes(self) -> int: ...

    @property
    def rate(self) -> float:
        """Bytes per second, of several transfers queued; median."""

    @property
    def least(self) -> float: ...

    @property
    def most(self) -> float: ...

    @property
    def alone(self) -> float:
        """Seconds of one transfer by itself; median."""

    @property
    def samples(self) -> int: ...

    @property
    def verified(self) -> bool: ...

class LinkCurve:
    """The rate of a route by size of transfer."""

    @property
    def route(self) -> LinkRoute: ...

    @property
    def points(self) -> list[LinkPoint]: ...

    @property
    def gated(self) -> bool:
        """
        Whether the device timed it from behind a gate, which excludes the time to enqueue.
        """

    @property
    def note(self) -> str:
        """Why there are no points, or a remark on them."""

    def saturation_bytes(self, share: float = ...) -> int:
        """
        The smallest size that reaches that share of the best rate; 0 without points.
        """

def links_at_once(routes: Sequence[LinkRoute], sizes: Sequence[int], samples: int = ..., bytes_per_sample: int = ..., seed: int = ...) -> list[LinkCurve]:
    """
    Measures several routes while all of them are busy: a curve for each. Raises as link() does.
    """

def link(route: LinkRoute, sizes: Sequence[int], samples: int = ..., bytes_per_sample: int = ..., seed: int = ...) -> LinkCurve:
    """
    Measures one route. Raises UsageError for sizes that do not ascend or are not multiples of 16.
    """

def link_sizes(least: int, most: int, factor: int) -> list[int]:
    """Sizes from `least` to `most`, each `factor` times the previous one."""

def pcie_rate(generation: int | None, width: int | None) -> float | None:
    """
    The one-way rate of such a PCIe link, in bytes per second; None if either is unknown.
    """

class ChaseResult:
    """The latency of a load that depends on the previous one."""

    @property
    def nanoseconds(self) -> float: ...

    @property
    def least(self) -> float: ...

    @property
    def most(self) -> float: ...

    @property
    def cycles(self) -> float | None:
        """Cycles of the multiprocessor's clock; None on a CPU device."""

    @property
    def verified(self) -> bool: ...

    @property
    def note(self) -> str: ...

def chase(device: Device | str, memory: str = ..., peer: Device | str | None = ..., bytes: int = ..., stride_bytes: int = ..., first_cache: bool = ..., steps: int = ..., samples: int = ...) -> ChaseResult:
    """
    One thread follows a chain of addresses in random order through local, peer or host memory.
    """

class OwnerCache:
    """
    Which device's L2 caches data that is read over a link; nanoseconds a step.
    """

    @property
    def swept(self) -> float: ...

    @property
    def after_owner(self) -> float: ...

    @property
    def after_reader(self) -> float: ...

    @property
    def verified(self) -> bool: ...

    @property
    def note(self) -> str: ...

def owner_cache(reader: Device | str, owner: Device | str, samples: int = ...) -> OwnerCache:
    """
    Follows a chain in the owner's memory with caches swept, after the owner and after the reader has followed it.
    """

class AtomicsResult:
    """Additions to the same words, per second."""

    @property
    def local_per_second(self) -> float: ...

    @property
    def remote_per_second(self) -> float: ...

    @property
    def together_per_second(self) -> float: ...

    @property
    def verified(self) -> bool:
        """Whether every word is the sum of what was added to it."""

    @property
    def note(self) -> str: ...

def peer_atomics(owner: Device | str, other: Device | str, samples: int = ...) -> AtomicsResult:
    """Both devices add to words on `owner`."""

def host_atomics(device: Device | str, samples: int = ...) -> AtomicsResult:
    """Device and host add to words in host memory; "local" is the host."""

class HidingPoint:
    """Nanoseconds of a far load with work before its use."""

    @property
    def count(self) -> int: ...

    @property
    def far_only(self) -> float: ...

    @property
    def work_only(self) -> float: ...

    @property
    def both(self) -> float: ...

    @property
    def hidden(self) -> float:
        """The part of the shorter one that the longer one hid."""

class HidingCurve:
    """How much work hides behind a far load."""

    @property
    def points(self) -> list[HidingPoint]: ...

    @property
    def verified(self) -> bool: ...

    @property
    def note(self) -> str: ...

def hiding(device: Device | str, memory: str = ..., peer: Device | str | None = ..., work: str = ..., samples: int = ...) -> HidingCurve:
    """
    Times a load from far memory with 0 to 32 local loads, or 0 to 4,096 arithmetic steps, before its use. `work` is loads or arithmetic.
    """

class BatchedSend:
    """Many small copies against one large one; seconds."""

    @property
    def pieces(self) -> int: ...

    @property
    def piece_bytes(self) -> int: ...

    @property
    def each(self) -> float:
        """One call for each piece."""

    @property
    def whole(self) -> float:
        """One call for all."""

    @property
    def batch(self) -> float:
        """The pieces through a CopyBatch."""

    @property
    def samples(self) -> int: ...

    @property
    def verified(self) -> bool: ...

def batched_send(device: Device | str, pieces: int = ..., piece_bytes: int = ..., samples: int = ...) -> BatchedSend:
    """
    Sends pieces from the host one by one, as one copy and as a batch. Raises UsageError for no pieces, and for sizes that are no multiple of 16.
    """

class PeerCosts:
    """
    The costs of access to another device's memory; seconds, bytes per second.
    """

    @property
    def note(self) -> str: ...

    @property
    def copy_without(self) -> float: ...

    @property
    def copy_with(self) -> float: ...

    @property
    def enable(self) -> float: ...

    @property
    def allocations(self) -> int: ...

    @property
    def allocation_bytes(self) -> int: ...

    @property
    def allocate_without(self) -> float: ...

    @property
    def allocate_with(self) -> float: ...

    @property
    def span_pages(self) -> int: ...

    @property
    def allow(self) -> float: ...

    @property
    def span_note(self) -> str: ...

def peer_costs(device: Device | str, peer: Device | str, samples: int = ...) -> PeerCosts:
    """
    What copies, allocations and spans cost with and without access to a peer's memory.
    """

class CounterCheck:
    """NVLink's counters after a known transfer."""

    @property
    def note(self) -> str: ...

    @property
    def moved_bytes(self) -> int: ...

    @property
    def received_bytes(self) -> int: ...

    @property
    def sent_bytes(self) -> int: ...

    @property
    def rate(self) -> float: ...

def counters(device: Device | str, peer: Device | str, bytes: int = ...) -> CounterCheck:
    """
    Copies this many bytes in pieces of 64 MiB over NVLink and compares its counters.
    """

class TunerProgress:
    """The progress of a tuner."""

    @property
    def phase(self) -> str:
        """"coarse", "fine", "rates" or "exhaustive"."""

    @property
    def done(self) -> int:
        """Plans of this phase that are done."""

    @property
    def of(self) -> int:
        """0 if unknown."""

    @property
    def plan(self) -> Plan:
        """The plan being tried."""

    @property
    def best_per_second(self) -> float: ...

class TunedPlan:
    """A plan that was found, and its results."""

    @property
    def plan(self) -> Plan: ...

    @property
    def generators(self) -> int: ...

    @property
    def per_second(self) -> float:
        """Sustained with p99 within the bound; 0 if no plan was found."""

    @property
    def p99(self) -> float: ...

    @property
    def load(self) -> LoadResult | None:
        """None if the plan comes from the cache and was not measured."""

    @property
    def stages(self) -> StageTimes: ...

    @property
    def took(self) -> float:
        """Seconds."""

    @property
    def space(self) -> int:
        """Number of plans to choose from."""

    @property
    def looked_at(self) -> int:
        """Plans whose capacity was measured."""

    @property
    def searched(self) -> int:
        """Plans whose highest rate was searched for."""

    @property
    def cached(self) -> bool: ...

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended it early."""

    @property
    def note(self) -> str:
        """Why there is no plan."""

def tune(device: Device | str, operator: Operator, *, bound: float = ..., budget: float = ..., schedules: Sequence[str] = ..., arrivals: str = ..., seed: int = ..., generators: int = ..., single_thread: bool = ..., threads_max: int = ..., window: float = ..., rank_tolerance: float = ..., cache: str = ..., cache_file: str = ..., measure_cached: bool = ..., exhaustive: bool = ..., progress: Callable[[TunerProgress], None] | None = ...) -> TunedPlan:
    """
    Searches for the plan that sustains the highest rate with p99 within `bound` seconds, for about `budget` seconds. What is found is kept in `cache_file` (empty: plan_cache_file()); `cache` "refresh" searches again, "ignore" neither reads nor writes it. `exhaustive` searches the rate of every plan there is, without cache and budget. `progress` is called from another thread. Ctrl-C ends it with the best so far. Raises UsageError naming the option that is out of range.
    """

def plan_cache_file() -> str:
    """The file that stores the plans found; empty if no folder is known."""

class Place:
    """Where a page of a span is: on a device, or on the host."""

    @staticmethod
    def parse(name: str) -> Place:
        """The place of that name: "host", or a device's. Raises UsageError."""

    @staticmethod
    def host() -> Place:
        """The memory of the host."""

    @staticmethod
    def on(device: Device | str) -> Place:
        """The memory of a device."""

    @property
    def is_host(self) -> bool: ...

    @property
    def device(self) -> Device | None:
        """None for the host."""

    @property
    def name(self) -> str: ...

    def __eq__(self, other: object, /) -> bool: ...

    def __hash__(self) -> int: ...

    def __repr__(self) -> str: ...

class Placement:
    """A rule that places the pages of a span; it holds no memory."""

    @staticmethod
    def all(place: Place | Device | str) -> Placement:
        """All pages in one place."""

    @staticmethod
    def interleaved(shares: Sequence[tuple[Place | Device | str, int]]) -> Placement:
        """
        Pages distributed over (place, weight) in proportion to the weights, as evenly as whole pages allow.
        """

    @staticmethod
    def blocked(places: Sequence[Place | Device | str]) -> Placement:
        """Consecutive pages, as evenly as possible for each place."""

    @staticmethod
    def map(pages: Sequence[Place | Device | str]) -> Placement:
        """A place for each page."""

    @staticmethod
    def budget(device: Device | str, device_bytes: int, heat: Sequence[int] | None = ...) -> Placement:
        """
        At most `device_bytes` on the device, the rest on the host: spread evenly, or with the hottest pages on the device if `heat` has a count of accesses for each page.
        """

    def pages(self, page_count: int, page_bytes: int = ...) -> list[Place]:
        """The place of each page of a span of this many pages."""

class Right(enum.Enum):
    """What a device, or the host, may do with a page."""

    none = 0

    read = 1

    read_write = 2

class SpanUse:
    """Pages and bytes in one place."""

    @property
    def place(self) -> Place: ...

    @property
    def page_count(self) -> int: ...

    @property
    def bytes(self) -> int: ...

class SpanStatistics:
    """The pages of a span in each place, and what was moved."""

    @property
    def places(self) -> list[SpanUse]:
        """In the order in which they first appear."""

    @property
    def pages_moved(self) -> int: ...

    @property
    def bytes_moved(self) -> int: ...

    @property
    def spare_pages(self) -> int:
        """Kept from moves, for the next ones."""

class SharedPages:
    """
    Device pages of a span as file descriptors, for another process. The caller must close the descriptors.
    """

    def __init__(self, bytes: int, device: Device | str, descriptors: Sequence[int], page_bytes: int = ...) -> None: ...

    @property
    def bytes(self) -> int: ...

    @property
    def device(self) -> Device: ...

    @property
    def descriptors(self) -> list[int]:
        """One for each page."""

    @property
    def page_bytes(self) -> int: ...

PAGE_BYTES: int = ...

SPARE_PAGES: int = ...

class Span:
    """
    One range of addresses whose pages, of 2 MiB or more, are on devices and on the host as a Placement says, and can be moved later.
    """

    def __init__(self, device: Device | str, bytes: int, placement: Placement, *, accessed_by: Sequence[Device | str] = ..., numa_node: int | None = ..., shareable: bool = ..., page_bytes: int = ...) -> None:
        """
        The contents are undefined. The size of a page is a power of two, at least PAGE_BYTES; large ones move with fewer calls of the driver. Raises UsageError for invalid arguments, and DeviceError if there is no virtual memory management or not enough memory.
        """

    @property
    def device(self) -> Device: ...

    @property
    def address(self) -> int:
        """Address of the first byte; 0 once released."""

    @property
    def bytes(self) -> int:
        """The requested size."""

    @property
    def page_count(self) -> int: ...

    @property
    def page_bytes(self) -> int:
        """Size of a page; 0 once released."""

    def __len__(self) -> int: ...

    @property
    def places(self) -> list[Place]:
        """The place of each page."""

    def statistics(self) -> SpanStatistics:
        """Where the pages are, and what moves have cost so far."""

    def __repr__(self) -> str: ...

    def right(self, device: Device | str, page: int) -> Right:
        """What a device may do with a page; none if it cannot reach it."""

    def host_right(self, page: int) -> Right:
        """What the host may do with a page; none if it cannot reach it."""

    @property
    def host_readable(self) -> bool:
        """Whether the host may read every page."""

    def allow(self, device: Device | str, right: Right, pages: range | None = None) -> None:
        """
        Sets what a device may do with pages. Work in flight on them must be done.
        """

    def allow_host(self, right: Right, pages: range | None = None) -> None:
        """The same for the host, which on CUDA reaches host pages only."""

    @overload
    def move(self, to: Placement) -> None:
        """
        Moves every page that is not where the placement says, and waits for it. Work in flight on the span must be done. After a failure every page is intact, in its old place or its new one.
        """

    @overload
    def move(self, to: Place | Device | str, pages: range | None = None) -> None:
        """Moves pages to one place."""

    def keep_spare_pages(self, count_per_place: int) -> None:
        """
        Keeps at most this many of the pages that moves leave in a place, in each place, for later moves to it (SPARE_PAGES unless called; 0: none), and releases any more at once.
        """

    def trim(self) -> None:
        """Releases the pages kept from moves; later moves keep pages again."""

    def release(self) -> None:
        """
        Releases all memory now. Raises UsageError while arrays or operators use the span.
        """

    def share(self) -> SharedPages:
        """
        The pages for another process, which needs the descriptors (socket.send_fds). Raises UsageError if the span was not made shareable, or has pages on the host or on two devices.
        """

    @staticmethod
    def from_shared(pages: SharedPages) -> Span:
        """
        Maps the result of share() in another process. The descriptors may be closed afterwards.
        """

    def numpy(self) -> NDArray[numpy.uint8]:
        """
        The bytes as an array, without a copy, read-only if the host may only read. Raises UsageError if the host may not read a page, such as a page on a device with CUDA.
        """

    def array(self, dtype: Any, shape: int | Sequence[int] | None = None, offset: int = 0) -> NDArray[Any]:
        """
        The same as items of a type, from byte `offset` on; as many as there are if `shape` is None.
        """

    def __dlpack__(self, **kwargs: Any) -> Any:
        """
        The bytes for torch.from_dlpack() and similar functions, without a copy. Raises UsageError if the device may not read a page.
        """

    def __dlpack_device__(self) -> tuple[int, int]: ...

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """For CuPy, Numba and PyTorch; only on CUDA devices."""

    @staticmethod
    def advised(device: Device | str, profile: AccessProfile, rates: MemoryRates | None = ...) -> Span:
        """
        A span of profile.bytes placed as advise() says: all on the host for zero-copy, what fits on the device for managed memory.
        """

def lookup_operator(table: numpy.typing.NDArray[numpy.float32] | numpy.typing.NDArray[numpy.float16], most: int, pooling: str, weighted: bool, dtype: str, device_bytes: int | None, counts: numpy.typing.NDArray[numpy.uint64] | None, exponent: float | None, threads: int) -> Operator:
    """
    Pooled rows of a table of float32 or float16, which is copied. See operators.lookup().
    """

def lookup_operator_of_span(span: Span, rows: int, columns: int, most: int, pooling: str, weighted: bool, dtype: str, exponent: float | None, threads: int) -> Operator:
    """
    Pooled rows in a span, which the operator keeps. See operators.lookup().
    """

class OversubscriptionCell:
    """One measurement of `oversubscribe`."""

    @property
    def pattern(self) -> str: ...

    @property
    def rows(self) -> str:
        """For zipf-rows only."""

    @property
    def operation(self) -> str: ...

    @property
    def strategy(self) -> str: ...

    @property
    def factor(self) -> float:
        """Bytes of data over bytes of the budget."""

    @property
    def page_bytes(self) -> int:
        """
        For random-warp, the page that is drawn; for prefetched, the pages that data is split into.
        """

    @property
    def threads(self) -> int:
        """Threads of a block."""

    @property
    def synchronised(self) -> bool:
        """Whether the threads of a block meet after every iteration of the loop."""

    def __repr__(self) -> str: ...

class AccessRoofs:
    """
    Bytes per second at which a kernel goes through memory in order, with one operation.
    """

    @property
    def operation(self) -> str: ...

    @property
    def on_device(self) -> float:
        """Memory of the device."""

    @property
    def over_link(self) -> float:
        """Mapped host memory."""

class OversubscriptionResult:
    """The results of a cell."""

    @property
    def cell(self) -> OversubscriptionCell: ...

    @property
    def data_bytes(self) -> int: ...

    @property
    def touched_bytes(self) -> int:
        """Bytes that one run touches, counted as often as they are touched."""

    @property
    def device_bytes(self) -> int:
        """Those on the device."""

    @property
    def host_bytes(self) -> int:
        """
        Those on the host. With on-demand all cross the link and count for both.
        """

    @property
    def blocks(self) -> int:
        """Blocks of the launch."""

    @property
    def times(self) -> list[float]:
        """
        Seconds of each timed run, on the device's clock; empty if it was not run.
        """

    @property
    def bytes_per_second(self) -> float:
        """Touched, at the median time."""

    @property
    def roof(self) -> float:
        """
        Bytes touched over max(device bytes / memory bandwidth, host bytes / link bandwidth). Caches may exceed it if rows are touched repeatedly.
        """

    @property
    def verified(self) -> bool: ...

    @property
    def note(self) -> str:
        """Why it was not run."""

class OversubscriptionReport:
    """Every cell, and the roofs of the same run."""

    @property
    def budget_bytes(self) -> int: ...

    @property
    def roofs(self) -> list[AccessRoofs]:
        """One for each operation."""

    @property
    def copy_to_device(self) -> float:
        """
        Bytes per second of the copy engine, which migrates pages; 0 if not needed.
        """

    @property
    def cells(self) -> list[OversubscriptionResult]: ...

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended it early."""

class OversubscriptionProgress:
    """The current measurement."""

    @property
    def done(self) -> int:
        """Cells that are done."""

    @property
    def of(self) -> int:
        """0 while roofs are measured."""

    @property
    def cell(self) -> OversubscriptionCell: ...

def access_patterns() -> list[str]:
    """The names of access patterns."""

def access_operations() -> list[str]:
    """The names of operations on data."""

def access_strategies() -> list[str]:
    """The names of the ways to keep data larger than a device."""

def oversubscribe(device: Device | str = ..., *, patterns: Sequence[str] | None = ..., rows: Sequence[str] | None = ..., operations: Sequence[str] | None = ..., strategies: Sequence[str] | None = ..., factors: Sequence[float] | None = ..., page_bytes: Sequence[int] | None = ..., threads: Sequence[int] = ..., synchronised: Sequence[bool] = ..., budget_bytes: int = ..., blocks_per_multiprocessor: int = ..., runs: int = ..., progress: Callable[[OversubscriptionProgress], None] | None = ...) -> OversubscriptionReport:
    """
    Bandwidth of every access pattern, operation, strategy and factor, verified, next to its roof. Data is `factor` times `budget_bytes` (0: oversubscription_budget()), which stands for the device's memory. Arguments that are not given mean all values, except for operations (read) and page sizes (2 MiB). A cell that cannot be run has a `note` that says why. `progress` is called from another thread. Ctrl-C ends it with the cells so far. Raises UsageError that names the option out of range.
    """

def oversubscription_budget(device: Device | str = ...) -> int:
    """
    An eighth of the device's free memory in whole pages, but at most a thirty-second of the host's.
    """

class OperationRates:
    """Bytes of data processed per second, each counted once."""

    def __init__(self, read: float = ..., write: float = ..., read_modify_write: float = ...) -> None: ...

    @property
    def read(self) -> float: ...

    @read.setter
    def read(self, arg: float, /) -> None: ...

    @property
    def write(self) -> float: ...

    @write.setter
    def write(self, arg: float, /) -> None: ...

    @property
    def read_modify_write(self) -> float: ...

    @read_modify_write.setter
    def read_modify_write(self, arg: float, /) -> None: ...

class FaultRates:
    """The rate at which page faults bring data to the device, by pattern."""

    def __init__(self, grid_stride: float = ..., block_stride: float = ..., random: float = ...) -> None: ...

    @property
    def grid_stride(self) -> float: ...

    @grid_stride.setter
    def grid_stride(self, arg: float, /) -> None: ...

    @property
    def block_stride(self) -> float: ...

    @block_stride.setter
    def block_stride(self, arg: float, /) -> None: ...

    @property
    def random(self) -> float: ...

    @random.setter
    def random(self, arg: float, /) -> None: ...

class MemoryRates:
    """
    The memory rates of a device and of its host for a kernel; bytes per second and seconds.
    """

    @overload
    def __init__(self) -> None: ...

    @overload
    def __init__(self, other: MemoryRates) -> None: ...

    @property
    def name(self) -> str: ...

    @name.setter
    def name(self, arg: str, /) -> None: ...

    @property
    def device(self) -> OperationRates:
        """A kernel that goes through device memory in order."""

    @device.setter
    def device(self, arg: OperationRates, /) -> None: ...

    @property
    def device_random(self) -> OperationRates:
        """A kernel that reads 128 bytes at random places with each warp."""

    @device_random.setter
    def device_random(self, arg: OperationRates, /) -> None: ...

    @property
    def link(self) -> OperationRates:
        """In order through pinned host memory."""

    @link.setter
    def link(self, arg: OperationRates, /) -> None: ...

    @property
    def link_random(self) -> OperationRates:
        """At random in pinned host memory."""

    @link_random.setter
    def link_random(self, arg: OperationRates, /) -> None: ...

    @property
    def link_reach_bytes(self) -> float:
        """Host memory that address translation covers, in bytes."""

    @link_reach_bytes.setter
    def link_reach_bytes(self, arg: float, /) -> None: ...

    @property
    def link_beyond_reach(self) -> float:
        """Fraction of the rate beyond that reach."""

    @link_beyond_reach.setter
    def link_beyond_reach(self, arg: float, /) -> None: ...

    @property
    def faults(self) -> FaultRates:
        """Managed memory, first touch."""

    @faults.setter
    def faults(self, arg: FaultRates, /) -> None: ...

    @property
    def prefetch(self) -> float:
        """The copy engine, pinned host memory to the device."""

    @prefetch.setter
    def prefetch(self, arg: float, /) -> None: ...

    @property
    def host_copy(self) -> float:
        """One host thread that copies within host memory."""

    @host_copy.setter
    def host_copy(self, arg: float, /) -> None: ...

    @property
    def device_page(self) -> float:
        """Seconds to allocate and map a page of 2 MiB on the device."""

    @device_page.setter
    def device_page(self, arg: float, /) -> None: ...

    @property
    def host_page(self) -> float:
        """The same for a host page."""

    @host_page.setter
    def host_page(self, arg: float, /) -> None: ...

    @property
    def page_move(self) -> float:
        """Seconds to move a page between device and host."""

    @page_move.setter
    def page_move(self, arg: float, /) -> None: ...

    @property
    def device_latency(self) -> float: ...

    @device_latency.setter
    def device_latency(self, arg: float, /) -> None: ...

    @property
    def link_latency(self) -> float: ...

    @link_latency.setter
    def link_latency(self, arg: float, /) -> None: ...

    @property
    def in_flight_bytes(self) -> float:
        """Bytes of random accesses that a full device has in flight."""

    @in_flight_bytes.setter
    def in_flight_bytes(self, arg: float, /) -> None: ...

    @property
    def cache_bytes(self) -> float: ...

    @cache_bytes.setter
    def cache_bytes(self, arg: float, /) -> None: ...

    @property
    def cache(self) -> float:
        """Bytes per second from the cache."""

    @cache.setter
    def cache(self, arg: float, /) -> None: ...

    @property
    def one_memory(self) -> bool:
        """Whether the device's memory is the host's."""

    @one_memory.setter
    def one_memory(self, arg: bool, /) -> None: ...

    @property
    def memory_bytes(self) -> int:
        """Memory of the device; free memory if the device is present."""

    @memory_bytes.setter
    def memory_bytes(self, arg: int, /) -> None: ...

    @property
    def managed(self) -> bool:
        """Managed memory with concurrent access."""

    @managed.setter
    def managed(self, arg: bool, /) -> None: ...

    @property
    def managed_bytes(self) -> int | None:
        """Most managed memory that may be allocated; None if unknown."""

    @managed_bytes.setter
    def managed_bytes(self, arg: int | None, /) -> None: ...

    def __repr__(self) -> str: ...

def known_memory_rates() -> list[MemoryRates]:
    """The rates of known machines, by name."""

def find_memory_rates(name: str) -> MemoryRates:
    """
    The rates of a machine in the table, such as "H100". Raises UsageError that lists them.
    """

def memory_rates_of(device: Device | str) -> MemoryRates:
    """
    The rates of a present device without a measurement: those in the table for such a device.
    """

def memory_rates(device: Device | str = ...) -> MemoryRates:
    """Measures these rates, in a few tenths of a second."""

class AccessProfile:
    """
    How a kernel uses its data, as far as it determines where the data should be.
    """

    def __init__(self, bytes: int, budget_bytes: int, pattern: str = ..., operation: str = ..., *, reuse: float = ..., exponent: float = ..., row_bytes: int = ..., order: str = ..., hot_sweeps: float = ..., heat: Sequence[int] = ..., pinned_already: bool = ...) -> None:
        """
        `bytes` of data and `budget_bytes` of device memory for it; the number of passes over the data (`reuse`, where infinity ignores preparation); zipf-rows: `exponent`, `row_bytes`, `order` (ordered or scattered); `heat`: counted accesses to each page of 2 MiB.
        """

    @property
    def pattern(self) -> str: ...

    @property
    def operation(self) -> str: ...

    @property
    def bytes(self) -> int: ...

    @property
    def budget_bytes(self) -> int: ...

    @property
    def reuse(self) -> float: ...

    @property
    def exponent(self) -> float: ...

    @property
    def row_bytes(self) -> int: ...

    @property
    def order(self) -> str: ...

    @property
    def hot_sweeps(self) -> float: ...

    @property
    def heat(self) -> list[int]: ...

    @property
    def pinned_already(self) -> bool: ...

    @property
    def factor(self) -> float:
        """bytes / budget_bytes."""

    @property
    def page_count(self) -> int: ...

class AdviceConstants:
    """The model's assumptions besides the rates; see bench/advice_grid.py."""

    @overload
    def __init__(self) -> None: ...

    @overload
    def __init__(self, other: AdviceConstants) -> None: ...

    @property
    def dealt_overlap(self) -> float: ...

    @dealt_overlap.setter
    def dealt_overlap(self, arg: float, /) -> None: ...

    @property
    def front_overlap(self) -> float: ...

    @front_overlap.setter
    def front_overlap(self, arg: float, /) -> None: ...

    @property
    def span_link(self) -> float: ...

    @span_link.setter
    def span_link(self, arg: float, /) -> None: ...

    @property
    def managed_link(self) -> float: ...

    @managed_link.setter
    def managed_link(self, arg: float, /) -> None: ...

    @property
    def managed_device(self) -> float: ...

    @managed_device.setter
    def managed_device(self, arg: float, /) -> None: ...

    @property
    def eviction(self) -> float: ...

    @eviction.setter
    def eviction(self, arg: float, /) -> None: ...

    @property
    def fault_bytes(self) -> float: ...

    @fault_bytes.setter
    def fault_bytes(self, arg: float, /) -> None: ...

    @property
    def device_cache_hits(self) -> float: ...

    @device_cache_hits.setter
    def device_cache_hits(self, arg: float, /) -> None: ...

    @property
    def host_cache_hits(self) -> float: ...

    @host_cache_hits.setter
    def host_cache_hits(self, arg: float, /) -> None: ...

    @property
    def simpler(self) -> float: ...

    @simpler.setter
    def simpler(self, arg: float, /) -> None: ...

class StrategyForecast:
    """The prediction for one strategy."""

    @property
    def strategy(self) -> str: ...

    @property
    def refused(self) -> str:
        """Why it cannot be used here; empty if it can."""

    @property
    def pass_seconds(self) -> float:
        """Seconds of one pass over the data."""

    @property
    def prepare_seconds(self) -> float:
        """Seconds before the first pass."""

    @property
    def host_share(self) -> float:
        """The fraction of the bytes touched that cross the link."""

    @property
    def bytes_per_second(self) -> float:
        """Bytes touched per second, over all passes, including preparation."""

    @property
    def roof_per_second(self) -> float:
        """What memory and link would allow for sequential access."""

    def __repr__(self) -> str: ...

class Advice:
    """A recommendation for data, with reasons."""

    @property
    def strategy(self) -> str:
        """The choice."""

    @property
    def forecasts(self) -> list[StrategyForecast]:
        """
        For every strategy: the choice first, then from best to worst, with unusable ones last.
        """

    @property
    def because(self) -> str:
        """The reasons in words."""

    @property
    def placement(self) -> Placement:
        """For a Span; if the strategy has none, the nearest to it."""

    @property
    def cpp(self) -> str:
        """C++ to paste."""

    @property
    def python(self) -> str:
        """Python to paste."""

def advise(profile: AccessProfile, rates: MemoryRates | None = ..., device: Device | str = ..., constants: AdviceConstants = ...) -> Advice:
    """
    Chooses strategy and placement for data that is used as `profile` says. Without `rates`, uses those in the table for the device; headrace.measure.memory_rates() gives better ones.
    """

class Ranks:
    """The processes that share a domain."""

    @property
    def rank(self) -> int:
        """The rank of this process, from 0."""

    @property
    def count(self) -> int: ...

    @property
    def rank_on_machine(self) -> int:
        """The rank of this process among those on the same machine."""

    @property
    def takes_device_memory(self) -> bool:
        """
        Whether borders go directly between the memories of CUDA devices instead of through the host's.
        """

    @property
    def failure(self) -> str | None:
        """Which rank failed, and why; None if none has."""

    def fail(self, why: str) -> None:
        """Tells all ranks that this one cannot continue."""

    def agree(self, numbers: Sequence[int]) -> list[int]:
        """
        The numbers of rank 0, on all ranks. All ranks call it, with the same count.
        """

    def gather(self, text: str) -> list[str]:
        """
        The bytes of each rank, in rank order, on all ranks; at most 255 bytes each.
        """

class FdtdOptions:
    """The settings of an FdtdCore; cells have three indices."""

    def __init__(self, dimensions: int, shape: Sequence[int], spacing: Sequence[float], time_step: float | None, devices: Sequence[Device | str], cut: Sequence[int] | None, redundant: int, push: str, mode: str, passes: str, pass_steps: int, wait_limit: float, cpml: int, precision: str, ranks: Ranks | None = ..., averaging: bool = ..., grading: Sequence[float] | None = ..., per_component: bool = ..., sides: Sequence[Sequence[int]] | None = ..., pole_values: int = ..., device_memory: int = ..., visit_steps: int = ..., polarisation: str = ..., magnetic_walls: Sequence[bool] = ..., periodic: Sequence[bool] = ...) -> None: ...

    def weigh(self, speeds: Sequence[float]) -> None:
        """
        Cuts slabs along the last axis, with thickness in proportion to these numbers, one for each part.
        """

    def measure_speeds(self, steps: int) -> list[float]:
        """Cells a second of each device alone, for weigh()."""

    def tune(self, redundant: int | None, push: str | None, steps: int) -> list[tuple[int, str, float | None, str]]:
        """
        Applies the redundant layers and the push with the shortest step, unless they are given. Returns for each choice tried: layers, push, seconds a step, and why it is not possible.
        """

    @property
    def grading(self) -> list[float]:
        """
        The grading of the absorbing layers: order, sigma, kappa, kappa_order, alpha and alpha_order.
        """

    @property
    def redundant(self) -> int: ...

    @property
    def push(self) -> str: ...

class FdtdCore:
    """
    The core of headrace.grid.Fdtd: arrays are flat, x fastest, cells have three indices.
    """

    def __init__(self, options: FdtdOptions) -> None: ...

    def step(self, count: int, check_every: int = ...) -> None:
        """
        `check_every` is the number of steps between checks for values that are not finite; 0 for none.
        """

    def check_finite(self) -> None: ...

    def get(self, field: str, as_stored: bool = False) -> numpy.typing.NDArray[Any]:
        """
        In V/m or A/m; `as_stored` is for a state, which is restored to the last bit.
        """

    @overload
    def set(self, field: str, values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], as_stored: bool = ...) -> None: ...

    @overload
    def set(self, field: str, values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], as_stored: bool = ...) -> None: ...

    def resume(self, steps: int, traces: Sequence[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]]) -> None: ...

    def record_timeline(self, cycles: int) -> None: ...

    def timeline(self) -> list[tuple[int, int, str, float, float]]:
        """
        For each piece of work: its part, cycle and name, and when it began and ended, in s.
        """

    @property
    def steps_done(self) -> int: ...

    @property
    def time_step(self) -> float: ...

    @property
    def fields(self) -> list[str]: ...

    @property
    def state_fields(self) -> list[str]: ...

    @property
    def redundant(self) -> int: ...

    @property
    def push(self) -> str: ...

    @property
    def mode(self) -> str: ...

    @property
    def exchanged_bytes(self) -> int: ...

    @property
    def moved_bytes(self) -> int: ...

    @property
    def steps_at_once(self) -> int:
        """The fewest steps that a call should do."""

    @property
    def slabs(self) -> tuple[int, int, int, int, int, int, int] | None:
        """
        For a domain in slabs: rows of each, their number, steps of a visit, bytes that a visit copies in and out, and bytes on the device and on the host.
        """

    @property
    def parts(self) -> list[tuple[str, str]]:
        """The device of each part of this process, and its cells."""

    def set_materials(self, permittivity: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], conductivity: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], permeability: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], edges: Sequence[tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.uint16], dict(shape=(None,), order='C', device='cpu', writable=False)]]], media: Sequence[FdtdMedium], medium: Annotated[NDArray[numpy.uint16], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """
        One value, or one for each cell, x fastest; edges along each axis: cells, permittivity, conductivity, medium; dispersive media, and the number of each cell's medium, 0 for none.
        """

    def set_component_materials(self, permittivity: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], conductivity: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], permeability_hx: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], permeability_hy: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """One value, or one for each cell, x fastest."""

    def add_source(self, field: str, cell: Sequence[int], samples: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def add_sources(self, field: str, cells: Annotated[NDArray[numpy.int64], dict(shape=(None, 3), order='C', device='cpu', writable=False)], samples: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """The same samples in each of these cells."""

    def add_receiver(self, field: str, cell: Sequence[int]) -> int: ...

    def trace(self, receiver: int) -> numpy.typing.NDArray[Any]: ...

    @property
    def receiver_count(self) -> int: ...

def pole_values_needed(dimensions: int, shape: Sequence[int], averaging: bool, media: Sequence[FdtdMedium], medium: Annotated[NDArray[numpy.uint16], dict(shape=(None,), order='C', device='cpu', writable=False)], edges: Sequence[tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.uint16], dict(shape=(None,), order='C', device='cpu', writable=False)]]], polarisation: str = ..., periodic: Sequence[bool] = ...) -> int:
    """
    The FdtdOptions.pole_values that these media need, in cells (one number, or one for each cell) and in edges.
    """

class FdtdMedium:
    """The poles of a dispersive medium."""

    def __init__(self) -> None: ...

    def add_debye(self, difference: float, relaxation_time: float) -> None: ...

    def add_lorentz(self, difference: float, omega_0: float, damping: float) -> None: ...

    def add_drude(self, omega_p: float, rate: float) -> None: ...

    @property
    def conductivity(self) -> float:
        """S/m, of Drude poles at frequency 0."""

    @property
    def pole_values(self) -> int:
        """Values of memory that each component of E keeps for it."""

    def problem(self, time_step: float) -> str:
        """Why a run cannot have it; empty if it can."""

    def permittivity_in_step(self, time_step: float) -> float:
        """What the poles add to the permittivity that a step divides by."""

    def permittivity_at_fastest(self, time_step: float) -> float:
        """
        What they add to the permittivity that the time step has to be stable for.
        """

class JacobiCore:
    """The core of headrace.grid.Jacobi: arrays are flat, x fastest."""

    def __init__(self, shape: Sequence[int], devices: Sequence[Device | str], cut: Sequence[int] | None, redundant: int, push: str, passes: str, pass_steps: int, precision: str) -> None: ...

    def step(self, count: int) -> None: ...

    def step_with_residuals(self, count: int) -> list[tuple[float, float]]:
        """For each step, like residual()."""

    def residual(self) -> tuple[float, float]:
        """The largest absolute value, and the square root of the sum of squares."""

    def get_solution(self) -> numpy.typing.NDArray[Any]: ...

    @overload
    def set_solution(self, values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    @overload
    def set_solution(self, values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    @overload
    def set_source(self, values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    @overload
    def set_source(self, values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    @property
    def steps_done(self) -> int: ...

    @property
    def push(self) -> str: ...

    @property
    def passes(self) -> bool: ...

    @property
    def moved_bytes(self) -> int: ...

class TypeId(enum.Enum):
    """The types that scans support, as in Arrow."""

    boolean = 0

    int8 = 1

    int16 = 2

    int32 = 3

    int64 = 4

    uint8 = 5

    uint16 = 6

    uint32 = 7

    uint64 = 8

    float32 = 9

    float64 = 10

    date32 = 11

    timestamp = 12

    decimal128 = 13

    dictionary = 14

class TimeUnit(enum.Enum):
    """The unit of a timestamp."""

    second = 0

    millisecond = 1

    microsecond = 2

    nanosecond = 3

class ColumnType:
    """A type of columns with its parameters."""

    def __init__(self, id: TypeId, unit: TimeUnit = TimeUnit.second, precision: int = ..., scale: int = ..., index: TypeId = TypeId.int32) -> None: ...

    @property
    def id(self) -> TypeId: ...

    @property
    def unit(self) -> TimeUnit: ...

    @property
    def precision(self) -> int: ...

    @property
    def scale(self) -> int: ...

    @property
    def index(self) -> TypeId: ...

    def __str__(self) -> str: ...

class Operation(enum.Enum):
    """An operation that a scan applies to a row."""

    add = 3

    subtract = 4

    multiply = 5

    divide = 6

    modulo = 7

    equal = 8

    not_equal = 9

    less = 10

    less_equal = 11

    greater = 12

    greater_equal = 13

    logical_and = 14

    logical_or = 15

    logical_not = 16

    is_null = 17

    is_in = 18

    year = 20

class Aggregate(enum.Enum):
    """An aggregate of a group-by."""

    count_rows = 0

    count = 1

    sum = 2

    average = 3

    min = 4

    max = 5

class ScanExpression:
    """An expression over the columns of a table, by number."""

    @staticmethod
    def column(number: int) -> ScanExpression: ...

    @staticmethod
    def literal(type: ColumnType, bits: int) -> ScanExpression: ...

    @staticmethod
    def text(value: str) -> ScanExpression: ...

    @staticmethod
    def missing(type: ColumnType) -> ScanExpression: ...

    @staticmethod
    def call(operation: Operation, arguments: Sequence[ScanExpression]) -> ScanExpression: ...

    @staticmethod
    def cast(value: ScanExpression, type: ColumnType) -> ScanExpression: ...

class ResultColumn:
    """A column of a scan's result, in Arrow's layout."""

    @property
    def type(self) -> ColumnType: ...

    @property
    def length(self) -> int: ...

    @property
    def null_count(self) -> int: ...

    @property
    def values(self) -> bytes: ...

    @property
    def validity(self) -> bytes | None: ...

    @property
    def dictionary(self) -> StringDictionary | None:
        """
        The strings that its indices refer to, for a column of strings of a table; otherwise None.
        """

def stream_bytes(seed: int, offset: int, count: int) -> bytes:
    """
    A part of the endless stream that follows from a seed, which senders send.
    """

class SendReport:
    """What has been sent."""

    @property
    def bytes(self) -> int:
        """Bytes of the stream."""

    @property
    def units(self) -> int:
        """
        Chunks that are sent and, if waited for, acknowledged (TCP); datagrams (UDP).
        """

    @property
    def seconds(self) -> float:
        """From the first byte to the end; over TCP, to the last acknowledgement."""

    @property
    def round_trips(self) -> LatencySummary:
        """
        TCP, if each chunk is waited for: from its first byte to the acknowledgement of its last.
        """

    @property
    def retransmitted(self) -> int:
        """Retransmitted TCP segments."""

    @property
    def kernel_round_trip(self) -> float:
        """TCP: the kernel's own estimate, in seconds."""

    @property
    def refused(self) -> int:
        """UDP: datagrams that the receiver's machine refused by ICMP."""

    def __repr__(self) -> str: ...

class TcpSender:
    """
    Sends stream_bytes(seed) over a TCP connection of the kernel, in parts and chunks.
    """

    def __init__(self, address: str, port: int, *, seed: int = ..., segment_bytes: int = ..., kernel_buffer_bytes: int = ..., connect_timeout: float = ...) -> None:
        """
        Connects to an IPv4 or IPv6 address, given as a number. `segment_bytes`: most payload in a segment; `kernel_buffer_bytes`: buffer for unacknowledged data; 0 leaves both to the kernel.
        """

    def begin(self, bytes: int, chunk_bytes: int, wait: bool = ...) -> None:
        """
        Begins the next part of the stream. With `wait`, a chunk is sent once the previous one has been acknowledged.
        """

    def run(self, seconds: float) -> bool:
        """
        Sends for about this long; True once the part is sent and acknowledged.
        """

    def report(self) -> SendReport:
        """The report of the current part, or the last."""

    def finish(self) -> None:
        """Ends the stream."""

class UdpSender:
    """
    Sends numbered datagrams through the kernel, with stream_bytes(seed) after their numbers.
    """

    def __init__(self, address: str, port: int, packets: int, *, seed: int = ..., payload_bytes: int = ..., packets_per_second: float = ..., number_offset: int | None = ..., number_width: int = ..., first_number: int = ...) -> None:
        """
        `payload_bytes`: bytes of the stream in each datagram. `packets_per_second` 0: as fast as the kernel accepts them. The number, big-endian and `number_width` 4 or 8 bytes wide, is at `number_offset` of the datagram, and the payload follows it; `number_offset` None: datagrams have no number.
        """

    def run(self, seconds: float) -> bool:
        """Sends for about this long; True once all datagrams are sent."""

    def report(self) -> SendReport:
        """What has been sent so far."""

class BuildRuns:
    """The results of placing packets into frames, run by run."""

    @property
    def seconds(self) -> list[float]:
        """For each run."""

    @property
    def plain_seconds(self) -> list[float]:
        """A plain copy of the same number of bytes, alternating with the runs."""

    @property
    def payload_bytes(self) -> int:
        """Payload that each run places."""

    @property
    def packets(self) -> int:
        """For each run."""

    @property
    def parts(self) -> int:
        """Copies that packets were split into."""

    @property
    def supported(self) -> bool:
        """False if the device does not support this."""

    @property
    def verified(self) -> bool:
        """Whether every byte was where a plain copy puts it."""

    def __repr__(self) -> str: ...

def copy_ways() -> list[str]:
    """The ways to copy payloads into frames."""

def device_build(device: Device | str = ..., *, way: str = ..., payload_bytes: int = ..., payload_max: int = ..., header_bytes: int = ..., slot_bytes: int = ..., total_bytes: int = ..., runs: int = ...) -> BuildRuns:
    """
    Places packets that lie in device memory into frames, several times, by one of copy_ways().

    Payloads have `payload_bytes`, or anything up to `payload_max`, after `header_bytes` in slots of `slot_bytes` (0: just enough); `total_bytes` of slots. Times are the device's. Ctrl-C ends it early.
    """

def ring_build(device: Device | str = ..., *, way: str = ..., ring_access: str = ..., payload_bytes: int = ..., payload_max: int = ..., header_bytes: int = ..., slot_bytes: int = ..., total_bytes: int = ..., ring_bytes: int = ..., frame_bytes: int = ..., frame_count: int = ..., flush_bytes: int = ..., burst: int = ..., runs: int = ...) -> BuildRuns:
    """
    The same from a ring in pinned host memory, traversed until `total_bytes` of slots have passed, while a stream takes every frame. `ring_access` is automatic, direct, slots or payloads. Host time.
    """

def resident_build(device: Device | str = ..., *, payload_bytes: int = ..., slot_bytes: int = ..., total_bytes: int = ..., ring_bytes: int = ..., frame_bytes: int = ..., frame_count: int = ..., burst: int = ..., runs: int = ...) -> BuildRuns:
    """
    The same with resident control on the device: packets of one TCP connection, which a resident kernel acknowledges and copies.
    """

def build_iterations(device: Device | str = ..., *, way: str = ..., payload_bytes: int = ..., packets: Sequence[int] = ..., runs: int = ...) -> list[float]:
    """
    Seconds of one iteration of a builder's loop, for each number of packets in it: medians.
    """

class FrameLatencySample:
    """One run of frame_latency()."""

    @property
    def latency(self) -> LatencySummary:
        """
        For frames: from the arrival of the packet with the last byte until the frame was READY and taken.
        """

    @property
    def waited(self) -> LatencySummary:
        """
        For bursts: from the arrival of the first packet until it was taken from the ring. Part of `latency`.
        """

    @property
    def bytes_per_second(self) -> float:
        """Payload received: below the scheduled rate if the builder fell behind."""

    def __repr__(self) -> str: ...

class FrameLatencies:
    """How soon after its last byte a frame is READY, run by run."""

    @property
    def samples(self) -> list[FrameLatencySample]: ...

    @property
    def alone_seconds(self) -> float:
        """
        Median for one packet that completes a frame while nothing else happens.
        """

    @property
    def reached_per_second(self) -> float:
        """Payload if packets always wait."""

    @property
    def bytes_per_second(self) -> float:
        """Scheduled rate of payload."""

    @property
    def burst_bytes(self) -> float:
        """Payload submitted at once: the mean of the samples."""

    @property
    def supported(self) -> bool:
        """False if the device does not support this."""

    @property
    def verified(self) -> bool:
        """Whether the last frames of every sample held what was sent."""

    def __repr__(self) -> str: ...

def frame_latency(device: Device | str = ..., *, control: str = ..., way: str = ..., ring_access: str = ..., payload_bytes: int = ..., header_bytes: int = ..., slot_bytes: int = ..., ring_bytes: int = ..., frame_bytes: int = ..., frame_count: int = ..., flush_bytes: int = ..., list_count: int = ..., prompt_count: int = ..., burst: int = ..., load: float = ..., bytes_per_second: float = ..., frames: int = ..., samples: int = ...) -> FrameLatencies:
    """
    How soon after its last byte a frame is READY, while packets come evenly to a ring in pinned host memory at `bytes_per_second` of payload, or at `load` of what the same builder reaches if they always wait. `frames` in each of the `samples`. With `control` 'resident' a resident kernel on the device decides and builds, and packets are those of a TCP connection: `way`, `ring_access`, `flush_bytes`, `list_count` and `prompt_count` are ignored. Ctrl-C ends it early.
    """

class SocketRun:
    """One transfer of SocketReception."""

    @property
    def seconds(self) -> float:
        """Until the last frame was checked."""

    @property
    def bytes(self) -> int: ...

    @property
    def frames(self) -> int: ...

    @property
    def right(self) -> bool:
        """Whether the checked parts of frames held what was sent."""

    def __repr__(self) -> str: ...

class SocketReception:
    """
    Frames on a device through the kernel's own receiver: recv() into pinned memory, and asynchronous copies from there. A baseline for Receiver.
    """

    def __init__(self, device: Device | str = ..., *, frame_bytes: int = ..., frame_count: int = ..., chunk_bytes: int = ..., chunk_count: int = ..., seed: int = ...) -> None:
        """
        A chunk is received and copied at once. `seed` is that of the stream_bytes() that are sent.
        """

    def receive(self, connection: int, *, whole: bool = ...) -> SocketRun:
        """
        Reads the descriptor of a connected socket until its peer ends it. With `whole`, compares every byte with what was sent; otherwise both ends of each frame.
        """

class Frame:
    """
    A section of a stream, on a device. Its buffer is refilled once it and every array over it are gone; GPU work on it must be done by then.
    """

    @property
    def number(self) -> int: ...

    @property
    def stream_offset(self) -> int:
        """Stream offset of its first byte."""

    @property
    def bytes(self) -> int:
        """Bytes in the frame, after conversion if the stream is converted."""

    @property
    def missing_bytes(self) -> int:
        """Stream bytes of packets that never came. They are zero in the frame."""

    @property
    def presence(self) -> list[int]:
        """Words with a bit for each packet that came; empty if none is missing."""

    @property
    def missing(self) -> list[tuple[int, int]]:
        """
        For a followed TCP stream: where bytes are zeros because the capture lacks them, as pairs of stream offsets, from the first to before the second.
        """

    @property
    def lengths(self) -> list[int]:
        """
        Bytes that each packet brought, 0 if it is missing; empty if all that came fill their places. The bytes after a short packet are zero in the frame.
        """

    @property
    def stream(self) -> int:
        """The stream's number: a receiver counts its streams from 0."""

    @property
    def peer(self) -> str | None:
        """The sender, '10.0.0.1:40000'; None if unknown."""

    def release(self) -> None:
        """Releases it now; arrays over it stay valid, and keep the buffer."""

    def __len__(self) -> int: ...

    def numpy(self) -> NDArray[Any]:
        """
        An array of uint8, or of float32 if it was converted to that; not copied. Raises UsageError if it is not on a CPU device.
        """

    def to_host(self, offset: int = 0, count: int | None = None) -> NDArray[Any]:
        """A copy, as uint8, of its bytes from `offset` on, from any device."""

    def __dlpack__(self, **kwargs: Any) -> Any: ...

    def __dlpack_device__(self) -> tuple[int, int]: ...

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Only on CUDA devices."""

class FramePart:
    """
    The bytes that have come so far of an incomplete frame, requested by Receiver.peek(). The frame follows later, with the same bytes, and its buffer is not refilled while this or an array over it is kept.
    """

    @property
    def stream_offset(self) -> int:
        """Stream offset of its first byte."""

    @property
    def bytes(self) -> int: ...

    @property
    def stream(self) -> int: ...

    @property
    def peer(self) -> str: ...

    def release(self) -> None:
        """Releases it now; arrays over it stay valid, and keep the buffer."""

    def __len__(self) -> int: ...

    def numpy(self) -> NDArray[Any]:
        """
        An array of uint8, or of float32 if it was converted to that; not copied. Raises UsageError if it is not on a CPU device.
        """

    def to_host(self, offset: int = 0, count: int | None = None) -> NDArray[Any]:
        """A copy, as uint8, of its bytes from `offset` on, from any device."""

    def __dlpack__(self, **kwargs: Any) -> Any: ...

    def __dlpack_device__(self) -> tuple[int, int]: ...

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Only on CUDA devices."""

class FrameBuilder:
    """
    Builds frames on a device from pieces of a ring in host memory, for packets that Python code has received by itself. Iterating gives the frames that are READY, in order.
    """

    def __init__(self, device: Device | str = ..., *, frame_bytes: int = ..., frame_count: int = ..., ring_bytes: int = ..., way: str = ..., ring_access: str = ..., conversion: str = ...) -> None:
        """
        `way` is one of copy_ways(); `ring_access` automatic, direct, slots or payloads; `conversion` none, swap2, swap4, swap8, int8-to-float, int16-to-float or int16-big-endian-to-float.
        """

    @property
    def ring(self) -> NDArray[numpy.uint8]:
        """Where packets are written, without a copy."""

    @property
    def reserved_end(self) -> int:
        """
        There is space for bytes of the stream below this offset; it grows as frames are released.
        """

    @property
    def copied(self) -> int:
        """The greatest ring_end up to which the ring may be overwritten."""

    def place(self, pieces: Sequence[tuple[int, int, int]], ring_end: int = ...) -> None:
        """
        Places (ring offset, stream offset, length) for each piece, in any order. Raises UsageError for one that has no place; those before it are placed.
        """

    def finish(self, end: int) -> None:
        """Sets the length of the stream, where its last frame is cut."""

    def close(self, frame: int, packet_bytes: int, presence: Sequence[int] = ..., lengths: Sequence[int] = ...) -> None:
        """
        Ends this frame, whose packets are at multiples of `packet_bytes`. `presence`: words with a bit for each packet that was placed; `lengths`: the bytes of each, if some are shorter than that. Bytes that no packet wrote become zero.
        """

    def __iter__(self) -> FrameBuilder: ...

    def __next__(self) -> Frame:
        """Waits for the copies in flight; stops when no frame is complete."""

class Faults:
    """Faults of packets in transit, each with its probability."""

    def __init__(self, *, loss: float = ..., duplication: float = ..., corruption: float = ..., reordering: float = ..., reorder_distance: int = ..., loss_sent: float = ..., seed: int = ...) -> None:
        """
        A reordered packet is held back until up to `reorder_distance` others have passed. A super-packet that the kernel has merged is one packet. `loss_sent` applies to acknowledgements.
        """

class FrameTarget:
    """Where the frames of a receiver are, and how they get there."""

    def __init__(self, device: Device | str = ..., *, frame_bytes: int = ..., frame_count: int = ..., conversion: str = ..., way: str = ..., ring_access: str = ..., prompt_count: int = ..., ring_bytes: int = ..., burst_packets: int = ..., faults: Faults | None = ...) -> None:
        """
        As for FrameBuilder. While fewer bursts than `prompt_count` are being copied, received data is copied at once: frames are READY sooner.
        """

class DatagramLayout:
    """How datagrams are numbered, and how they make frames."""

    def __init__(self, payload_bytes: int, frame_packets: int, *, port: int = ..., raw_offset: int | None = ..., number_offset: int = ..., number_width: int = ..., big_endian: bool = ..., header_bytes: int | None = ..., window_frames: int = ..., timeout: float = ..., forward_packets: int = ..., backward_packets: int = ..., part_offset: int = ..., part_width: int = ..., group_bytes: int = ...) -> None:
        """
        A datagram has `header_bytes` that do not go into the frame (None: up to the end of its number), and up to `payload_bytes` that do, at its number times that. An incomplete frame is delivered when its first datagram is `timeout` seconds old, and the next one continues from there. A jump forward by up to `forward_packets` is a gap; a longer one, or one back by more than `backward_packets`, begins another stream (0: by the width of the number). With a `part_width` numbers count groups of `group_bytes`, such as frames of video or heaps of SPEAD, and as many bytes at `part_offset` give the offset of a payload in its group, a multiple of `payload_bytes`. `raw_offset`: packets are not UDP, and datagrams begin there.
        """

    @property
    def frame_bytes(self) -> int: ...

class StreamOpened:
    """A sender has connected, or its first datagram has come."""

    @property
    def stream(self) -> int:
        """Streams count from 0."""

    @property
    def peer(self) -> str:
        """The sender, '10.0.0.1:40000'; empty if unknown."""

    @property
    def destination(self) -> str:
        """The destination, '10.0.0.2:80'; empty if unknown."""

    def __repr__(self) -> str: ...

class StreamEnded:
    """No more frames will come of a stream."""

    @property
    def stream(self) -> int: ...

    @property
    def peer(self) -> str: ...

    @property
    def reason(self) -> str:
        """
        finished: the sender said that this was all; reset or timed out: the stream is what came in order until then; cut: the receiver was stopped, or its source failed; restarted: a sender of datagrams began again, and another stream follows; timed out, of datagrams: it was silent, and was replaced.
        """

    @property
    def bytes(self) -> int:
        """
        Bytes of the stream, up to the last that came. If its last datagram is short and its frame was delivered before the end was known, that frame is padded with zeros.
        """

    def __repr__(self) -> str: ...

class Receiver:
    """
    Receives on its own thread. Iterating waits for frames of all streams and ends with the source; next() also returns stream events. As a context manager, it stops and releases its address at the end. Frames stay valid.
    """

    @property
    def address(self) -> str:
        """The address to send to, '198.18.0.2:9000', or the name of the source."""

    @property
    def interface(self) -> str:
        """The network device in use; empty if there is none."""

    def next(self, timeout: float | None = None) -> StreamOpened | Frame | FramePart | StreamEnded | None:
        """
        The next event of any stream. None after `timeout` seconds, or once nothing will come: see ended.
        """

    @property
    def ended(self) -> bool:
        """Whether nothing more will come."""

    def reset(self, stream: int) -> None:
        """Resets the TCP connection of a stream that is no longer wanted."""

    def send(self, stream: int, data: bytes) -> None:
        """
        Sends `data` on a stream's TCP connection, after what was sent before: short answers, about 1 KiB a round trip. Does nothing if the connection is closed. Raises DeviceError (Errc.full) while 1 MiB waits to be sent, and UsageError, like close() and peek(), for datagrams and with resident control.
        """

    def close(self, stream: int) -> None:
        """
        Ends sending on the connection: FIN follows the data that waits. Data from its peer still comes.
        """

    def peek(self, stream: int, offset: int, end: int = ...) -> None:
        """
        Requests bytes of a stream from `offset` on before their frame is full: next() returns a FramePart, once, as soon as some have come in order, and all before `end`, unless their frame comes first. Raises UsageError for frames that are converted.
        """

    @property
    def has_parts(self) -> bool:
        """Whether peek() can request parts of frames."""

    def stop(self) -> None:
        """
        Resets open connections, and releases the socket or network device: the same address can be received on again. Waiting events can still be taken.
        """

    def counters(self) -> dict[str, dict[str, int]]:
        """Counters, at most 50 ms old: see docs/ingest.md."""

    def __iter__(self) -> Receiver: ...

    def __next__(self) -> Frame: ...

    def __enter__(self) -> Receiver: ...

    def __exit__(self, *args: object) -> None: ...

def drop_capabilities() -> None:
    """
    Gives up CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF in every thread of this process, permanently. Call it once all receivers are open: none needs these rights any more, and those opened later lack them. `headrace ingest` does it by itself. It notifies threads by a real-time signal, the highest without a handler. Raises SystemError that names a thread which blocks it.
    """

def receive_tcp(target: FrameTarget, address: str, port: int, *, connections: int = ..., mtu: int = ..., offloads: bool = ..., name: str = ..., window_bytes: int = ..., idle_seconds: float = ..., interface: str = ..., control: str = ..., close_when_finished: bool = ..., trust_checksums: bool = ..., first_byte_seconds: float = ..., open_at_first_byte: bool = ..., backlog: int = ..., memory_bytes: int = ...) -> Receiver: ...

def receive_udp(target: FrameTarget, layout: DatagramLayout, address: str, *, multicast_group: str = ..., interface: str = ..., kernel_buffer_bytes: int = ..., from_senders: Sequence[str] = ..., senders: int = ..., idle_seconds: float = ...) -> Receiver: ...

def receive_packets(target: FrameTarget, layout: DatagramLayout, interface: str, *, via: str, address: str = ..., promiscuous: bool = ..., trust_checksums: bool = ..., from_senders: Sequence[str] = ..., senders: int = ..., idle_seconds: float = ...) -> Receiver: ...

def receive_capture(target: FrameTarget, layout: DatagramLayout, path: str, *, speed: float = ..., trust_checksums: bool = ..., from_senders: Sequence[str] = ..., senders: int = ..., idle_seconds: float = ...) -> Receiver: ...

def follow_capture(target: FrameTarget, path: str, *, speed: float = ..., port: int = ..., connections: int = ..., hold_bytes: int = ..., trust_checksums: bool = ...) -> Receiver: ...

def receive_synthetic(target: FrameTarget, layout: DatagramLayout, *, packets: int = ..., packets_per_second: float = ..., seed: int = ..., payloads_once: bool = ...) -> Receiver: ...

class Message:
    """A message of a stream. It keeps its frames."""

    @property
    def stream(self) -> int: ...

    @property
    def peer(self) -> str:
        """The sender; empty if unknown."""

    @property
    def begin(self) -> int:
        """Stream offset of its header."""

    @property
    def bytes(self) -> int:
        """Size of its body."""

    @property
    def parts(self) -> list[tuple[Frame, int, int]]:
        """
        (frame, offset in the frame, bytes) of its body, in order; not copied. For a frame that was incomplete when the message came, the part that had come.
        """

    def __repr__(self) -> str: ...

class MessageReader:
    """Splits the frames of one stream into messages that state their length."""

    def __init__(self, *, width: int = ..., offset: int = ..., header_bytes: int | None = ..., big_endian: bool = ..., counts_header: bool = ..., body_max: int = ...) -> None:
        """
        A header has `header_bytes` (None: up to the end of the length), of which `width` at `offset` state how many bytes follow or, with `counts_header`, how many there are in all.
        """

    @overload
    def add(self, frame: Frame) -> None:
        """
        Adds the stream's next frame, or a part of one; bytes that were added before are skipped. Raises UsageError if bytes in between are missing.
        """

    @overload
    def add(self, part: FramePart) -> None: ...

    def next(self) -> Message | None:
        """
        The next message, or None until all of it has come. Raises DataError for one longer than `body_max`, or than all frames of the stream but one.
        """

    @property
    def end(self) -> int:
        """Bytes of the stream that have been added."""

    @property
    def needs(self) -> int:
        """
        How many of them next() needs before it returns or raises anything more.
        """

    @property
    def rest(self) -> int:
        """Bytes at the end that are not a complete message."""

def http_chunks(text: bytes | bytearray | memoryview, offset: int) -> tuple[int, numpy.typing.NDArray[numpy.uint64], numpy.typing.NDArray[numpy.uint64]]:
    """
    The chunks at the start of an HTTP body `text`, which begins at byte `offset` of its stream: the bytes that they take, and where the data of each begins and ends. Stops at the first chunk that is incomplete, is empty, or has a head of anything but 1 to 4 digits.
    """

class DataType(enum.Enum):
    """
    The types of a tensor's elements, as the Open Inference Protocol has them.
    """

    boolean = 0

    uint8 = 1

    uint16 = 2

    uint32 = 3

    uint64 = 4

    int8 = 5

    int16 = 6

    int32 = 7

    int64 = 8

    fp16 = 9

    fp32 = 10

    fp64 = 11

class Tensor:
    """
    A part of a query or of an answer, which clients send or get as one tensor. A request of N queries has N such parts: its tensor has the shape [N, *shape].
    """

    def __init__(self, name: str, type: DataType, shape: Sequence[int] = ..., *, offset: int = ...) -> None:
        """
        `shape` is that of one query, empty for a single element; `offset` is where it begins in the query or answer, in bytes.
        """

    @property
    def name(self) -> str: ...

    @property
    def type(self) -> DataType: ...

    @property
    def datatype(self) -> str:
        """The type as requests and replies write it, such as "FP32"."""

    @property
    def shape(self) -> list[int]:
        """The shape of one query; empty for a single element."""

    @property
    def offset(self) -> int:
        """Where it begins in the query or answer, in bytes."""

    @property
    def bytes(self) -> int:
        """Bytes in one query or answer."""

    def __repr__(self) -> str: ...

class Model:
    """
    An operator that clients of a server request by name; headrace.wire.model() makes one from an engine.
    """

    def __init__(self, engine: Engine, inputs: Sequence[Tensor], outputs: Sequence[Tensor], *, name: str, version: str = ..., batch_max: int = ..., waiting_max: int = ..., query_type: str = ..., answer_type: str = ...) -> None:
        """
        `inputs` are the parts of a query, `outputs` those of an answer; bytes of a query that no input covers are zero. A name has letters, digits, '.', '_' and '-'. A request has at most `batch_max` queries, and `waiting_max` may wait for slots, for each thread of the server; 0: as the server has it. `query_type` and `answer_type` are the types for clients of shared memory, like Operator.answer_type; empty for those of the engine's operator. Raises UsageError for an invalid name, for two tensors of one name, and for tensors that overlap or leave their query or answer.
        """

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    @property
    def engine(self) -> Engine: ...

    @property
    def inputs(self) -> list[Tensor]:
        """Parts of a query."""

    @property
    def outputs(self) -> list[Tensor]:
        """Parts of an answer."""

    @property
    def batch_max(self) -> int:
        """Queries in one request."""

    @property
    def waiting_max(self) -> int:
        """Queries that may wait for slots; 0: as the server has it."""

    def __repr__(self) -> str: ...

class ModelRequest:
    """A client's request to load, change or unload a model of a server."""

    @property
    def model(self) -> str:
        """A name that the server knows."""

    @property
    def load(self) -> bool:
        """True to load it, again if it is already loaded; False to unload it."""

    @property
    def change(self) -> dict[str, float] | None:
        """
        Arguments of Server.change() if the model is to be changed; if it is not loaded, it is to be loaded with them. None: it is to be loaded or unloaded.
        """

    def __repr__(self) -> str: ...

class RequestTrace:
    """
    A traced request for inference. Times are nanoseconds since 1970, and 0 for stages that it did not reach.
    """

    @property
    def trace_id(self) -> bytes: ...

    @property
    def parent_span_id(self) -> bytes:
        """The caller's span."""

    @property
    def model(self) -> str: ...

    @property
    def version(self) -> str: ...

    @property
    def protocol(self) -> str:
        """"http" or "grpc"."""

    @property
    def high(self) -> bool:
        """Whether it had high priority."""

    @property
    def status(self) -> int:
        """The HTTP status, for both protocols."""

    @property
    def queries(self) -> int: ...

    @property
    def arrived(self) -> int:
        """When its first byte came."""

    @property
    def began(self) -> int:
        """When it had been read and checked."""

    @property
    def submitted(self) -> int:
        """When the last of its queries went to the engine."""

    @property
    def back(self) -> int:
        """When the server had all answers."""

    @property
    def ended(self) -> int:
        """When the reply was ready to send."""

class Outcomes:
    """Requests, or queries of requests, by how they ended."""

    @property
    def answered(self) -> int: ...

    @property
    def invalid(self) -> int:
        """
        The client's mistake: a wrong name, shape or size, or a feature the server lacks.
        """

    @property
    def refused(self) -> int:
        """
        The server had no room, was about to stop, or its engine had failed (429, 503).
        """

    @property
    def late(self) -> int:
        """
        The deadline passed first, or the request took too long to arrive (408, 504).
        """

    @property
    def cancelled(self) -> int:
        """
        The client left, or its call ended, before the answer. Counted for models only.
        """

    @property
    def failed(self) -> int:
        """Any other error of the server (500)."""

class DurationHistogram:
    """Counts durations between fixed bounds, in seconds."""

    @property
    def bounds(self) -> list[float]:
        """1, 2 and 5 times each power of ten, from 1 us to 10 s."""

    @property
    def counts(self) -> list[int]:
        """
        counts[i] has the durations that are at most bounds[i] and above the bound before it; the last one has the rest.
        """

    @property
    def count(self) -> int: ...

    @property
    def sum(self) -> float: ...

class StageHistograms:
    """
    Where answered requests spent their time: of each request, `queue`, `engine` and `reply` add up to `durations`. Not counted through shared memory, where the server sees `engine` alone.
    """

    @property
    def read(self) -> DurationHistogram:
        """From the request's first byte until it had been read and checked."""

    @property
    def queue(self) -> DurationHistogram:
        """From then until the last of its queries went to the engine."""

    @property
    def engine(self) -> DurationHistogram:
        """
        From then until the server had all answers: the operator, and the engine's own queue.
        """

    @property
    def reply(self) -> DurationHistogram:
        """From then until the reply was ready to send."""

class ProtocolStatistics:
    """The requests for inference that a model received over one protocol."""

    @property
    def requests(self) -> Outcomes: ...

    @property
    def queries(self) -> Outcomes:
        """
        Queries share the outcome of their request. Invalid requests count none.
        """

    @property
    def durations(self) -> DurationHistogram:
        """
        Answered requests: from the request being read to its reply being ready to send.
        """

    @property
    def stages(self) -> StageHistograms:
        """The same requests, stage by stage."""

    @property
    def unanswered(self) -> float:
        """Sum of the same durations of all other requests, without invalid ones."""

class PriorityStatistics:
    """The requests for inference of one priority, over HTTP and gRPC."""

    @property
    def requests(self) -> Outcomes:
        """Without those that could not be read, whose priority is not known."""

    @property
    def queries_waiting(self) -> int:
        """Queries that wait for a slot of the engine now."""

class ModelStatistics:
    """What a server's model has done since the server began."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    @property
    def loaded(self) -> bool:
        """It has not been unloaded."""

    @property
    def ready(self) -> bool:
        """It is loaded, and its engine has not failed."""

    @property
    def http(self) -> ProtocolStatistics: ...

    @property
    def grpc(self) -> ProtocolStatistics: ...

    @property
    def shm(self) -> ProtocolStatistics:
        """Through shared memory, where each query is a request."""

    @property
    def high(self) -> PriorityStatistics:
        """Requests of priority 1."""

    @property
    def normal(self) -> PriorityStatistics:
        """Requests of any other priority."""

    @property
    def queries_waiting(self) -> int:
        """Queries that wait for a slot of the engine now, of both priorities."""

    @property
    def queries_in_flight(self) -> int:
        """Queries that the engine has now."""

    @property
    def last_inference(self) -> int:
        """When it answered last, in milliseconds since 1970; 0: never."""

    @property
    def share(self) -> float:
        """
        What Server.change() may change, in force now; 0 if it is not loaded. The share of its engine ...
        """

    @property
    def latency_max(self) -> float:
        """... its bound in seconds, 0: none ..."""

    @property
    def in_flight_max(self) -> int:
        """... the queries that it takes from each thread ..."""

    @property
    def waiting_max(self) -> int:
        """... and those that may wait for slots, for each thread."""

class ServerStatistics:
    """What a server has done since it began."""

    @property
    def connections(self) -> int:
        """Accepted."""

    @property
    def connections_open(self) -> int:
        """Open now."""

    @property
    def connections_refused(self) -> int:
        """
        Connections closed because `connections_max` were open: those whose clients had been silent for longest, or else new ones.
        """

    @property
    def requests(self) -> int:
        """Answered with any status; for a gRPC stream, each message."""

    @property
    def failed(self) -> int:
        """Those among them with an error."""

    @property
    def refused(self) -> int:
        """Those rejected for lack of room (429, 503; in gRPC, too)."""

    @property
    def http(self) -> Outcomes:
        """Those over HTTP, by outcome."""

    @property
    def grpc(self) -> Outcomes:
        """Those over gRPC, by outcome."""

    @property
    def shm(self) -> Outcomes:
        """Those through shared memory, by outcome."""

    @property
    def memory_bytes(self) -> int:
        """Memory of requests and replies now."""

    @property
    def memory_limit_bytes(self) -> int:
        """The server's `memory_max`."""

    @property
    def unauthorized(self) -> int:
        """Requests without an accepted token (401, UNAUTHENTICATED)."""

    @property
    def handshakes(self) -> int:
        """Completed TLS handshakes."""

    @property
    def handshakes_failed(self) -> int:
        """
        Failed handshakes: no certificate or a wrong one, no TLS at all, or too slow.
        """

    @property
    def handshake_failure(self) -> str:
        """Why the last one failed; empty if none has."""

    @property
    def traces_dropped(self) -> int:
        """Requests of traces that were not kept, see `traces_max`."""

    @property
    def certificate_ends(self) -> int:
        """
        When the server's certificate ends, in seconds since 1970; 0 without TLS.
        """

class Server:
    """
    Serves models to other processes: the Open Inference Protocol (KServe v2) over HTTP/1.1, with JSON and binary tensors, and over gRPC, as Triton's clients speak it. It listens and answers from when it is made until stop(), or the end of a with block.
    """

    def __init__(self, models: Sequence[Model], *, address: str = ..., http_port: int = ..., grpc_port: int | None = ..., threads: int = ..., connections_max: int = ..., head_bytes_max: int = ..., body_bytes_max: int = ..., memory_max: int = ..., waiting_max: int = ..., request_max: float = ..., idle_max: float = ..., page: bool = ..., shared_memory: bool = ..., cuda_shared_memory: bool = ..., shared_memory_max: int = ..., model_control: bool = ..., shm: str | None = ..., shm_threads: int = ..., shm_clients_max: int = ..., shm_slots_max: int = ..., shm_spin: float = ..., tls_certificate: str | os.PathLike[str] | None = ..., tls_key: str | os.PathLike[str] | None = ..., tls_clients: str | os.PathLike[str] | None = ..., token_file: str | os.PathLike[str] | None = ..., plain_tokens: bool = ..., traces_max: int = ..., watcher: int = ...) -> None:
        """
        `address` is IPv4 or IPv6, "0.0.0.0" or "::" for every interface; port 0 takes any that is free. gRPC is spoken where `grpc_port` is given, usually 8001. Each of the `threads` has its connections, and is a client of every engine. `head_bytes_max` limits the line and headers of a request, `body_bytes_max` its tensors and JSON or a message of gRPC, `memory_max` all requests and replies together. `waiting_max` queries of a model may wait for slots of its engine, for each thread. Seconds: `request_max` from a request's first byte to its last, `idle_max` between requests, and without progress of a reply. With `page`, browsers get a page at / that shows what the server does and asks a query. With `shared_memory` clients may register POSIX shared memory for their tensors, and can then have every object in /dev/shm read and written that this process may open. With `cuda_shared_memory` they may register memory of CUDA devices, and can then have all device memory read and written that a process shares; it needs a CUDA device. All regions together have `shared_memory_max` bytes at most. With `model_control` they may ask for models to be loaded, changed and unloaded, which next_model_request() hands on. With a name `shm`, processes of this machine and user may ask through shared memory, by headrace.Client("shm://NAME/MODEL"): `shm_clients_max` of them at most, each with at most `shm_slots_max` queries in flight. `shm_threads` answer them, each a client of every engine, and look for queries for `shm_spin` seconds before they sleep. With `tls_certificate` and `tls_key`, PEM files, both ports speak TLS; with `tls_clients`, a PEM file of authorities, clients have to show a certificate of one of them. With `token_file`, a token a line and its name behind a space, each request has to carry one of the tokens, as "Authorization: Bearer TOKEN"; only the server's health and the page, which shows nothing without one, need none. Tokens need TLS where `address` is not of the loopback, unless `plain_tokens` allows them without. `traces_max` requests whose caller samples a trace are kept for take_traces(); 0 traces none. `watcher` is a connected stream socket, which the server closes, for a program that watches this one: it asks for the server's health over it, without TLS. Raises UsageError for models or limits that cannot be served (such as an engine whose Plan.clients_max is below `threads` and `shm_threads` together), SystemError where the address or a port cannot be had, an error with Errc.not_supported for gRPC or TLS in a build without it.
        """

    @property
    def http_port(self) -> int:
        """The port that it listens on."""

    @property
    def grpc_port(self) -> int | None:
        """The port for gRPC; None if gRPC is off."""

    @property
    def shm(self) -> str | None:
        """
        The name for clients of shared memory, in shm://NAME/MODEL; None if there are none.
        """

    def statistics(self) -> ServerStatistics:
        """What the server has done so far. Callable from any thread."""

    def model_statistics(self) -> list[ModelStatistics]:
        """
        One for each name, in the order of their appearance, including unloaded ones. Callable from any thread, also after stop().
        """

    def load(self, model: Model) -> None:
        """
        Serves `model` from now on, in place of the model of the same name, if any. After it returns, the previous model answers no new requests, but finishes those that it has begun; see uses(). The counts of the name continue. Callable from any thread. Raises UsageError for a model that cannot be served or after stop(); nothing changes then.
        """

    def unload(self, name: str, reason: str = ...) -> bool:
        """
        Stops serving the model of a name: requests for it are refused with `reason` (404, NOT_FOUND). Returns whether there was one. Requests that it has begun are answered, see uses(). Callable from any thread.
        """

    def change(self, name: str, *, share: float | None = ..., in_flight_max: int | None = ..., latency_max: float | None = ..., waiting_max: int | None = ...) -> None:
        """
        Changes a model while it is served: the plan of its engine, as Engine.change() does, and the queries that may wait for slots of the engine, for each thread (0: the server's `waiting_max`). No request is lost. A request that waits keeps its deadline and its place; under a lower `waiting_max` a new one waits only in the place of another until fewer wait. Raises UsageError if there is no such model, and otherwise as Engine.change(); nothing has changed then. Callable from any thread.
        """

    def uses(self, engine: Engine) -> bool:
        """
        Whether requests may still come to an engine of this server, or are not yet answered. Once it returns False for an engine whose model was replaced or unloaded, the engine may be stopped.
        """

    def take_traces(self, most: int, seconds: float) -> list[RequestTrace]:
        """
        Requests of traces that have ended, in that order: at most `most`, once there is one or `seconds` have passed. After stop() returns the rest. Needs `traces_max`. Callable from any thread.
        """

    def reload_credentials(self) -> None:
        """
        Reads the files of certificates and tokens again. New connections use the new certificates, and requests on all connections the new tokens. Open connections stay. Callable from any thread. Raises as the constructor does, and UsageError if there are none or after stop(); the previous ones stay in use then.
        """

    def next_model_request(self, seconds: float) -> ModelRequest | None:
        """
        The next request of a client to load, change or unload a model; None after `seconds`, and after stop(). Requests come one after the other, and each must be ended. Needs `model_control`. Callable from any thread.
        """

    def end_model_request(self, request: ModelRequest, failure: str | None = ...) -> None:
        """
        Tells the client that its request is done, or why it has failed; a name without a model is listed with that reason.
        """

    def drain(self, seconds: float) -> bool:
        """
        Reports that it is not ready, accepts no more connections, closes idle ones, and waits until every request that has begun is answered, or `seconds` have passed; returns whether all were answered.
        """

    def stop(self) -> None:
        """
        Closes all connections and ends the threads. It waits for queries in flight, and drops their answers.
        """

    def __enter__(self) -> Server: ...

    def __exit__(self, *exception: object) -> None: ...

    def __repr__(self) -> str: ...

class ServerEndpoint:
    """A model of a server of the Open Inference Protocol."""

    def __init__(self, *, grpc: bool, address: str, port: int, authority: str, model: str, patience: float = ...) -> None:
        """
        `address` is a numerical one, `authority` the host and port as requests write them. `patience` is how long the server may take to accept connections, to come back after it has closed them, and to send anything while it has requests, in seconds.
        """

    def secure(self, *, tls: bool, certificate: str = ..., key: str = ..., authorities: str = ..., server_name: str = ..., token_file: str = ...) -> None:
        """
        Reads PEM files and the token file; an empty name means none. `server_name` is the name that the server's certificate must be for. Raises SystemError for a file that cannot be read, and UsageError for one with invalid content.
        """

class ModelInput:
    """An input of a model, as its server describes it."""

    @property
    def name(self) -> str: ...

    @property
    def datatype(self) -> str: ...

    @property
    def shape(self) -> list[int]:
        """A dimension of any size is below 0."""

    def __repr__(self) -> str: ...

class InputTensor:
    """An input of a request."""

    def __init__(self, name: str, datatype: str, shape: Sequence[int], content: bytes) -> None: ...

    @property
    def name(self) -> str: ...

    @property
    def content(self) -> bytes: ...

class PriorityLoad:
    """The outcomes of the requests of one priority, over the whole run."""

    @property
    def answered(self) -> int: ...

    @property
    def refused(self) -> int: ...

    @property
    def late(self) -> int: ...

    @property
    def failed(self) -> int: ...

    @property
    def lost(self) -> int: ...

    @property
    def unsent(self) -> int: ...

    @property
    def latency(self) -> LatencySummary:
        """Answered requests, from their scheduled arrival."""

class PriorityLoads:
    """A load in which some requests had high priority."""

    @property
    def high(self) -> PriorityLoad: ...

    @property
    def normal(self) -> PriorityLoad: ...

class ServerLoad:
    """The results of a load on a server; each arrival is a request."""

    @property
    def load(self) -> LoadResult: ...

    @property
    def connections_lost(self) -> int: ...

    @property
    def failure(self) -> str:
        """The server's message for the first request that failed."""

    @property
    def refusal(self) -> str:
        """The server's message for the first request that it refused."""

    @property
    def priorities(self) -> PriorityLoads | None:
        """None if no request had high priority."""

def describe_model(endpoint: ServerEndpoint) -> list[ModelInput]:
    """
    The inputs of a model. Raises UsageError for a model that the server does not have, and SystemError if the server cannot be reached or does not answer.
    """

def load_server(endpoint: ServerEndpoint, requests: Sequence[Sequence[InputTensor]], *, connections: int = ..., streams: int = ..., deadline: float | None = ..., high_share: float = ..., generators: int = ..., rate: float | None = ..., arrivals: str = ..., seed: int = ..., trace: Sequence[float] = ..., warm_up: float = ..., window: float = ..., windows_max: int = ..., stable_windows: int = ..., stable_within: float = ..., progress: Callable[[int, float, float], None] | None = ...) -> ServerLoad:
    """
    Puts one load of `rate` requests/s on a model, with `requests` in turn, like load() on an engine. Each request is a list of InputTensor; a random `high_share` of them has high priority. Ctrl-C ends it early. Raises SystemError if the server cannot be reached, disconnects, or is silent for longer than the endpoint's patience.
    """

class RingDescription:
    """A model behind shared memory, as its server describes it."""

    @property
    def model(self) -> str: ...

    @property
    def query_bytes(self) -> int: ...

    @property
    def inputs(self) -> list[Tensor]: ...

def describe_ring(url: str) -> RingDescription:
    """
    A server's description of the model at shm://NAME/MODEL. Raises as Client does.
    """

def load_rings(url: str, queries: Sequence[bytes], *, slots: int = ..., deadline: float | None = ..., patience: float = ..., generators: int = ..., rate: float | None = ..., arrivals: str = ..., seed: int = ..., trace: Sequence[float] = ..., warm_up: float = ..., window: float = ..., windows_max: int = ..., stable_windows: int = ..., stable_within: float = ..., progress: Callable[[int, float, float], None] | None = ...) -> ServerLoad:
    """
    load_server() through shared memory: each request is a query, and each generator has a ring of `slots`.
    """

class StringDictionary:
    """The strings that the indices of a column refer to."""

    @property
    def size(self) -> int:
        """Number of strings so far."""

    @property
    def nbytes(self) -> int:
        """Bytes that it takes of the CPU level's budget."""

    def take(self, indices: NDArray[numpy.int32], bytes_most: int) -> tuple[bytes, bytes]:
        """
        The strings of these indices, from the first on, as many as fit in that many bytes, but at least one: (offsets of 32 bits, bytes) as in Arrow. An invalid index stands for an empty string.
        """

class ParquetStatistics:
    """The statistics of a Parquet file for a column of a row group."""

    def __init__(self, physical_type: int, value: bytes | None, nulls: int) -> None:
        """
        For a column that is one value throughout, plain-encoded, or None if every value is missing. `physical_type` is the format's number.
        """

class ParquetFooter:
    """The row groups of a Parquet file, from its footer."""

    @property
    def rows(self) -> list[int]:
        """Rows of each row group."""

    @property
    def delta_strings(self) -> list[str]:
        """Columns whose strings may be delta-encoded, according to a row group."""

    def want(self, columns: Sequence[tuple[str, int, bool, bool]]) -> None:
        """
        Sets the columns that a source reads, in its order: (name, most bytes of a decoded value, whether it is text, whether statistics are of exactly the values that are read).
        """

class MappedFile:
    """A file's bytes, mapped for reading."""

    def __init__(self, path: bytes, name: str) -> None:
        """
        The path for the system, and its name in errors. Raises UsageError if it is not a file.
        """

    def require_unchanged(self) -> None:
        """
        Raises DataError that names the file if it has changed since it was opened.
        """

    @property
    def descriptor(self) -> int:
        """
        Descriptor of the open file; valid while this, or a source made with it, lives.
        """

    def parquet_footer(self) -> ParquetFooter:
        """Raises DataError that names the file."""

    @property
    def path(self) -> str: ...

    @property
    def bytes(self) -> int: ...

    @property
    def address(self) -> int:
        """
        Address of the first byte; valid while this, or a source made with it, lives.
        """

def stream_formats(capsule: Any) -> list[tuple[str, str]]:
    """
    The name and the Arrow format of each column that an Arrow stream declares.
    """

class FetchSource:
    """A table that is read chunk by chunk: a column of a fragment."""

    @staticmethod
    def of_batches(schema: Any, batches: Sequence[tuple[Any, str, int, MappedFile | None]]) -> FetchSource:
        """
        Record batches in memory, taken without a copy: (batch, file, number in it, mapping or None).
        """

    @staticmethod
    def of_reader(schema: Any, fragments: list[tuple[str, int, int]], places: list[tuple[list[tuple[MappedFile, int, int]], int] | ParquetFooter], read: Callable[[int, list[int]], Any], mapped: Sequence[MappedFile] = (), constants: Sequence[tuple[int, int, ParquetStatistics]] = ()) -> FetchSource:
        """
        Chunks that `read(fragment, columns)` returns as a record batch of these columns; any thread may call it. A fragment is (file, row group, rows); a place ([(mapping, offset, bytes)], bytes that reading takes) for each chunk, column by column within a fragment, or a footer for all chunks of its file. `mapped` is the file of each fragment, for a table of files; a file that changes causes an error. `constants` are (fragment, column, its statistics) for columns with one value throughout a fragment.
        """

    @property
    def rows(self) -> int: ...

    @property
    def id(self) -> int: ...

    def close(self) -> None:
        """Releases the dictionaries: nothing can be fetched any more."""

class LevelStatistics:
    """The contents and the history of a level."""

    @property
    def budget_bytes(self) -> int: ...

    @property
    def used_bytes(self) -> int:
        """Charged to the budget; slabs count as a whole."""

    @property
    def most_bytes(self) -> int:
        """The most so far."""

    @property
    def chunks(self) -> int: ...

    @property
    def pinned(self) -> int:
        """Chunks in use or being made."""

    @property
    def hits(self) -> int: ...

    @property
    def misses(self) -> int: ...

    @property
    def evictions(self) -> int: ...

class Levels:
    """
    The caches, one for each level, through which chunks of any tables reach one device.
    """

    def __init__(self, device: Device | str = ..., *, disk_bytes: int = ..., cpu_bytes: int = ..., device_bytes: int = ..., host: str = ..., slab_bytes: int = ...) -> None:
        """
        A budget of 0 is the default: half of the machine's free memory for the page cache, a quarter for the CPU level, four fifths of the device's free memory. `host` is pinned or pageable. Takes no memory yet.
        """

    @property
    def device(self) -> Device: ...

    def statistics(self, level: str) -> LevelStatistics:
        """For disk, cpu or device."""

    def clear(self, level: str) -> None:
        """
        Removes unused chunks from a level. Its memory is kept for the next chunks.
        """

    def trim(self) -> None:
        """Returns unused memory to the driver."""

    def forget(self, source: FetchSource) -> None:
        """Removes a table from every level, and trims."""

class LevelProgress:
    """The chunks that came through one level."""

    @property
    def bytes(self) -> int:
        """Disk: bytes of the files. CPU, device: bytes of values and validity."""

    @property
    def chunks(self) -> int:
        """Chunks made there."""

    @property
    def hits(self) -> int:
        """Chunks found there."""

    @property
    def busy(self) -> float:
        """
        Seconds of all threads together; for the device, while copies were in flight.
        """

class FetchProgress:
    """The progress of a fetch."""

    @property
    def disk(self) -> LevelProgress: ...

    @property
    def cpu(self) -> LevelProgress: ...

    @property
    def device(self) -> LevelProgress: ...

    @property
    def chunks_done(self) -> int: ...

    @property
    def chunks(self) -> int: ...

    @property
    def elapsed(self) -> float: ...

class ChunkArray:
    """
    Values or validity of a chunk in place, not copied, read-only. Keeps the fetch alive.
    """

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def typestr(self) -> str:
        """In NumPy's notation."""

    def numpy(self) -> NDArray[Any]:
        """
        Only if the host can read it: on the CPU level and on CPU devices. Raises UsageError elsewhere.
        """

    def __dlpack__(self, **kwargs: Any) -> Any: ...

    def __dlpack_device__(self) -> tuple[int, int]: ...

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Only on CUDA devices."""

class FetchedChunk:
    """A column of a fragment that has been fetched, in Arrow's layout."""

    @property
    def length(self) -> int: ...

    @property
    def offset(self) -> int:
        """
        Position of the first value in `values` and, as a bit, in `validity`; below 8 on a device.
        """

    @property
    def null_count(self) -> int:
        """-1 if unknown."""

    @property
    def values(self) -> ChunkArray:
        """
        As stored: bits of booleans as bytes, decimals as pairs of int64, strings as indices.
        """

    @property
    def validity(self) -> ChunkArray | None:
        """
        A bit for each value, the least significant first; None: no value is missing.
        """

    def to_host(self) -> tuple[bytes, bytes | None]:
        """Copies of values and validity."""

class FetchOptions:
    """How columns are fetched."""

    def __init__(self, *, mode: str = ..., threads: int = ..., flush_bytes: int = ..., timeline_spans: int = ..., verify_checksums: bool = ...) -> None:
        """
        `mode` is async, or sync to wait for the copy of each chunk, for comparison. `threads` make chunks; 0: one for each core, at most 16. Copies are submitted once `flush_bytes` are gathered. `timeline_spans` limits the recorded timeline. `verify_checksums` checks the pages of Parquet files that have checksums.
        """

    @property
    def mode(self) -> str: ...

    @property
    def threads(self) -> int: ...

    @property
    def flush_bytes(self) -> int: ...

    @property
    def timeline_spans(self) -> int: ...

    @property
    def verify_checksums(self) -> bool: ...

class ScanReport:
    """The figures of a scan."""

    @property
    def groups(self) -> str: ...

    @property
    def read_bytes(self) -> int:
        """Bytes of the columns that it read."""

    @property
    def seconds(self) -> float:
        """Seconds of the kernels, each from its launch until its end."""

    @property
    def began(self) -> float:
        """When the first kernel was started, by time.monotonic()."""

    @property
    def ended(self) -> float:
        """When the last kernel had ended."""

class TableReport:
    """The figures of a query on a table."""

    @property
    def groups(self) -> str: ...

    @property
    def read_bytes(self) -> int:
        """Bytes of the columns that the query names."""

    @property
    def seconds(self) -> float:
        """Seconds of the kernels, each from its launch until its end."""

    @property
    def order_seconds(self) -> float:
        """Time to order rows, on the device, and to merge windows."""

    @property
    def windows(self) -> int:
        """The number of pieces in which the columns went through the device."""

    @property
    def pruned(self) -> int:
        """
        Fragments that were skipped, because by their statistics none of their rows passes the filter.
        """

    @property
    def streamed(self) -> str:
        """
        Why there were windows; empty if the columns were on the device together.
        """

    @property
    def disk(self) -> LevelProgress: ...

    @property
    def cpu(self) -> LevelProgress: ...

    @property
    def device(self) -> LevelProgress: ...

    @property
    def fetch_seconds(self) -> float:
        """Time of the fetches, including what scans hid."""

    @property
    def waited_seconds(self) -> float:
        """Time waited for columns."""

class FetchTable:
    """A table that is scanned on the device of its levels."""

    def __init__(self, levels: Levels, source: FetchSource, options: FetchOptions = ...) -> None: ...

    def close(self) -> None:
        """
        Releases the memory of its chunks and dictionaries; it cannot be queried any more.
        """

    @property
    def levels(self) -> Levels: ...

    @property
    def options(self) -> FetchOptions: ...

    def scan(self, filter: ScanExpression | None, keys: Sequence[ScanExpression], aggregates: Sequence[tuple[Aggregate, ScanExpression | None]], values: Sequence[ScanExpression], order: Sequence[tuple[int, bool]], limit: int | None, watch: Callable[[FetchProgress], None] | None = None) -> tuple[list[ResultColumn], TableReport]:
        """
        Fetches what the query names, and runs it: `order` is (number of a value, whether descending), of `values` only. `watch` gets the progress of a fetch. Ctrl-C ends it.
        """

    def explain(self, filter: ScanExpression | None, keys: Sequence[ScanExpression], aggregates: Sequence[tuple[Aggregate, ScanExpression | None]], values: Sequence[ScanExpression], order: Sequence[tuple[int, bool]], limit: int | None) -> str:
        """
        What is fetched for a query, and how it runs, as lines of text. Columns that fit the device are fetched for this.
        """

    def windows(self, columns: Sequence[int]) -> list[list[int]]:
        """
        The fragments of the windows in which columns would go through the device.
        """

class Fetch:
    """
    A fetch of columns, in its own threads. Pins the chunks that it brought.
    """

    def __init__(self, levels: Levels, source: FetchSource, columns: Sequence[int], fragments: Sequence[int] = ..., *, to: str = ..., options: FetchOptions = ...) -> None:
        """
        Starts it. Columns and fragments by number; without fragments: all of them. `to` is cpu or device.
        """

    def wait(self) -> None:
        """
        Waits until every chunk is there. Raises the first failure. Ctrl-C cancels it.
        """

    def cancel(self) -> None: ...

    def wait_for(self, seconds: float) -> bool:
        """
        Waits for at most this long. Returns whether wait() would return at once.
        """

    @property
    def progress(self) -> FetchProgress: ...

    def timeline(self) -> tuple[list[tuple[int, int, int, str, float, float]], int]:
        """
        Waits for its end. What each thread did when, (fragment, column, thread, step, begin, end) with the source's numbers and seconds of time.monotonic(), and how many more spans there were than are kept.
        """

    def look(self) -> ScanReport:
        """
        Runs a kernel over everything that has arrived, as a one-pass query does: the least and the greatest of each column. Waits for both.
        """

    @property
    def device(self) -> Device: ...

    def dictionary(self, column: int) -> StringDictionary | None:
        """By position in the request; None for a column that has none."""

    @property
    def threads(self) -> int: ...

    def chunk(self, column: int, fragment: int) -> FetchedChunk:
        """By position in the request. Waits for the fetch."""
