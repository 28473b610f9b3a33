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
    A file that gets its name, or its new content, at commit(): whole or not at all. Symbolic links are followed, and what is not a regular file gets the bytes written into it.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None: ...

    @property
    def staging(self) -> str:
        """A name under which the bytes can be written until commit()."""

    def commit(self) -> None:
        """Gives the file its new content, durably."""

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
    """Memory of a device or of the host at one moment."""

    @property
    def free_bytes(self) -> int: ...

    @property
    def total_bytes(self) -> int: ...

def host_memory() -> MemoryInfo:
    """
    The host's memory that this process may use: the least of what the machine and each control group above the process allow and have left. Swap does not count.
    """

class DeviceKind(enum.Enum):
    """What drives a device."""

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

def parse_bytes(text: str) -> int:
    """
    The bytes that "64KiB", "1.5 GiB", "128MB" or "4096" stand for (KiB is 1024, KB is 1000). Raises UsageError when it is none of these.
    """

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

class MachineActivity:
    """
    What the processors of this process did apart from it, as shares of their time.
    """

    @property
    def others(self) -> float:
        """Other processes ran."""

    @property
    def steal(self) -> float:
        """The hypervisor ran something else."""

    @property
    def waiting(self) -> float:
        """Time in which some task waited for a processor."""

    @property
    def runnable(self) -> float:
        """Other tasks that ran or waited for each processor, at the end."""

    @property
    def over(self) -> float:
        """Seconds looked at."""

    @property
    def disturbed(self) -> str:
        """Why the machine was not quiet; empty when it was."""

    def __repr__(self) -> str: ...

class MachineWatch:
    """Looks at what else the machine does, from one lap to the next."""

    def __init__(self) -> None: ...

    def lap(self) -> MachineActivity:
        """Since construction or the lap before."""

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
        """
        From the scheduled arrival to when the client saw the answer, of queries that were admitted.
        """

    @property
    def lateness_p99(self) -> float:
        """
        Seconds from the scheduled arrival to when the generator offered the query.
        """

    @property
    def measured_for(self) -> float:
        """Seconds that the windows that count are long."""

    @property
    def lateness_max(self) -> float: ...

    @property
    def refused(self) -> int:
        """
        Offered and not admitted. Over the whole run, as are the counts that follow.
        """

    @property
    def late(self) -> int:
        """Their deadline passed before the answer; of loads on a server."""

    @property
    def lost(self) -> int:
        """Sent, and not heard of again; of loads on a server."""

    @property
    def unsent(self) -> int:
        """Not sent before the load ended; of loads on a server."""

    @property
    def failed(self) -> int:
        """Answered with an error."""

    @property
    def wrong(self) -> int:
        """Answered, but not with the answer expected."""

    @property
    def answered(self) -> int:
        """All that came back with an answer, right or not."""

    @property
    def windows(self) -> int:
        """Windows run."""

    @property
    def stable(self) -> bool:
        """The windows' rates agree, and nothing was refused."""

    @property
    def complete(self) -> bool:
        """Everything scheduled in the windows was offered and answered."""

    @property
    def machine(self) -> MachineActivity:
        """What else the machine did meanwhile."""

    @property
    def disturbed(self) -> str:
        """
        Why the figures may not be this machine's own; empty when it was quiet.
        """

    @property
    def refused_counted(self) -> int:
        """Refused, of the arrivals in the windows that count."""

    @property
    def unanswered_counted(self) -> int:
        """
        Got no answer for any reason, of the same arrivals; the refused as well.
        """

    @property
    def p99_offered(self) -> float:
        """
        p99 with each query that got no answer later than any answer; inf where it falls among these.
        """

    @property
    def gave_up(self) -> bool:
        """Hopeless, and ended early: the figures are of a part of a window."""

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

def memory_roofs(device: Device | str = ...) -> MemoryRoofs:
    """Measures them, in some tenths of a second."""

def memory_copies(devices: Sequence[Device | str], bytes: int, runs: int = ...) -> list[float]:
    """
    Bytes read plus bytes written per second, of all devices together, by copies of `bytes` within the memory of each at the same time: one figure a run.
    """

class CopyRuns:
    """What a case of copies took, run by run."""

    @property
    def seconds(self) -> list[float]:
        """Of each run, from the first add to the end of the wait."""

    @property
    def bytes(self) -> int:
        """That each run moves."""

    @property
    def supported(self) -> bool:
        """False: the route cannot do it on this device."""

    @property
    def verified(self) -> bool:
        """Every run's target held the bytes of its sources."""

    def __repr__(self) -> str: ...

class HostWayCost:
    """What a way of host memory to a device costs, in seconds."""

    @property
    def way(self) -> str: ...

    @property
    def supported(self) -> bool:
        """False: this device or system cannot do it."""

    @property
    def bytes(self) -> int:
        """Of each pass."""

    @property
    def once(self) -> float:
        """Before the first pass."""

    @property
    def back(self) -> float:
        """After the last."""

    @property
    def fill(self) -> list[float]:
        """Of one thread of the host, each pass."""

    @property
    def transfer(self) -> list[float]:
        """Each pass."""

    @property
    def verified(self) -> bool: ...

class CopyRoofs:
    """What the link gives at best, in bytes per second, one figure a run."""

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
    """The roofs beside which copies are shown."""

def host_ways(device: Device | str = ..., bytes: int = ..., passes: int = ...) -> list[HostWayCost]:
    """
    What each way from ordinary memory of the host to the device costs: pageable, staged, pool, registered, read.
    """

class Hits:
    """The answer to a Boolean query."""

    @property
    def hits(self) -> int:
        """How many documents match, listed or not."""

    @property
    def ids(self) -> list[int]:
        """The matching ids of the page, ascending."""

    @property
    def offset(self) -> int:
        """The number of the first of them among all that match, from 0."""

    def __eq__(self, other: object, /) -> bool: ...

    def __hash__(self) -> int: ...

    def __repr__(self) -> str: ...

class Ranking:
    """The documents that match a query, the most relevant first."""

    @property
    def hits(self) -> int:
        """How many documents match, listed or not."""

    @property
    def ids(self) -> Annotated[NDArray[numpy.uint32], dict(shape=(None,))]:
        """The ids of the page."""

    @property
    def scores(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """
        Their scores by BM25, descending. Documents of equal score come in the order of their ids.
        """

    def __repr__(self) -> str: ...

class Index:
    """
    Which documents hold which terms. Immutable; made by build(), IndexBuilder or load().
    """

    @staticmethod
    def build(documents: Iterable[str | bytes], *, fold_diacritics: bool = False, frequencies: bool = False, stem: str | None = None) -> Index:
        """
        The index of documents, whose ids count from 0. Words are those of UAX #29, case-folded by NFKC; with `fold_diacritics` without accents, in documents and in queries. With `frequencies` it keeps how often words come, for rank(). With `stem`, one of stem_languages(), words become their stems by Snowball, in documents and in queries. Raises DataError when there is no document, or for one that is not UTF-8, UsageError for a language that is not there.
        """

    @staticmethod
    def stem_languages() -> list[str]:
        """
        What `stem` may be: the names of the algorithms of libstemmer; none where Headrace was built without.
        """

    @staticmethod
    def synthetic(*, documents: int, terms: int, length: float = ..., exponent: float = ..., seed: int = ..., threads: int = ..., progress: Callable[[float], None] | None = ...) -> Index:
        """
        The index of a made-up corpus whose words are independent and follow Zipf's law; word k, counted from 1 in order of frequency, is w and k with leading zeros. `length` is the mean number of words of a document. The same for any number of threads (0: all). Raises UsageError for what is out of range, SystemError when there is not memory enough: 4 bytes a posting, about 36 a term and 4 a term and thread.
        """

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Index:
        """
        Maps or unpacks a file that save() wrote, and checks all of it. Raises SystemError when it cannot be read, DataError naming what is wrong with it.
        """

    def save(self, path: str | os.PathLike[str], *, packed: bool = False) -> None:
        """
        Writes the file whole or not at all. With `packed` it is about a third as large, and load() unpacks it into memory instead of mapping it.
        """

    def compile(self, text: str) -> NDArray[numpy.uint8]:
        """
        The query, as the 240 bytes that retrieval(index) takes. Words, split as documents were; "quoted" ones, which are never operators; AND, OR, NOT in any case; parentheses; words beside each other mean AND. At most 32 terms and 64 parentheses inside each other. Raises UsageError with the position of what is wrong.
        """

    def compile_many(self, texts: Sequence[str]) -> NDArray[numpy.uint8]:
        """The same for many queries, one row each, by as many threads as pay."""

    def query(self, text: str, *, device: Device | str = 'best', offset: int = 0, limit: int = 15) -> Hits:
        """
        How many documents match, and the ids of a page of them: from number `offset` on, at most `limit`. The first 15 are found with an engine of its own on the device; every other page is found on the host. For many queries, keep an Engine.
        """

    def rank(self, text: str, *, offset: int = 0, limit: int = 15, k1: float = 1.2, b: float = 0.75) -> Ranking:
        """
        The documents that match, the most relevant first by BM25, found on the host. Terms that are not negated count. Raises UsageError where the index has no frequencies.
        """

    def matches(self, text: str) -> Annotated[NDArray[numpy.uint32], dict(shape=(None,))]:
        """
        The ids of all documents that satisfy a query, ascending, found on the host: for listing what an answer only counts. Raises UsageError as compile() does.
        """

    def postings(self, term: str) -> Annotated[NDArray[numpy.uint32], dict(shape=(None,))]:
        """
        The ids of the documents that have the term (lower case, stemmed), ascending.
        """

    @property
    def words(self) -> str:
        """
        How text is split into words: unicode, or ascii in an index of a file of version 1.
        """

    @property
    def fold_diacritics(self) -> bool:
        """Whether accents are taken off."""

    @property
    def stem(self) -> str | None:
        """The language by whose rules words are stemmed, or None."""

    @property
    def frequencies(self) -> bool:
        """Whether it keeps how often words come, for rank()."""

    @property
    def document_count(self) -> int: ...

    @property
    def term_count(self) -> int: ...

    @property
    def posting_count(self) -> int: ...

    def __repr__(self) -> str: ...

class IndexBuilder:
    """Makes an index of documents given one after the other."""

    def __init__(self, *, fold_diacritics: bool = ..., frequencies: bool = ..., stem: str | None = ...) -> None: ...

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

class BruteForce:
    """
    Answers Boolean queries the slow and plain way, by looking at every document: what an engine's answers are checked against.
    """

    def __init__(self, documents: Sequence[str], *, fold_diacritics: bool = ..., stem: str | None = ...) -> None:
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
    What is done with a query. Made by light(), reference(), retrieval(), of a function of Python by operator(), or of a shared object by load_library().
    """

    @property
    def name(self) -> str: ...

    @property
    def query_bytes(self) -> int: ...

    @property
    def answer_bytes(self) -> int: ...

    @property
    def answer_type(self) -> str:
        """How clients show answers; see headrace.dtypes. Empty: as bytes."""

    @property
    def query_type(self) -> str:
        """The same of queries. Empty where C++ does not know it."""

    @property
    def answers_inline(self) -> bool:
        """Whether it takes Plan.answer_inline."""

    def sample(self, count: int, first: int = ...) -> Annotated[NDArray[numpy.uint8], dict(shape=(None, None))]:
        """
        Queries number `first` to `first + count - 1` of an endless, reproducible sequence, as rows of bytes.
        """

    def answer_on_host(self, queries: numpy.typing.NDArray[Any] | Buffer) -> numpy.typing.NDArray[Any]:
        """
        The answers that the host gives, one after the other, as clients show them: what an engine's are checked against. Loads the operator's state each time.
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

def load_library(path: str | os.PathLike[str]) -> Operator:
    """
    The operator in a shared object that headrace_add_operator() of CMake built; see docs/operator-libraries.md. Loading runs code of the file, which stays loaded as long as the program runs. Raises MissingFileError, DataError for what is no whole shared object for this machine, and UsageError where it has no operator or was built for another version of Headrace, which the message names.
    """

def function_operator(name: str, query_bytes: int, answer_bytes: int, function: Callable[[], int] | None, state: int, owner: object, sample: Callable[[int], object] | None, answer_type: str, arrays: list[tuple[str, int, int, tuple[int, ...], int | None]] = ..., code: Callable[[Device, list[str]], bytes] | None = None, blocks: int = 1, threads: int = 32) -> Operator:
    """
    The operator that calls a C function on CPU devices, whose address `function` gives whenever it is loaded there; see operators/function.hpp. `owner` keeps the function and what lies at `state`. `sample` gives query number i, of query_bytes bytes. `code` gives a cubin with the kernels of these names for a CUDA device, which are given `arrays`: name, address, bytes, shape, and the number of the CUDA device that has it, or None.
    """

def function_kernels(compute_capability: int) -> bytes:
    """
    The kernels that call a function on a CUDA device, as LTO-IR, for nvJitLink; `compute_capability` is 90 for 9.0. Raises DeviceError in a build without CUDA and for GPUs older than those it was built for.
    """

def mlp_operator(layers: list[tuple[numpy.typing.NDArray[numpy.float32], numpy.typing.NDArray[numpy.float32] | None]], activation: str, dtype: str, threads: int) -> Operator:
    """
    A dense network: for each layer its weights (outputs x inputs) and its biases or None. See operators.mlp().
    """

def topk_operator(matrix: numpy.typing.NDArray[numpy.float32] | numpy.typing.NDArray[numpy.float16], k: int, metric: str, dtype: str, threads: int) -> Operator:
    """The best rows of a matrix of float32 or float16. See operators.topk()."""

class Plan:
    """
    Every choice that an engine makes. Choices are names; UsageError lists them for one that is none. What cannot work on a device is refused by Engine.
    """

    def __init__(self, *, name: str = ..., schedule: str = ..., threads: int = ..., streams_per_thread: int = ..., streams: str = ..., allocator: str = ..., host_memory: str = ..., binding: str = ..., first_processor: int = ..., batch_max: int = ..., batch_age: float = ..., doorbell: str = ..., blocks: int = ..., block_threads: int = ..., workers: int = ..., share: float = ..., answer_inline: bool = ..., hang_after: float = ..., clients_max: int = ..., slots: int = ..., spin: float = ..., sample_stages_every: int = ...) -> None: ...

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
        Batches that a thread has in flight, each on a stream of its own; "persistent": kernels that it feeds.
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
    def batch_max(self) -> int:
        """A batch closes at so many queries ..."""

    @batch_max.setter
    def batch_max(self, arg: int, /) -> None: ...

    @property
    def batch_age(self) -> float:
        """... or when its first query has been held for so many seconds."""

    @batch_age.setter
    def batch_age(self, arg: float, /) -> None: ...

    @property
    def doorbell(self) -> str:
        """Of persistent kernels: "words" or "barrier"."""

    @doorbell.setter
    def doorbell(self, arg: str, /) -> None: ...

    @property
    def blocks(self) -> int:
        """Blocks that answer one query; 0 leaves it to the operator."""

    @blocks.setter
    def blocks(self, arg: int, /) -> None: ...

    @property
    def block_threads(self) -> int:
        """Threads of each; 0 leaves it to the operator."""

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
        "dispatched": the part of the device that resident blocks take, above 0 and 1 at most, so that engines can be on it together.
        """

    @share.setter
    def share(self, arg: float, /) -> None: ...

    @property
    def answer_inline(self) -> bool:
        """
        "dispatched": a query that comes alone is answered by the block that hands queries out.
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
        """
        Batches that the device may work on at once; not for schedules without engine threads.
        """

    def copy(self) -> Plan:
        """A plan that can be changed without changing this one."""

    def __repr__(self) -> str: ...

    def __eq__(self, other: object, /) -> bool: ...

    __hash__: None  # type: ignore[assignment]

    def to_json(self) -> str:
        """Every choice as a JSON object; durations in microseconds."""

    @staticmethod
    def from_json(text: str) -> Plan:
        """
        The plan that to_json() wrote. Raises UsageError naming what is no choice, DataError for no JSON.
        """

    @staticmethod
    def tuned(device: Device | str, operator: Operator, bound: float = ...) -> Plan:
        """
        The plan of the highest rate with p99 within `bound` seconds: searched for, or taken from the cache of earlier searches; up to a minute. Raises Error when no plan keeps the bound. tune() gives figures and more choice.
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
        """What costs the rung before it time, and this one does not."""

    @property
    def plan(self) -> Plan:
        """A copy, with one thread."""

    @property
    def many_threads(self) -> bool:
        """Whether the number of threads is searched for."""

    @property
    def many_streams(self) -> bool:
        """Whether streams_per_thread is."""

    @property
    def many_batches(self) -> bool:
        """Whether batch_max is."""

    def __repr__(self) -> str: ...

def rungs() -> list[Rung]:
    """All rungs of the ladder, in order."""

def find_rung(text: str) -> Rung:
    """A rung by number or id. Raises UsageError that lists them."""

def same_as(rung: Rung, device: Device | str) -> str:
    """
    Where a rung is no other work than an earlier one on that device: why; else empty.
    """

class AsyncClient:
    """
    A coroutine's way into an engine: made by Engine.connect_async(), or of the URL shm://NAME/MODEL for one that another process of this machine and user serves, as Client is. All coroutines of one event loop may share it; the first call says which loop it belongs to. Answers have the operator's type. A call that is cancelled, as asyncio.timeout() does, is not told of its answer, and does not go on waiting in line.
    """

    def __init__(self, url: str, *, slots: int = ..., waiting_max: int = ...) -> None:
        """
        Connects to a server's model, as Client does, and with the same errors. `waiting_max` calls may wait for free slots. Once the server has ended, what it has not answered comes back as stopped.
        """

    def ask(self, query: numpy.typing.NDArray[Any] | Buffer, *, deadline: float | None = None) -> asyncio.Future[Any]:
        """
        Submits one query at once, without being awaited, and gives the future of its answer. Where Plan.slots queries are in flight, a copy waits in line for a free slot. Awaiting raises Error with the code that the query came back with. The call itself raises UsageError for a query that does not fit and where no event loop or another one runs, and Error with the code full when the line is.
        """

    def ask_many(self, queries: numpy.typing.NDArray[Any] | Buffer, *, deadline: float | None = None) -> asyncio.Future[tuple[numpy.typing.NDArray[Any], numpy.typing.NDArray[numpy.uint8]]]:
        """
        As ask(), with all queries of an array, which stays unchanged until the future is done: (answers, status), a row and an entry each. A status is 0 for an answer; see Errc.of_status(). In line it counts as one call.
        """

    @property
    def query_dtype(self) -> object:
        """As Client has it."""

    @property
    def answer_dtype(self) -> object:
        """As Client has it."""

    @property
    def in_flight(self) -> int:
        """Queries submitted that have not come back."""

    @property
    def waiting(self) -> int:
        """Calls that wait for free slots."""

    def close(self) -> asyncio.Future[None]:
        """
        Refuses new queries. The future is done when all are back; then another client may connect.
        """

    def __aenter__(self) -> asyncio.Future[AsyncClient]: ...

    def __aexit__(self, *exception: object) -> asyncio.Future[None]: ...

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

class StageSample:
    """The way of one sampled query; seconds."""

    @property
    def submitted(self) -> float:
        """On a steady clock: good for differences alone."""

    @property
    def queue(self) -> float:
        """Submitted to taken up."""

    @property
    def host(self) -> float:
        """Taken up to answered, less the next three."""

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
    def whole(self) -> float:
        """Submitted to answered."""

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
        Of the operator's type, or rows of bytes. Zeros where there is no answer.
        """

class Client:
    """
    A thread's own way into an engine: made by Engine.connect(), or of the URL shm://NAME/MODEL for one that another process of this machine and user serves (`headrace serve --shm NAME`, or wire.Server with `shm`). It is used by one thread at a time, else it raises UsageError. Every query comes back exactly once. Queries are NumPy arrays of any type, or other buffers, of Operator.query_bytes bytes each; UsageError names both sizes where they do not fit. Deadlines and timeouts are seconds from now.
    """

    def __init__(self, url: str, *, slots: int = ...) -> None:
        """
        Connects to a server's model: shm://NAME/MODEL, or shm://NAME where the server has one model. `slots` queries may be in flight, a power of two; 0 is 256, or as many as the server allows where that is less. Once the server has ended, is about to stop or has another model under the name, what it has not answered comes back as stopped. Raises UsageError for another URL and for a model that the server does not have, SystemError where there is no such server, it does not answer for 10 s, or it has no room.
        """

    def submit(self, query: numpy.typing.NDArray[Any] | Buffer, *, tag: int = 0, deadline: float | None = None) -> int:
        """
        Offers one query and returns its ticket. Raises Error with the code full when Plan.slots queries are in flight, not yet polled, or late and still worked on, stopped after Engine.stop().
        """

    def submit_many(self, queries: numpy.typing.NDArray[Any] | Buffer, *, tag: int = 0, deadline: float | None = None) -> int:
        """
        Offers queries that lie one behind the other; how many were admitted, from the front. Query i has tag + i.
        """

    def poll(self, most: int = ...) -> Completions:
        """
        Takes in what has come back, at most `most`, in order of submission; a query whose deadline has passed does not wait for those before it. Never waits.
        """

    def wait(self, ticket: int, timeout: float | None = ...) -> bool:
        """
        Waits until that query has come back, at its deadline at the latest; it is still to be polled. False when only `timeout` has passed.
        """

    def ask(self, query: numpy.typing.NDArray[Any] | Buffer, *, deadline: float | None = None) -> Any:
        """
        Submits one query and waits for its answer, which has the operator's type; an array of bytes where it has none. Only while nothing else of this client is in flight. Raises Error with the code that the query came back with.
        """

    def ask_many(self, queries: numpy.typing.NDArray[Any] | Buffer, *, deadline: float | None = None) -> tuple[numpy.typing.NDArray[Any], numpy.typing.NDArray[numpy.uint8]]:
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

    @property
    def query_dtype(self) -> object:
        """
        The type of a query as the operator has it; bytes for one whose queries have none.
        """

    @property
    def answer_dtype(self) -> object:
        """The type of an answer; bytes for an operator whose answers have none."""

    def close(self) -> None:
        """
        Waits for what is in flight, drops it, and lets another client connect. A client of another process drops it at once.
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

    def connect_async(self, *, waiting_max: int = ...) -> AsyncClient:
        """
        A client for the coroutines of one event loop of asyncio, in which `waiting_max` calls may wait for free slots. Raises UsageError when all Plan.clients_max are taken.
        """

    def drain(self, timeout: float | None = ...) -> bool:
        """
        Waits until everything submitted so far has been answered, or `timeout` seconds have passed; whether it has been.
        """

    def stop(self) -> None:
        """
        Refuses new queries, answers those not yet started with the status stopped, and ends the threads. Clients may still poll.
        """

    @property
    def share(self) -> float:
        """
        The part of the device that the pool of schedule dispatched has: Plan.share at first. It may be set while queries are in flight: none is lost, and those that no block works on yet wait some milliseconds. Raises UsageError for another schedule, for a plan with workers, for a share that is not above 0 and at most 1, and with the code full if the device has no room for it; the engine keeps its old share then.
        """

    @share.setter
    def share(self, arg: float, /) -> None: ...

    def statistics(self) -> EngineStatistics:
        """What the engine has done so far. Any thread may ask."""

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

def roofs(device: Device | str, operator: Operator, generators: int = ...) -> Roofs:
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
        """Every load put on `plan`, by incoming rate."""

    @property
    def stages(self) -> StageTimes: ...

    @property
    def samples(self) -> list[StageSample]:
        """Some queries of `load`, for a timeline."""

    @property
    def capacities(self) -> list[Capacity]:
        """Of every thread count tried."""

    @property
    def note(self) -> str: ...

class LadderResult:
    """What a climb found of each rung, and the roofs beside them."""

    @property
    def roofs(self) -> Roofs:
        """Measured before and after the climb: the higher ones."""

    @property
    def roofs_disturbed(self) -> str:
        """Why they may not be the machine's own, or empty."""

    @property
    def rungs(self) -> list[RungResult]: ...

    @property
    def interrupted(self) -> bool:
        """Ctrl-C ended it early."""

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
        """At the highest rate at which all of them were sustained."""

    @property
    def loads(self) -> int:
        """That it took to confirm that rate, those not sustained as well."""

    @property
    def tried(self) -> list[LoadResult]:
        """Every load, by incoming rate."""

    @property
    def note(self) -> str: ...

class PlanLoad:
    """What one plan did under one load."""

    @property
    def load(self) -> LoadResult: ...

    @property
    def stages(self) -> StageTimes: ...

    @property
    def roofs(self) -> Roofs:
        """Measured before and after the load: the higher ones."""

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

class GpuLimits:
    """What a GPU has, as far as it decides how many blocks it holds."""

    @property
    def name(self) -> str: ...

    @property
    def compute_capability(self) -> int:
        """89 for 8.9."""

    @property
    def multiprocessors(self) -> int: ...

    @property
    def threads(self) -> int:
        """Of each multiprocessor, as are the next three."""

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
    """What a kernel takes of a multiprocessor."""

    @property
    def registers(self) -> int:
        """Of each thread."""

    @property
    def shared_bytes(self) -> int:
        """Of each block, static."""

    @property
    def local_bytes(self) -> int:
        """Of each thread; spilled registers are here."""

    @property
    def threads_max(self) -> int:
        """Most threads of a block."""

class Occupancy:
    """How many blocks a multiprocessor holds, and what ends it."""

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
    """The GPUs whose limits are known, by name."""

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
    What the operator's kernel takes of that device; zeros on a CPU device.
    """

def resident_blocks_max(device: Device | str, operator: Operator, block_threads: int = ...) -> int:
    """
    Blocks of the operator's kernel that can be resident at once, as the device itself says.
    """

class CsrPart:
    """What one device has of a sparse matrix."""

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
        """Read by each multiplication, beside the vectors."""

    @property
    def remote_read_count(self) -> int:
        """Entries whose element of x lies on a page of another device."""

    @property
    def remote_bytes(self) -> int:
        """
        What its blocks read over links where x is read in place: 32 bytes for each sector, once a block.
        """

    @property
    def copied_count(self) -> int:
        """
        Elements of x that are copied to the device in every multiplication; 0 where x is read in place.
        """

    def __repr__(self) -> str: ...

def gather(reader: Device | str, owner: Device | str) -> float:
    """
    Bytes per second at which a kernel on `reader` copies to its own memory what lies on pages of `owner`.
    """

class CsrMatrix:
    """
    A sparse matrix in compressed rows over one or several devices; vectors are one range over all of them.
    """

    def __init__(self, devices: Device | str | Sequence[Device | str], indptr: numpy.typing.NDArray[Any], indices: numpy.typing.NDArray[Any], data: numpy.typing.NDArray[Any], shape: tuple[int, int], *, reads: str = ...) -> None:
        """
        Copies a matrix to its devices, rows cut by equal numbers of entries. `indptr` and `indices` are int32 or int64, `data` is float32 or float64. What of x lies on other devices is read "in-place" or "copied" first; "automatic" takes the one that moves less. Raises UsageError that names the first row or entry that is wrong.
        """

    @staticmethod
    def from_scipy(devices: Device | str | Sequence[Device | str], matrix: object, *, reads: str = ...) -> CsrMatrix:
        """
        The same from a sparse matrix or array of SciPy; forms other than CSR are converted by it.
        """

    @property
    def shape(self) -> tuple[int, int]: ...

    @property
    def nnz(self) -> int:
        """Entries, whether zero or not."""

    @property
    def dtype(self) -> str:
        """"float32" or "float64"."""

    @property
    def parts(self) -> list[CsrPart]:
        """What each device has."""

    def multiply(self, x: numpy.typing.NDArray[Any], times: int = ...) -> numpy.typing.NDArray[Any]:
        """
        A x, or A^times x for a square matrix, as a new array; x stays on the devices between.
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
        """As the operating system numbers it."""

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
    """Processors and caches, as hwloc sees them."""

    @staticmethod
    def machine() -> Topology:
        """This machine."""

    @staticmethod
    def synthetic(description: str) -> Topology:
        """A machine by hwloc's description, such as "numa:2 l3:4 core:4 pu:2"."""

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
        """A line a cache: which cores share it."""

    def reordering(self) -> str:
        """Whether the order of cores can matter here, and why."""

class CoreRoundTrip:
    """How long a word takes from one processor to another and back."""

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
    What the management library says of a device at this moment; None where it does not say.
    """

    @property
    def absence(self) -> str:
        """Why it says nothing at all; empty when it does."""

    @property
    def persistence(self) -> bool | None: ...

    @property
    def bar1_bytes(self) -> int | None:
        """Window through which PCIe peers and the host see its memory."""

    @property
    def link_generation(self) -> int | None:
        """PCIe, now: an idle device may sleep at a lower rate."""

    @property
    def link_width(self) -> int | None: ...

    @property
    def link_generation_max(self) -> int | None:
        """That device and machine agree on."""

    @property
    def link_width_max(self) -> int | None: ...

    @property
    def device_generation_max(self) -> int | None:
        """That the device has, anywhere."""

    @property
    def nvlink_count(self) -> int:
        """NVLinks that are up."""

    @property
    def near_processors(self) -> list[int]: ...

def read_health(device: Device | str) -> DeviceHealth:
    """
    What the management library says of a device at the moment; nothing of a CPU device.
    """

class PeerConnection:
    """How two devices are joined."""

    @property
    def way(self) -> str: ...

    @property
    def access(self) -> bool:
        """Kernels of the first can be let into the memory of the second."""

    @property
    def native_atomics(self) -> bool: ...

def peer_connection(from_device: Device | str, to_device: Device | str) -> PeerConnection:
    """How one device reaches the memory of another."""

class LinkRoute:
    """Which way bytes go, from or to which memory, by what."""

    @property
    def device(self) -> Device:
        """Does the work."""

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
    Why a route cannot be measured; empty when it can be tried. Raises UsageError for one that says nothing.
    """

class LinkPoint:
    """A link at one size of transfer."""

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
    """A route against the size of a transfer."""

    @property
    def route(self) -> LinkRoute: ...

    @property
    def points(self) -> list[LinkPoint]: ...

    @property
    def gated(self) -> bool:
        """
        Timed by the device from behind a gate, so that enqueueing counts for nothing.
        """

    @property
    def note(self) -> str:
        """Why there are no points, or what is to be said of them."""

    def saturation_bytes(self, share: float = ...) -> int:
        """
        The smallest size that reaches that share of the best rate; 0 without points.
        """

def links_at_once(routes: Sequence[LinkRoute], sizes: Sequence[int], samples: int = ..., bytes_per_sample: int = ..., seed: int = ...) -> list[LinkCurve]:
    """
    Measures several routes while all of them are busy: a curve for each. Raises as link does.
    """

def link(route: LinkRoute, sizes: Sequence[int], samples: int = ..., bytes_per_sample: int = ..., seed: int = ...) -> LinkCurve:
    """
    Measures one route. Raises UsageError for sizes that do not ascend or are no multiple of 16.
    """

def link_sizes(least: int, most: int, factor: int) -> list[int]:
    """Sizes from `least` to `most`, each `factor` times the one before."""

def pcie_rate(generation: int | None, width: int | None) -> float | None:
    """
    What such a PCIe link carries one way, in bytes per second; None when either is unknown.
    """

class ChaseResult:
    """What one load takes that waits for the one before."""

    @property
    def nanoseconds(self) -> float: ...

    @property
    def least(self) -> float: ...

    @property
    def most(self) -> float: ...

    @property
    def cycles(self) -> float | None:
        """Of the multiprocessor's clock; None on a CPU device."""

    @property
    def verified(self) -> bool: ...

    @property
    def note(self) -> str: ...

def chase(device: Device | str, memory: str = ..., peer: Device | str | None = ..., bytes: int = ..., stride_bytes: int = ..., first_cache: bool = ..., steps: int = ..., samples: int = ...) -> ChaseResult:
    """
    One thread follows a chain of addresses in random order through local, peer or host memory.
    """

class OwnerCache:
    """Whose L2 keeps what is read over a link; nanoseconds a step."""

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
        """Every word is what was added to it."""

    @property
    def note(self) -> str: ...

def peer_atomics(owner: Device | str, other: Device | str, samples: int = ...) -> AtomicsResult:
    """Words on `owner`, added to by both."""

def host_atomics(device: Device | str, samples: int = ...) -> AtomicsResult:
    """
    Words in host memory, added to by device and host; "local" is the host.
    """

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
        """The part of the shorter that the longer hid."""

class HidingCurve:
    """How much work hides under a far load."""

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
        """One call a piece."""

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
    What reaching another device's memory costs; seconds, bytes per second.
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
    """What NVLink's counters say of bytes that are known."""

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
    Copies so many bytes in pieces of 64 MiB over NVLink while its counters are watched.
    """

class TunerProgress:
    """What a tuner is doing."""

    @property
    def phase(self) -> str:
        """"coarse", "fine", "rates" or "exhaustive"."""

    @property
    def done(self) -> int:
        """Plans of this phase."""

    @property
    def of(self) -> int:
        """0 where it is not known."""

    @property
    def plan(self) -> Plan:
        """Being tried."""

    @property
    def best_per_second(self) -> float: ...

class TunedPlan:
    """A plan that was found, and what it does."""

    @property
    def plan(self) -> Plan: ...

    @property
    def generators(self) -> int: ...

    @property
    def per_second(self) -> float:
        """Sustained with p99 within the bound; 0 when none was found."""

    @property
    def p99(self) -> float: ...

    @property
    def load(self) -> LoadResult | None:
        """None when the plan comes from the cache and was not measured."""

    @property
    def stages(self) -> StageTimes: ...

    @property
    def took(self) -> float:
        """Seconds."""

    @property
    def space(self) -> int:
        """Plans that there were to choose from."""

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
        """Ctrl-C ended it early."""

    @property
    def note(self) -> str:
        """Why there is no plan."""

def tune(device: Device | str, operator: Operator, *, bound: float = ..., budget: float = ..., schedules: Sequence[str] = ..., arrivals: str = ..., seed: int = ..., generators: int = ..., single_thread: bool = ..., threads_max: int = ..., window: float = ..., rank_tolerance: float = ..., cache: str = ..., cache_file: str = ..., measure_cached: bool = ..., exhaustive: bool = ..., progress: Callable[[TunerProgress], None] | None = ...) -> TunedPlan:
    """
    Searches for the plan that sustains the highest rate with p99 within `bound` seconds, for about `budget` seconds. What is found is kept in `cache_file` (empty: plan_cache_file()); `cache` "refresh" searches again, "ignore" neither reads nor writes it. `exhaustive` searches the rate of every plan there is, without cache and budget. `progress` is called from another thread. Ctrl-C ends it with the best so far. Raises UsageError naming the option that is out of range.
    """

def plan_cache_file() -> str:
    """
    Where the plans that were found are kept; empty where no folder is known.
    """

class Place:
    """Where a page of a span lies: on a device, or on the host."""

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
    """The rule by which the pages of a span are placed; it holds no memory."""

    @staticmethod
    def all(place: Place | Device | str) -> Placement:
        """All pages in one place."""

    @staticmethod
    def interleaved(shares: Sequence[tuple[Place | Device | str, int]]) -> Placement:
        """
        Pages dealt to (place, weight) in proportion to the weights, as evenly as whole pages allow.
        """

    @staticmethod
    def blocked(places: Sequence[Place | Device | str]) -> Placement:
        """Consecutive pages, as even a number as possible for each place."""

    @staticmethod
    def map(pages: Sequence[Place | Device | str]) -> Placement:
        """A place for each page."""

    @staticmethod
    def budget(device: Device | str, device_bytes: int, heat: Sequence[int] | None = ...) -> Placement:
        """
        At most `device_bytes` on the device, the rest on the host: spread evenly, or the hottest pages on the device where `heat` has a count of accesses for each page.
        """

    def pages(self, page_count: int, page_bytes: int = ...) -> list[Place]:
        """Where each page of a span of so many pages goes."""

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
    """What a span has where, and what was moved."""

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
    Device pages of a span as file descriptors, for another process. The descriptors are the caller's to close.
    """

    def __init__(self, bytes: int, device: Device | str, descriptors: Sequence[int], page_bytes: int = ...) -> None: ...

    @property
    def bytes(self) -> int: ...

    @property
    def device(self) -> Device: ...

    @property
    def descriptors(self) -> list[int]:
        """One a page."""

    @property
    def page_bytes(self) -> int: ...

PAGE_BYTES: int = ...

SPARE_PAGES: int = ...

class Span:
    """
    One range of addresses whose pages, of 2 MiB or more, lie on devices and on the host as a Placement says, and may be moved while it lives.
    """

    def __init__(self, device: Device | str, bytes: int, placement: Placement, *, accessed_by: Sequence[Device | str] = ..., numa_node: int | None = ..., shareable: bool = ..., page_bytes: int = ...) -> None:
        """
        Contents are undefined. A page has a power of two of bytes, PAGE_BYTES at least; large ones move with fewer calls of the driver. Raises UsageError for what cannot be, DeviceError where there is no virtual memory management or not memory enough.
        """

    @property
    def device(self) -> Device: ...

    @property
    def address(self) -> int:
        """Of the first byte; 0 once released."""

    @property
    def bytes(self) -> int:
        """As asked for."""

    @property
    def page_count(self) -> int: ...

    @property
    def page_bytes(self) -> int:
        """Of each page; 0 once released."""

    def __len__(self) -> int: ...

    @property
    def places(self) -> list[Place]:
        """The place of each page."""

    def statistics(self) -> SpanStatistics:
        """Where the pages lie, and what moves have cost so far."""

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
        Moves every page that lies elsewhere than the placement says, and waits for it. Work in flight on the span must be done. After a failure every page is whole, in its old place or its new one.
        """

    @overload
    def move(self, to: Place | Device | str, pages: range | None = None) -> None:
        """Moves pages to one place."""

    def keep_spare_pages(self, count_per_place: int) -> None:
        """
        Keeps at most so many of the pages that moves leave in a place, in each place, for the next moves that come there (SPARE_PAGES unless called; 0: none), and gives back at once what is kept beyond that.
        """

    def trim(self) -> None:
        """Gives back the pages kept from moves; later moves keep pages again."""

    def release(self) -> None:
        """
        Gives everything back now. Raises UsageError while arrays or operators look at the span.
        """

    def share(self) -> SharedPages:
        """
        The pages for another process, which needs the descriptors (socket.send_fds). Raises UsageError when the span was not made shareable, or has pages on the host or on two devices.
        """

    @staticmethod
    def from_shared(pages: SharedPages) -> Span:
        """
        Maps what share() gave in another process. The descriptors may be closed afterwards.
        """

    def numpy(self) -> NDArray[numpy.uint8]:
        """
        The bytes as an array, not copied, read-only where the host may only read. Raises UsageError when the host may not read a page, which on CUDA is so for pages on a device.
        """

    def array(self, dtype: Any, shape: int | Sequence[int] | None = None, offset: int = 0) -> NDArray[Any]:
        """
        The same as items of a type, from byte `offset`; as many as there are where `shape` is None.
        """

    def __dlpack__(self, **kwargs: Any) -> Any:
        """
        The bytes for torch.from_dlpack() and its like, not copied. Raises UsageError when the device may not read a page.
        """

    def __dlpack_device__(self) -> tuple[int, int]: ...

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """For CuPy, Numba and PyTorch; on CUDA devices alone."""

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
    Pooled rows that lie in a span, which the operator keeps. See operators.lookup().
    """

class OversubscriptionCell:
    """One thing that `oversubscribe` measures."""

    @property
    def pattern(self) -> str: ...

    @property
    def rows(self) -> str:
        """Of zipf-rows alone."""

    @property
    def operation(self) -> str: ...

    @property
    def strategy(self) -> str: ...

    @property
    def factor(self) -> float:
        """Bytes of data over bytes of the budget."""

    @property
    def page_bytes(self) -> int:
        """Of random-warp, the page that is drawn; of prefetched, what is split."""

    @property
    def threads(self) -> int:
        """Of a block."""

    @property
    def synchronised(self) -> bool:
        """Threads of a block meet after every turn of the loop."""

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
    """What a cell did."""

    @property
    def cell(self) -> OversubscriptionCell: ...

    @property
    def data_bytes(self) -> int: ...

    @property
    def touched_bytes(self) -> int:
        """By one run, a byte as often as it is touched."""

    @property
    def device_bytes(self) -> int:
        """Of these, such as lie on the device."""

    @property
    def host_bytes(self) -> int:
        """
        Of these, such as lie on the host. Of on-demand all cross the link and lie on both.
        """

    @property
    def blocks(self) -> int:
        """Of the launch."""

    @property
    def times(self) -> list[float]:
        """
        Seconds of each timed run, on the device's clock; none when it was not run.
        """

    @property
    def bytes_per_second(self) -> float:
        """Touched, at the median time."""

    @property
    def roof(self) -> float:
        """
        Bytes touched over max(device bytes / memory bandwidth, host bytes / link bandwidth). Caches may beat it where rows are touched again and again.
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
        """One an operation."""

    @property
    def copy_to_device(self) -> float:
        """
        Bytes per second of the copy engine, which migrates pages; 0 where not needed.
        """

    @property
    def cells(self) -> list[OversubscriptionResult]: ...

    @property
    def interrupted(self) -> bool:
        """Ctrl-C ended it early."""

class OversubscriptionProgress:
    """What is being measured."""

    @property
    def done(self) -> int:
        """Cells."""

    @property
    def of(self) -> int:
        """0 while roofs are measured."""

    @property
    def cell(self) -> OversubscriptionCell: ...

def access_patterns() -> list[str]:
    """The names of access patterns."""

def access_operations() -> list[str]:
    """The names of what is done with data."""

def access_strategies() -> list[str]:
    """The names of the ways to keep data larger than a device."""

def oversubscribe(device: Device | str = ..., *, patterns: Sequence[str] | None = ..., rows: Sequence[str] | None = ..., operations: Sequence[str] | None = ..., strategies: Sequence[str] | None = ..., factors: Sequence[float] | None = ..., page_bytes: Sequence[int] | None = ..., threads: Sequence[int] = ..., synchronised: Sequence[bool] = ..., budget_bytes: int = ..., blocks_per_multiprocessor: int = ..., runs: int = ..., progress: Callable[[OversubscriptionProgress], None] | None = ...) -> OversubscriptionReport:
    """
    Bandwidth of every access pattern, operation, strategy and factor, verified, beside its roof. Data is `factor` times `budget_bytes` (0: oversubscription_budget()), which stands in for the device's memory. What is not given is all of it, but operations (read) and page sizes (2 MiB). A cell that cannot be run has a `note` that says why. `progress` is called from another thread. Ctrl-C ends it with the cells so far. Raises UsageError naming the option that is out of range.
    """

def oversubscription_budget(device: Device | str = ...) -> int:
    """
    An eighth of the device's free memory in whole pages, but no more than a thirty-second of the host's.
    """

class OperationRates:
    """Bytes of data gone through per second, each counted once."""

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
    """What page faults bring to the device per second, by pattern."""

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
    What the memory of a device and of its host can do for a kernel; bytes per second and seconds.
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
        """One that takes 128 bytes at random places, a warp each."""

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
        """Of host memory that address translation holds."""

    @link_reach_bytes.setter
    def link_reach_bytes(self, arg: float, /) -> None: ...

    @property
    def link_beyond_reach(self) -> float:
        """Share of the rate beyond that."""

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
        """One host thread filling host memory from host memory."""

    @host_copy.setter
    def host_copy(self, arg: float, /) -> None: ...

    @property
    def device_page(self) -> float:
        """Seconds to take and map a page of 2 MiB on the device."""

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
        """Of random accesses that a full device has on their way."""

    @in_flight_bytes.setter
    def in_flight_bytes(self, arg: float, /) -> None: ...

    @property
    def cache_bytes(self) -> float: ...

    @cache_bytes.setter
    def cache_bytes(self, arg: float, /) -> None: ...

    @property
    def cache(self) -> float:
        """Bytes per second out of the cache."""

    @cache.setter
    def cache(self, arg: float, /) -> None: ...

    @property
    def one_memory(self) -> bool:
        """The device's memory is the host's."""

    @one_memory.setter
    def one_memory(self, arg: bool, /) -> None: ...

    @property
    def memory_bytes(self) -> int:
        """Of the device; free ones, where it is here."""

    @memory_bytes.setter
    def memory_bytes(self, arg: int, /) -> None: ...

    @property
    def managed(self) -> bool:
        """Managed memory with concurrent access."""

    @managed.setter
    def managed(self, arg: bool, /) -> None: ...

    @property
    def managed_bytes(self) -> int | None:
        """Most managed memory that may be taken; None when not known."""

    @managed_bytes.setter
    def managed_bytes(self, arg: int | None, /) -> None: ...

    def __repr__(self) -> str: ...

def known_memory_rates() -> list[MemoryRates]:
    """The rates of known machines, by name."""

def find_memory_rates(name: str) -> MemoryRates:
    """
    The rates of a machine of the table, such as "H100". Raises UsageError that lists them.
    """

def memory_rates_of(device: Device | str) -> MemoryRates:
    """
    Rates of a device that is here without measuring: those of the table for such a device.
    """

def memory_rates(device: Device | str = ...) -> MemoryRates:
    """Measures them, in some tenths of a second."""

class AccessProfile:
    """
    What a kernel does with its data, as far as it decides where the data should lie.
    """

    def __init__(self, bytes: int, budget_bytes: int, pattern: str = ..., operation: str = ..., *, reuse: float = ..., exponent: float = ..., row_bytes: int = ..., order: str = ..., hot_sweeps: float = ..., heat: Sequence[int] = ..., pinned_already: bool = ...) -> None:
        """
        `bytes` of data and `budget_bytes` of device memory for it; how many times the data is gone through (`reuse`, infinity leaves preparation out); zipf-rows: `exponent`, `row_bytes`, `order` (ordered or scattered); `heat`: counted accesses to each page of 2 MiB.
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
    """What the model assumes beside the rates; see bench/advice_grid.py."""

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
    """What one strategy is predicted to do."""

    @property
    def strategy(self) -> str: ...

    @property
    def refused(self) -> str:
        """Why it cannot be used here; empty when it can."""

    @property
    def pass_seconds(self) -> float:
        """Once through the data."""

    @property
    def prepare_seconds(self) -> float:
        """Before the first pass."""

    @property
    def host_share(self) -> float:
        """Of the bytes touched, those that cross the link."""

    @property
    def bytes_per_second(self) -> float:
        """Touched, over all passes, preparation included."""

    @property
    def roof_per_second(self) -> float:
        """What memory and link would allow, in order."""

    def __repr__(self) -> str: ...

class Advice:
    """What to do with data, and why."""

    @property
    def strategy(self) -> str:
        """The choice."""

    @property
    def forecasts(self) -> list[StrategyForecast]:
        """Of every strategy: the choice, then the best first, refused ones last."""

    @property
    def because(self) -> str:
        """In words."""

    @property
    def placement(self) -> Placement:
        """For a Span; where the strategy is none, the nearest to it."""

    @property
    def cpp(self) -> str:
        """C++ to paste."""

    @property
    def python(self) -> str:
        """Python to paste."""

def advise(profile: AccessProfile, rates: MemoryRates | None = ..., device: Device | str = ..., constants: AdviceConstants = ...) -> Advice:
    """
    Chooses strategy and placement for data that is used as `profile` says. Without `rates`, those of the table for the device; headrace.measure.memory_rates() gives better ones.
    """

class Ranks:
    """The processes that share a domain."""

    @property
    def rank(self) -> int:
        """Of this process, from 0."""

    @property
    def count(self) -> int: ...

    @property
    def rank_on_machine(self) -> int:
        """Of this process among those on the same machine."""

    @property
    def takes_device_memory(self) -> bool:
        """
        Whether borders go from the memory of one CUDA device to another's, not through the host's.
        """

    @property
    def failure(self) -> str | None:
        """Which rank failed, and why; None while all is well."""

    def fail(self, why: str) -> None:
        """Tells all ranks that this one cannot go on."""

    def agree(self, numbers: Sequence[int]) -> list[int]:
        """The numbers of rank 0, on all; all call it, with as many."""

    def gather(self, text: str) -> list[str]:
        """What each rank gives, by rank, on all; of at most 255 bytes."""

class FdtdOptions:
    """What an FdtdCore is made of; cells have three indices."""

    def __init__(self, dimensions: int, shape: Sequence[int], spacing: float, time_step: float | None, devices: Sequence[Device | str], cut: Sequence[int] | None, redundant: int, push: str, mode: str, passes: str, pass_steps: int, wait_limit: float, cpml: int, precision: str, ranks: Ranks | None = ..., averaging: bool = ..., grading: Sequence[float] | None = ..., per_component: bool = ..., sides: Sequence[Sequence[int]] | None = ..., pole_values: int = ..., device_memory: int = ..., visit_steps: int = ...) -> None: ...

    def weigh(self, speeds: Sequence[float]) -> None:
        """
        Cuts slabs along the last axis, as thick as these numbers say, one a part.
        """

    def measure_speeds(self, steps: int) -> list[float]:
        """Cells a second of each device alone, for weigh()."""

    def tune(self, redundant: int | None, push: str | None, steps: int) -> list[tuple[int, str, float | None, str]]:
        """
        Takes the redundant layers and the push, of those not given, that have the shortest step. Of each choice tried: layers, push, seconds a step, and why it cannot be.
        """

    @property
    def grading(self) -> list[float]:
        """
        How the absorbing layers are graded: order, sigma, kappa, kappa_order, alpha and alpha_order.
        """

    @property
    def redundant(self) -> int: ...

    @property
    def push(self) -> str: ...

class FdtdCore:
    """
    What headrace.grid.Fdtd runs on: arrays are flat, x fastest, cells have three indices.
    """

    def __init__(self, options: FdtdOptions) -> None: ...

    def step(self, count: int, check_every: int = ...) -> None:
        """
        Looks for values that are not finite every so many steps, where that is not 0.
        """

    def check_finite(self) -> None: ...

    def get(self, field: str) -> numpy.typing.NDArray[Any]: ...

    @overload
    def set(self, field: str, values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    @overload
    def set(self, field: str, values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def resume(self, steps: int, traces: Sequence[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]]) -> None: ...

    def record_timeline(self, cycles: int) -> None: ...

    def timeline(self) -> list[tuple[int, int, str, float, float]]:
        """
        Of each piece of work its part, cycle and name, and when it began and ended, in s.
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
        Where the domain is in slabs: rows of each, their number, steps of a visit, bytes that one copies in and out, bytes on the device and on the host.
        """

    @property
    def parts(self) -> list[tuple[str, str]]:
        """The device of each part of this process, and its cells."""

    def set_materials(self, permittivity: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], conductivity: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], permeability: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], edges: Sequence[tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.uint16], dict(shape=(None,), order='C', device='cpu', writable=False)]]], media: Sequence[FdtdMedium], medium: Annotated[NDArray[numpy.uint16], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """
        Of one value, or of one a cell, x fastest; edges along each axis: cells, permittivity, conductivity, medium; dispersive media, and the number of each cell's, 0 for none.
        """

    def set_component_materials(self, permittivity: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], conductivity: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], permeability_hx: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], permeability_hy: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """Of one value, or of one a cell, x fastest."""

    def add_source(self, field: str, cell: Sequence[int], samples: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def add_sources(self, field: str, cells: Annotated[NDArray[numpy.int64], dict(shape=(None, 3), order='C', device='cpu', writable=False)], samples: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """The same samples in each of these cells."""

    def add_receiver(self, field: str, cell: Sequence[int]) -> int: ...

    def trace(self, receiver: int) -> numpy.typing.NDArray[Any]: ...

    @property
    def receiver_count(self) -> int: ...

def pole_values_needed(dimensions: int, shape: Sequence[int], averaging: bool, media: Sequence[FdtdMedium], medium: Annotated[NDArray[numpy.uint16], dict(shape=(None,), order='C', device='cpu', writable=False)], edges: Sequence[tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.uint16], dict(shape=(None,), order='C', device='cpu', writable=False)]]]) -> int:
    """
    FdtdOptions.pole_values of such media, of cells (one number, or one a cell) and of edges.
    """

class FdtdMedium:
    """The poles of a dispersive medium."""

    def __init__(self) -> None: ...

    def add_debye(self, difference: float, relaxation_time: float) -> None: ...

    def add_lorentz(self, difference: float, omega_0: float, damping: float) -> None: ...

    def add_drude(self, omega_p: float, rate: float) -> None: ...

    @property
    def conductivity(self) -> float:
        """S/m, that of Drude poles at frequency 0."""

    @property
    def pole_values(self) -> int:
        """Values of memory that a component of E keeps for it."""

    def problem(self, time_step: float) -> str:
        """Why a run cannot have it; empty where it can."""

    def permittivity_in_step(self, time_step: float) -> float:
        """What the poles add to the permittivity that a step divides by."""

    def permittivity_at_fastest(self, time_step: float) -> float:
        """
        What they add to the permittivity that the time step has to be stable for.
        """

class JacobiCore:
    """What headrace.grid.Jacobi runs on: arrays are flat, x fastest."""

    def __init__(self, shape: Sequence[int], devices: Sequence[Device | str], cut: Sequence[int] | None, redundant: int, push: str, passes: str, pass_steps: int, precision: str) -> None: ...

    def step(self, count: int) -> None: ...

    def step_with_residuals(self, count: int) -> list[tuple[float, float]]:
        """Of each step, as residual() gives it."""

    def residual(self) -> tuple[float, float]:
        """Of the largest absolute value, and the root of the sum of squares."""

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
    """The types that scans take, as in Arrow."""

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
    """Of a timestamp."""

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
    """What a scan computes of a row."""

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
    """What a group-by gathers."""

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
        What its indices stand for, where it is a table's column of strings; None elsewhere.
        """

def stream_bytes(seed: int, offset: int, count: int) -> bytes:
    """
    Part of the endless stream that follows from a seed: what senders send.
    """

class SendReport:
    """What has been sent."""

    @property
    def bytes(self) -> int:
        """Of the stream."""

    @property
    def units(self) -> int:
        """Chunks whose wait is over (TCP), datagrams (UDP)."""

    @property
    def seconds(self) -> float:
        """From the first byte to the end, over TCP to the last acknowledgement."""

    @property
    def round_trips(self) -> LatencySummary:
        """
        TCP, where each chunk is waited for: from its first byte to the acknowledgement of its last.
        """

    @property
    def retransmitted(self) -> int:
        """TCP segments."""

    @property
    def kernel_round_trip(self) -> float:
        """TCP: the kernel's own estimate, in seconds."""

    @property
    def refused(self) -> int:
        """UDP: that the receiver's machine said nobody takes."""

    def __repr__(self) -> str: ...

class TcpSender:
    """
    Sends stream_bytes(seed) over a TCP connection of the kernel's, in parts and chunks.
    """

    def __init__(self, address: str, port: int, *, seed: int = ..., segment_bytes: int = ..., kernel_buffer_bytes: int = ..., connect_timeout: float = ...) -> None:
        """
        Connects to an IPv4 or IPv6 address, given as a number. `segment_bytes`: most payload in a segment; `kernel_buffer_bytes`: for what is not acknowledged yet; 0 leaves both to the kernel.
        """

    def begin(self, bytes: int, chunk_bytes: int, wait: bool = ...) -> None:
        """
        The next part of the stream. With `wait`, a chunk is sent when the one before has been acknowledged.
        """

    def run(self, seconds: float) -> bool:
        """Sends for about so long; True when the part is done and acknowledged."""

    def report(self) -> SendReport:
        """The report of the current part, or the last."""

    def finish(self) -> None:
        """Says that nothing follows."""

class UdpSender:
    """
    Sends numbered datagrams through the kernel, with stream_bytes(seed) behind their numbers.
    """

    def __init__(self, address: str, port: int, packets: int, *, seed: int = ..., payload_bytes: int = ..., packets_per_second: float = ..., number_offset: int | None = ..., number_width: int = ..., first_number: int = ...) -> None:
        """
        `payload_bytes`: bytes of the stream in each datagram. `packets_per_second` 0: as fast as the kernel takes them. The number, big-endian and `number_width` 4 or 8 bytes wide, lies at `number_offset` of the datagram, and the payload behind it; `number_offset` None: datagrams have no number.
        """

    def run(self, seconds: float) -> bool:
        """Sends for about so long; True when all datagrams are sent."""

    def report(self) -> SendReport:
        """What has been sent so far."""

class BuildRuns:
    """What placing packets into frames took, run by run."""

    @property
    def seconds(self) -> list[float]:
        """Of each run."""

    @property
    def plain_seconds(self) -> list[float]:
        """Of a plain copy of as many bytes, in turns with the runs."""

    @property
    def payload_bytes(self) -> int:
        """That each run places."""

    @property
    def packets(self) -> int:
        """Of each run."""

    @property
    def parts(self) -> int:
        """Copies that packets were cut into."""

    @property
    def supported(self) -> bool:
        """False: the device has no such way."""

    @property
    def verified(self) -> bool:
        """Every byte was where a plain copy puts it."""

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
    The same from a ring in pinned host memory, gone round until `total_bytes` of slots have passed, while a stream takes every frame. `ring_access` is automatic, direct, slots or payloads. Host time.
    """

def resident_build(device: Device | str = ..., *, payload_bytes: int = ..., slot_bytes: int = ..., total_bytes: int = ..., ring_bytes: int = ..., frame_bytes: int = ..., frame_count: int = ..., burst: int = ..., runs: int = ...) -> BuildRuns:
    """
    The same with control resident on the device: packets of one TCP connection, which a kernel that stays there acknowledges and copies.
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
        Of frames: from when the packet with the last byte came until the frame was READY and taken.
        """

    @property
    def waited(self) -> LatencySummary:
        """
        Of bursts: from when the first packet came until it was taken from the ring. Part of `latency`.
        """

    @property
    def bytes_per_second(self) -> float:
        """
        Of payload that came through: below the schedule's where the builder fell behind.
        """

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
        """Bytes of payload, when packets always wait."""

    @property
    def bytes_per_second(self) -> float:
        """Of payload, that came by the schedule."""

    @property
    def burst_bytes(self) -> float:
        """Of payload, submitted at once: the mean of the samples."""

    @property
    def supported(self) -> bool:
        """False: the device has no such way."""

    @property
    def verified(self) -> bool:
        """The last frames of every sample held what was sent."""

    def __repr__(self) -> str: ...

def frame_latency(device: Device | str = ..., *, control: str = ..., way: str = ..., ring_access: str = ..., payload_bytes: int = ..., header_bytes: int = ..., slot_bytes: int = ..., ring_bytes: int = ..., frame_bytes: int = ..., frame_count: int = ..., flush_bytes: int = ..., list_count: int = ..., prompt_count: int = ..., burst: int = ..., load: float = ..., bytes_per_second: float = ..., frames: int = ..., samples: int = ...) -> FrameLatencies:
    """
    How soon after its last byte a frame is READY, while packets come evenly to a ring in pinned host memory at `bytes_per_second` of payload, or `load` of what the same builder reaches when they always wait. `frames` of each of the `samples`. With `control` 'resident' a kernel that stays on the device decides and builds, and packets are those of a TCP connection: `way`, `ring_access`, `flush_bytes`, `list_count` and `prompt_count` are not looked at. Ctrl-C ends it early.
    """

class SocketRun:
    """One transfer of SocketReception."""

    @property
    def seconds(self) -> float:
        """Until the last frame was looked at."""

    @property
    def bytes(self) -> int: ...

    @property
    def frames(self) -> int: ...

    @property
    def right(self) -> bool:
        """Frames held what was sent, as far as they were looked at."""

    def __repr__(self) -> str: ...

class SocketReception:
    """
    Frames on a device by the kernel's own receiver: recv() into pinned memory, and asynchronous copies from there. What a Receiver is measured beside.
    """

    def __init__(self, device: Device | str = ..., *, frame_bytes: int = ..., frame_count: int = ..., chunk_bytes: int = ..., chunk_count: int = ..., seed: int = ...) -> None:
        """
        A chunk is received and copied at once. `seed`: of stream_bytes(), which are what is sent.
        """

    def receive(self, connection: int, *, whole: bool = ...) -> SocketRun:
        """
        Reads the descriptor of a connected socket until its peer ends it. `whole`: every byte is compared with what was sent; else both ends of each frame.
        """

class Frame:
    """
    A cut of a stream, on a device. Its buffer is filled anew once it and every array over it are gone: work of a GPU on it must be done by then.
    """

    @property
    def number(self) -> int: ...

    @property
    def stream_offset(self) -> int:
        """Of its first byte."""

    @property
    def bytes(self) -> int:
        """In the frame, converted where the stream is."""

    @property
    def missing_bytes(self) -> int:
        """
        Of the stream: bytes of packets that never came. They are zero in the frame.
        """

    @property
    def presence(self) -> list[int]:
        """
        Words with a bit for each packet that came; empty where none is missing.
        """

    @property
    def missing(self) -> list[tuple[int, int]]:
        """
        Of a TCP stream that is followed: where bytes are zeros because the capture lacks them, as pairs of stream offsets, from the first to before the second.
        """

    @property
    def lengths(self) -> list[int]:
        """
        Bytes that each packet brought, 0 where it is missing; empty where all that came fill their places. What lies behind a short packet is zero in the frame.
        """

    @property
    def stream(self) -> int:
        """Of a receiver: its streams count from 0."""

    @property
    def peer(self) -> str | None:
        """Who sent it, '10.0.0.1:40000'; None where that is not known."""

    def release(self) -> None:
        """Lets go of it now; arrays over it stay valid, and keep the buffer."""

    def __len__(self) -> int: ...

    def numpy(self) -> NDArray[Any]:
        """
        As an array of uint8, or of float32 where it was converted to that; not copied. Raises UsageError where it is not on a CPU device.
        """

    def to_host(self, offset: int = 0, count: int | None = None) -> NDArray[Any]:
        """
        A copy, as uint8, of its bytes from `offset` on, from whatever device it is on.
        """

    def __dlpack__(self, **kwargs: Any) -> Any: ...

    def __dlpack_device__(self) -> tuple[int, int]: ...

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """On CUDA devices alone."""

class FramePart:
    """
    What has come so far of a frame that is not full, for which Receiver.peek() asked. The frame comes as well, with the same bytes, and its buffer is not filled anew while this or an array over it is kept.
    """

    @property
    def stream_offset(self) -> int:
        """Of its first byte."""

    @property
    def bytes(self) -> int: ...

    @property
    def stream(self) -> int: ...

    @property
    def peer(self) -> str: ...

    def release(self) -> None:
        """Lets go of it now; arrays over it stay valid, and keep the buffer."""

    def __len__(self) -> int: ...

    def numpy(self) -> NDArray[Any]:
        """
        As an array of uint8, or of float32 where it was converted to that; not copied. Raises UsageError where it is not on a CPU device.
        """

    def to_host(self, offset: int = 0, count: int | None = None) -> NDArray[Any]:
        """
        A copy, as uint8, of its bytes from `offset` on, from whatever device it is on.
        """

    def __dlpack__(self, **kwargs: Any) -> Any: ...

    def __dlpack_device__(self) -> tuple[int, int]: ...

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """On CUDA devices alone."""

class FrameBuilder:
    """
    Builds frames on a device from pieces of a ring in host memory: for packets that Python code has received by itself. Iterating gives the frames that are READY, in order.
    """

    def __init__(self, device: Device | str = ..., *, frame_bytes: int = ..., frame_count: int = ..., ring_bytes: int = ..., way: str = ..., ring_access: str = ..., conversion: str = ...) -> None:
        """
        `way` is one of copy_ways(); `ring_access` automatic, direct, slots or payloads; `conversion` none, swap2, swap4, swap8, int8-to-float, int16-to-float or int16-big-endian-to-float.
        """

    @property
    def ring(self) -> NDArray[numpy.uint8]:
        """Where packets are written, not copied."""

    @property
    def reserved_end(self) -> int:
        """
        There is space for bytes of the stream below this offset; grows as frames go back.
        """

    @property
    def copied(self) -> int:
        """The greatest ring_end up to which the ring may be written anew."""

    def place(self, pieces: Sequence[tuple[int, int, int]], ring_end: int = ...) -> None:
        """
        Places (ring offset, stream offset, length) for each piece, in any order. Raises UsageError for one that has no place; those before it are placed.
        """

    def finish(self, end: int) -> None:
        """The stream has so many bytes; its last frame is cut there."""

    def close(self, frame: int, packet_bytes: int, presence: Sequence[int] = ..., lengths: Sequence[int] = ...) -> None:
        """
        No more bytes will come to this frame, whose packets lie at multiples of `packet_bytes`. `presence`: words with a bit for each packet that was placed; `lengths`: the bytes of each, where some are shorter than that. What no packet wrote becomes zero.
        """

    def __iter__(self) -> FrameBuilder: ...

    def __next__(self) -> Frame:
        """Waits for the copies under way; ends when no frame is complete."""

class Faults:
    """What happens to packets on their way, each by its probability."""

    def __init__(self, *, loss: float = ..., duplication: float = ..., corruption: float = ..., reordering: float = ..., reorder_distance: int = ..., loss_sent: float = ..., seed: int = ...) -> None:
        """
        A packet that is reordered is held back until up to `reorder_distance` others have passed. A super-packet that the kernel has merged is one packet. `loss_sent` is of acknowledgements.
        """

class FrameTarget:
    """Where the frames of a receiver lie, and how they get there."""

    def __init__(self, device: Device | str = ..., *, frame_bytes: int = ..., frame_count: int = ..., conversion: str = ..., way: str = ..., ring_access: str = ..., prompt_count: int = ..., ring_bytes: int = ..., burst_packets: int = ..., faults: Faults | None = ...) -> None:
        """
        As for FrameBuilder. While fewer bursts than `prompt_count` are being copied, whatever has come is copied at once: frames are READY sooner.
        """

class DatagramLayout:
    """How datagrams are numbered, and how they make frames."""

    def __init__(self, payload_bytes: int, frame_packets: int, *, port: int = ..., raw_offset: int | None = ..., number_offset: int = ..., number_width: int = ..., big_endian: bool = ..., header_bytes: int | None = ..., window_frames: int = ..., timeout: float = ..., forward_packets: int = ..., backward_packets: int = ..., part_offset: int = ..., part_width: int = ..., group_bytes: int = ...) -> None:
        """
        A datagram has `header_bytes` that do not go into the frame (None: up to the end of its number), and up to `payload_bytes` that do, at its number times that. A frame that is not full is delivered when its first datagram is `timeout` seconds old, and the next one goes on from there. A jump forward by up to `forward_packets` is a gap; a longer one, or one back by more than `backward_packets`, begins another stream (0: by the width of the number). With a `part_width` numbers count groups of `group_bytes`, such as frames of video or heaps of SPEAD, and as many bytes at `part_offset` say at which byte of its group a payload belongs, a multiple of `payload_bytes`. `raw_offset`: packets are not UDP, and datagrams begin there.
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
        """Who sends: '10.0.0.1:40000'; empty where that is not known."""

    @property
    def destination(self) -> str:
        """Where it goes to: '10.0.0.2:80'; empty where that is not known."""

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
        finished: the sender said that this was all; reset or timed out: the stream is what came in order until then; cut: the receiver was stopped, or its source failed; restarted: a sender of datagrams has begun anew, and what follows is another stream; timed out, of datagrams: it was silent, and gave way.
        """

    @property
    def bytes(self) -> int:
        """
        Of the stream, up to the last that came. Where its last datagram is short and its frame was delivered before the end was known, that frame has zeros behind.
        """

    def __repr__(self) -> str: ...

class Receiver:
    """
    Receives on a thread of its own. Iterating waits for frames, of all streams, and ends with the source; next() gives what happens to streams as well. A context manager, which stops it, and gives its address back. Frames stay valid.
    """

    @property
    def address(self) -> str:
        """To send to, '198.18.0.2:9000'; else what is read."""

    @property
    def interface(self) -> str:
        """The network device in use; empty where there is none."""

    def next(self, timeout: float | None = None) -> StreamOpened | Frame | FramePart | StreamEnded | None:
        """
        What comes next, of any stream. None after `timeout` seconds, or when nothing will come: see ended.
        """

    @property
    def ended(self) -> bool:
        """Nothing will come any more."""

    def reset(self, stream: int) -> None:
        """Resets the TCP connection of a stream that is not wanted any more."""

    def send(self, stream: int, data: bytes) -> None:
        """
        Says `data` on a stream's TCP connection, behind what was said before: short answers, some 1 KiB a round trip. Does nothing where the connection is no more. Raises DeviceError (Errc.full) while 1 MiB waits to be sent; UsageError, as close() and peek(), for datagrams and with resident control.
        """

    def close(self, stream: int) -> None:
        """
        Nothing more will be said on the connection: FIN follows what waits. What its peer sends still comes.
        """

    def peek(self, stream: int, offset: int, end: int = ...) -> None:
        """
        Asks for bytes of a stream from `offset` on before their frame is full: next() gives a FramePart, once, as soon as some have come in order, and all before `end`, unless their frame comes first. Raises UsageError for frames that are converted.
        """

    @property
    def has_parts(self) -> bool:
        """Whether peek() can be asked for parts of frames."""

    def stop(self) -> None:
        """
        Resets connections that are open, and gives the socket or network device back: the same address can be received on again. What is waiting may still be taken.
        """

    def counters(self) -> dict[str, dict[str, int]]:
        """What has been seen so far, 50 ms old at most: see docs/ingest.md."""

    def __iter__(self) -> Receiver: ...

    def __next__(self) -> Frame: ...

    def __enter__(self) -> Receiver: ...

    def __exit__(self, *args: object) -> None: ...

def drop_capabilities() -> None:
    """
    Gives up CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF in every thread of this process, for good. To be called once all receivers are open: none needs these rights any more; those that are opened later lack them. `headrace ingest` does it by itself. Threads are told by a real-time signal, the highest without a handler. Raises SystemError that names a thread which blocks it.
    """

def receive_tcp(target: FrameTarget, address: str, port: int, *, connections: int = ..., mtu: int = ..., offloads: bool = ..., name: str = ..., window_bytes: int = ..., idle_seconds: float = ..., interface: str = ..., control: str = ..., close_when_finished: bool = ..., trust_checksums: bool = ..., first_byte_seconds: float = ..., open_at_first_byte: bool = ..., backlog: int = ..., memory_bytes: int = ...) -> Receiver: ...

def receive_udp(target: FrameTarget, layout: DatagramLayout, address: str, *, multicast_group: str = ..., interface: str = ..., kernel_buffer_bytes: int = ..., from_senders: Sequence[str] = ..., senders: int = ..., idle_seconds: float = ...) -> Receiver: ...

def receive_packets(target: FrameTarget, layout: DatagramLayout, interface: str, *, via: str, address: str = ..., promiscuous: bool = ..., trust_checksums: bool = ..., from_senders: Sequence[str] = ..., senders: int = ..., idle_seconds: float = ...) -> Receiver: ...

def receive_capture(target: FrameTarget, layout: DatagramLayout, path: str, *, speed: float = ..., trust_checksums: bool = ..., from_senders: Sequence[str] = ..., senders: int = ..., idle_seconds: float = ...) -> Receiver: ...

def follow_capture(target: FrameTarget, path: str, *, speed: float = ..., port: int = ..., connections: int = ..., hold_bytes: int = ..., trust_checksums: bool = ...) -> Receiver: ...

def receive_synthetic(target: FrameTarget, layout: DatagramLayout, *, packets: int = ..., packets_per_second: float = ..., seed: int = ..., payloads_once: bool = ...) -> Receiver: ...

class Message:
    """A message of a stream. It keeps the frames that it lies in."""

    @property
    def stream(self) -> int: ...

    @property
    def peer(self) -> str:
        """Who sent it; empty where that is not known."""

    @property
    def begin(self) -> int:
        """Where its header begins in the stream."""

    @property
    def bytes(self) -> int:
        """Of its body."""

    @property
    def parts(self) -> list[tuple[Frame, int, int]]:
        """
        (frame, offset in the frame, bytes) of its body, in order; not copied. Of a frame that was not full when the message came there is what had come.
        """

    def __repr__(self) -> str: ...

class MessageReader:
    """Cuts the frames of one stream into messages that say their length."""

    def __init__(self, *, width: int = ..., offset: int = ..., header_bytes: int | None = ..., big_endian: bool = ..., counts_header: bool = ..., body_max: int = ...) -> None:
        """
        A header has `header_bytes` (None: up to the end of the length), of which `width` at `offset` say how many bytes follow, or with `counts_header` how many there are in all.
        """

    @overload
    def add(self, frame: Frame) -> None:
        """
        The stream's next frame, or a part of one: bytes that were added before are left out. Raises UsageError where bytes are missing between.
        """

    @overload
    def add(self, part: FramePart) -> None: ...

    def next(self) -> Message | None:
        """
        The next message, None until all of it has come. Raises DataError for one longer than `body_max`, or than all frames of the stream but one.
        """

    @property
    def end(self) -> int:
        """Bytes of the stream that have been added."""

    @property
    def needs(self) -> int:
        """How many of them next() wants before it gives or raises anything more."""

    @property
    def rest(self) -> int:
        """Bytes at the end that are no whole message."""

def http_chunks(text: bytes | bytearray | memoryview, offset: int) -> tuple[int, numpy.typing.NDArray[numpy.uint64], numpy.typing.NDArray[numpy.uint64]]:
    """
    The chunks of an HTTP body that `text` begins with, from byte `offset` of its stream on: the bytes that they take, and where the data of each begins and ends. Up to the first that has not come whole, is empty, or has a head of anything but 1 to 4 digits.
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
        """Of one query; empty for a single element."""

    @property
    def offset(self) -> int:
        """Where it begins in the query or answer, in bytes."""

    @property
    def bytes(self) -> int:
        """Bytes in one query or answer."""

    def __repr__(self) -> str: ...

class Model:
    """
    An operator that clients of a server ask by name; headrace.wire.model() makes one of an engine.
    """

    def __init__(self, engine: Engine, inputs: Sequence[Tensor], outputs: Sequence[Tensor], *, name: str, version: str = ..., batch_max: int = ..., query_type: str = ..., answer_type: str = ...) -> None:
        """
        `inputs` are the parts of a query, `outputs` those of an answer; bytes of a query that no input covers are zero. A name has letters, digits, '.', '_' and '-'. A request has at most `batch_max` queries. `query_type` and `answer_type` say how clients of shared memory show them, as Operator.answer_type does; as the engine's operator says where they are empty. Raises UsageError for a name that is none, for two tensors of one name, and for tensors that overlap or leave their query or answer.
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

    def __repr__(self) -> str: ...

class RequestTrace:
    """
    A request for inference that is part of a trace. Times are nanoseconds since 1970, and 0 where it has not come so far.
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
        """HTTP's, whatever the protocol."""

    @property
    def queries(self) -> int: ...

    @property
    def arrived(self) -> int:
        """Its first byte."""

    @property
    def began(self) -> int:
        """It had been read and checked."""

    @property
    def submitted(self) -> int:
        """The last of its queries went to the engine."""

    @property
    def back(self) -> int:
        """The server had all answers."""

    @property
    def ended(self) -> int:
        """The reply was ready to send."""

class ModelRequest:
    """What a client asks to be done with a model of a server."""

    @property
    def model(self) -> str:
        """A name that the server knows."""

    @property
    def load(self) -> bool:
        """To be loaded, anew if it is already; otherwise to be unloaded."""

    def __repr__(self) -> str: ...

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
        Closed since `connections_max` were open: those whose clients had been silent for longest, or else new ones.
        """

    @property
    def requests(self) -> int:
        """Answered, with whatever status; of a stream of gRPC, each message."""

    @property
    def failed(self) -> int:
        """Those among them with an error."""

    @property
    def refused(self) -> int:
        """Those among them for which there was no room (429, 503; in gRPC, too)."""

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
        """Taken by requests and replies now."""

    @property
    def memory_limit_bytes(self) -> int:
        """The server's `memory_max`."""

    @property
    def unauthorized(self) -> int:
        """Requests without a token that the server takes (401, UNAUTHENTICATED)."""

    @property
    def handshakes(self) -> int:
        """TLS handshakes that were done."""

    @property
    def handshakes_failed(self) -> int:
        """Others: no or a wrong certificate, no TLS at all, or not in time."""

    @property
    def handshake_failure(self) -> str:
        """Why the last one failed; empty where none has."""

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

    def __init__(self, models: Sequence[Model], *, address: str = ..., http_port: int = ..., grpc_port: int | None = ..., threads: int = ..., connections_max: int = ..., head_bytes_max: int = ..., body_bytes_max: int = ..., memory_max: int = ..., waiting_max: int = ..., request_max: float = ..., idle_max: float = ..., page: bool = ..., shared_memory: bool = ..., shared_memory_max: int = ..., model_control: bool = ..., shm: str | None = ..., shm_threads: int = ..., shm_clients_max: int = ..., shm_slots_max: int = ..., shm_spin: float = ..., tls_certificate: str | os.PathLike[str] | None = ..., tls_key: str | os.PathLike[str] | None = ..., tls_clients: str | os.PathLike[str] | None = ..., token_file: str | os.PathLike[str] | None = ..., plain_tokens: bool = ..., traces_max: int = ..., watcher: int = ...) -> None:
        """
        `address` is IPv4 or IPv6, "0.0.0.0" or "::" for every interface; port 0 takes any that is free. gRPC is spoken where `grpc_port` is given, usually 8001. Each of the `threads` has its connections, and is a client of every engine. `head_bytes_max` limits the line and headers of a request, `body_bytes_max` its tensors and JSON or a message of gRPC, `memory_max` all requests and replies together. `waiting_max` queries of a model may wait for slots of its engine, for each thread. Seconds: `request_max` from a request's first byte to its last, `idle_max` between requests, and without progress of a reply. With `page`, browsers get a page at / that shows what the server does and asks a query. With `shared_memory` clients may register POSIX shared memory for their tensors, `shared_memory_max` bytes at most, and can then have every object in /dev/shm read and written that this process may open. With `model_control` they may ask for models to be loaded and unloaded, which next_model_request() hands on. With a name `shm`, processes of this machine and user may ask through shared memory, by headrace.Client("shm://NAME/MODEL"): `shm_clients_max` of them at most, each with at most `shm_slots_max` queries in flight. `shm_threads` answer them, each a client of every engine, and look for queries for `shm_spin` seconds before they sleep. With `tls_certificate` and `tls_key`, PEM files, both ports speak TLS; with `tls_clients`, a PEM file of authorities, clients have to show a certificate of one of them. With `token_file`, a token a line and its name behind a space, each request has to carry one of the tokens, as "Authorization: Bearer TOKEN"; only the server's health and the page, which shows nothing without one, need none. Tokens need TLS where `address` is not of the loopback, unless `plain_tokens` allows them without. `traces_max` requests whose caller samples a trace are kept for take_traces(); 0 traces none. `watcher` is a connected stream socket, which the server closes, for a program that watches this one: it asks for the server's health over it, without TLS. Raises UsageError for models or limits that cannot be served (such as an engine whose Plan.clients_max is below `threads` and `shm_threads` together), SystemError where the address or a port cannot be had, an error with Errc.not_supported for gRPC or TLS in a build without it.
        """

    @property
    def http_port(self) -> int:
        """The port that is listened to."""

    @property
    def grpc_port(self) -> int | None:
        """The port for gRPC; None where it is not spoken."""

    @property
    def shm(self) -> str | None:
        """
        The name for clients of shared memory, in shm://NAME/MODEL; None where there are none.
        """

    def statistics(self) -> ServerStatistics:
        """What the server has done so far. Any thread may ask."""

    def model_statistics(self) -> list[ModelStatistics]:
        """
        One for each name, in the order in which they came, also where it is not loaded. Any thread may ask, after stop() as well.
        """

    def load(self, model: Model) -> None:
        """
        Serves `model` from then on, in the place of the model that has its name, if any. Once this returns, no request that comes is answered by the former; those that it has begun are, see uses(). The counts of the name go on. Any thread. Raises UsageError for a model that cannot be served or after stop(); then nothing has changed.
        """

    def unload(self, name: str, reason: str = ...) -> bool:
        """
        Serves the model of a name no more: requests for it are refused with `reason` (404, NOT_FOUND). Whether there was one. Those that it has begun are answered, see uses(). Any thread.
        """

    def uses(self, engine: Engine) -> bool:
        """
        Whether requests may still come to an engine of this server, or are not yet answered. Once it says no for an engine whose model was replaced or unloaded, the engine may be stopped.
        """

    def take_traces(self, most: int, seconds: float) -> list[RequestTrace]:
        """
        Requests that have ended and are part of a trace, in that order: `most` at most, once there is one or `seconds` have passed. After stop() what is left. With `traces_max`. Any thread.
        """

    def reload_credentials(self) -> None:
        """
        Reads the files of certificates and tokens again: connections that come use the new ones, and so do requests on all connections. Those that are open stay. Any thread. Raises as the constructor does, and UsageError where there are none or after stop(); then the former ones go on.
        """

    def next_model_request(self, seconds: float) -> ModelRequest | None:
        """
        What a client asks to be loaded or unloaded, once one does; None after `seconds`, and after stop(). Requests come one after the other, and each is to be ended. With `model_control`. Any thread.
        """

    def end_model_request(self, request: ModelRequest, failure: str | None = ...) -> None:
        """
        Tells the client that its request is done, or why it has failed; a name that has no model is listed with that.
        """

    def drain(self, seconds: float) -> bool:
        """
        Says that it is not ready, accepts no more connections, closes those that are idle, and waits until every request that has begun is answered, or `seconds` have passed; whether all were answered.
        """

    def stop(self) -> None:
        """
        Closes all connections and ends the threads. Queries under way are waited for, and their answers dropped.
        """

    def __enter__(self) -> Server: ...

    def __exit__(self, *exception: object) -> None: ...

    def __repr__(self) -> str: ...

class ServerEndpoint:
    """A model of a server of the Open Inference Protocol."""

    def __init__(self, *, grpc: bool, address: str, port: int, authority: str, model: str, patience: float = ...) -> None:
        """
        `address` is one in numbers, `authority` the host and port as requests write them. `patience` is how long the server may take to accept connections, to come back after it has closed them, and to send anything while it has requests, in seconds.
        """

    def secure(self, *, tls: bool, certificate: str = ..., key: str = ..., authorities: str = ..., server_name: str = ..., token_file: str = ...) -> None:
        """
        Reads PEM files and the file of a token; an empty name is none. `server_name` is what the server's certificate has to be for. Raises SystemError for a file that cannot be read, UsageError for one whose content will not do.
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
    """What became of the requests of one priority, over the whole run."""

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
    """A load some of whose requests had high priority."""

    @property
    def high(self) -> PriorityLoad: ...

    @property
    def normal(self) -> PriorityLoad: ...

class ServerLoad:
    """What a load on a server did; each arrival is a request."""

    @property
    def load(self) -> LoadResult: ...

    @property
    def connections_lost(self) -> int: ...

    @property
    def failure(self) -> str:
        """What the server said of the first request that failed."""

    @property
    def refusal(self) -> str:
        """What the server said of the first request that it refused."""

    @property
    def priorities(self) -> PriorityLoads | None:
        """None where no request had high priority."""

def describe_model(endpoint: ServerEndpoint) -> list[ModelInput]:
    """
    The inputs of a model. Raises UsageError for a model that the server does not have, SystemError where it cannot be reached or does not answer.
    """

def load_server(endpoint: ServerEndpoint, requests: Sequence[Sequence[InputTensor]], *, connections: int = ..., streams: int = ..., deadline: float | None = ..., high_share: float = ..., generators: int = ..., rate: float | None = ..., arrivals: str = ..., seed: int = ..., trace: Sequence[float] = ..., warm_up: float = ..., window: float = ..., windows_max: int = ..., stable_windows: int = ..., stable_within: float = ..., progress: Callable[[int, float, float], None] | None = ...) -> ServerLoad:
    """
    Puts one load of `rate` requests/s on a model, with `requests` in turn, as load() does with an engine. Each request is a list of InputTensor; a random `high_share` of them has high priority. Ctrl-C ends it early. Raises SystemError where the server cannot be reached, goes away, or goes silent for longer than the endpoint's patience.
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
    What a server says of the model at shm://NAME/MODEL. Raises as Client does.
    """

def load_rings(url: str, queries: Sequence[bytes], *, slots: int = ..., deadline: float | None = ..., patience: float = ..., generators: int = ..., rate: float | None = ..., arrivals: str = ..., seed: int = ..., trace: Sequence[float] = ..., warm_up: float = ..., window: float = ..., windows_max: int = ..., stable_windows: int = ..., stable_within: float = ..., progress: Callable[[int, float, float], None] | None = ...) -> ServerLoad:
    """
    load_server() through shared memory: each request is a query, and each generator has a ring of `slots`.
    """

class StringDictionary:
    """What the indices of a column of strings stand for."""

    @property
    def size(self) -> int:
        """Strings so far."""

    @property
    def nbytes(self) -> int:
        """Bytes that it takes of the CPU level's budget."""

    def take(self, indices: NDArray[numpy.int32], bytes_most: int) -> tuple[bytes, bytes]:
        """
        As many of the strings of these indices, from the first on, as have so many bytes, one at least: (offsets of 32 bits, bytes) as Arrow has them. An index that there is not stands for an empty string.
        """

class ParquetStatistics:
    """What a Parquet file says of the values of a column of a row group."""

    def __init__(self, physical_type: int, value: bytes | None, nulls: int) -> None:
        """
        Of a column that is one value throughout, plain-encoded, or None where every value is missing. `physical_type` is the format's number.
        """

class ParquetFooter:
    """The row groups of a Parquet file, by its footer."""

    @property
    def rows(self) -> list[int]:
        """Of each row group."""

    @property
    def delta_strings(self) -> list[str]:
        """
        Columns of which a row group says that its strings may be delta-encoded.
        """

    def want(self, columns: Sequence[tuple[str, int, bool, bool]]) -> None:
        """
        Says which columns a source reads, in its order: (name, bytes that a decoded value takes at most, whether it is text, whether statistics are of the very values that are read).
        """

class MappedFile:
    """A file's bytes, mapped for reading."""

    def __init__(self, path: bytes, name: str) -> None:
        """
        The path as the system has it, and what errors call it. Raises UsageError for what is no file.
        """

    def require_unchanged(self) -> None:
        """
        Raises DataError that names the file when it has changed since it was opened.
        """

    @property
    def descriptor(self) -> int:
        """Of the open file; valid while this, or a source made with it, lives."""

    def parquet_footer(self) -> ParquetFooter:
        """Raises DataError that names the file."""

    @property
    def path(self) -> str: ...

    @property
    def bytes(self) -> int: ...

    @property
    def address(self) -> int:
        """Of the first byte; valid while this, or a source made with it, lives."""

def stream_formats(capsule: Any) -> list[tuple[str, str]]:
    """
    The name and the Arrow format of each column that an Arrow stream promises.
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
        Chunks that `read(fragment, columns)` gives as a record batch of these columns, called by any thread. A fragment is (file, row group, rows); a place ([(mapping, offset, bytes)], bytes that reading takes) for each chunk, column by column within a fragment, or a footer for all chunks of its file. `mapped` is the file of each fragment, for a table of files: one that changes fails. `constants` are (fragment, column, what it says of itself) where a column is one value throughout a fragment.
        """

    @property
    def rows(self) -> int: ...

    @property
    def id(self) -> int: ...

    def close(self) -> None:
        """Lets go of the dictionaries: nothing can be fetched any more."""

class LevelStatistics:
    """What a level holds and has done."""

    @property
    def budget_bytes(self) -> int: ...

    @property
    def used_bytes(self) -> int:
        """Charged to the budget; slabs count as a whole."""

    @property
    def most_bytes(self) -> int:
        """The most that ever was."""

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
    The caches, one a level, through which chunks of any tables get to one device.
    """

    def __init__(self, device: Device | str = ..., *, disk_bytes: int = ..., cpu_bytes: int = ..., device_bytes: int = ..., host: str = ..., slab_bytes: int = ...) -> None:
        """
        A budget of 0 is the default: half of the machine's free memory for the page cache, a quarter for the CPU level, four fifths of the device's free memory. `host` is pinned or pageable. Takes no memory yet.
        """

    @property
    def device(self) -> Device: ...

    def statistics(self, level: str) -> LevelStatistics:
        """Of disk, cpu or device."""

    def clear(self, level: str) -> None:
        """
        Empties a level of what is not in use. Its memory is kept for the next chunks.
        """

    def trim(self) -> None:
        """Gives memory that nothing lies in back to the driver."""

    def forget(self, source: FetchSource) -> None:
        """Empties every level of a table, and trims."""

class LevelProgress:
    """What came through one level."""

    @property
    def bytes(self) -> int:
        """Disk: of the files. CPU, device: of values and validity."""

    @property
    def chunks(self) -> int:
        """Made there."""

    @property
    def hits(self) -> int:
        """Found there."""

    @property
    def busy(self) -> float:
        """
        Seconds of all threads together; of the device, while copies were on their way.
        """

class FetchProgress:
    """How far a fetch is."""

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
    Values or validity of a chunk where they lie, not copied, read-only. Keeps the fetch alive.
    """

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def typestr(self) -> str:
        """As NumPy writes it."""

    def numpy(self) -> NDArray[Any]:
        """
        Where the host can read it: on the CPU level and on CPU devices. Raises UsageError elsewhere.
        """

    def __dlpack__(self, **kwargs: Any) -> Any: ...

    def __dlpack_device__(self) -> tuple[int, int]: ...

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """On CUDA devices alone."""

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
        """-1: not known."""

    @property
    def values(self) -> ChunkArray:
        """
        As they lie: bits of booleans as bytes, decimals as pairs of int64, strings as indices.
        """

    @property
    def validity(self) -> ChunkArray | None:
        """A bit a value, the least significant first; None: no value is missing."""

    def to_host(self) -> tuple[bytes, bytes | None]:
        """Values and validity, copied."""

class FetchOptions:
    """How columns are fetched."""

    def __init__(self, *, mode: str = ..., threads: int = ..., flush_bytes: int = ..., timeline_spans: int = ..., verify_checksums: bool = ...) -> None:
        """
        `mode` is async, or sync to wait for the copy of each chunk, for comparison. `threads` make chunks; 0: one a core, 16 at most. Copies are submitted once `flush_bytes` are gathered. So many spans of a fetch's timeline are kept. `verify_checksums` checks the pages of Parquet files that have checksums.
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
    """What a scan did."""

    @property
    def groups(self) -> str: ...

    @property
    def read_bytes(self) -> int:
        """Of the columns that it read."""

    @property
    def seconds(self) -> float:
        """Of the kernels, each from its launch until it has ended."""

    @property
    def began(self) -> float:
        """When the first kernel was started, by time.monotonic()."""

    @property
    def ended(self) -> float:
        """When the last kernel had ended."""

class TableReport:
    """How a table answered a query."""

    @property
    def groups(self) -> str: ...

    @property
    def read_bytes(self) -> int:
        """Of the columns that the query names."""

    @property
    def seconds(self) -> float:
        """Of the kernels, each from its launch until it has ended."""

    @property
    def order_seconds(self) -> float:
        """Of ordering rows: on the device, and of merging windows."""

    @property
    def windows(self) -> int:
        """In how many pieces the columns went through the device."""

    @property
    def pruned(self) -> int:
        """
        Fragments that were left out: by their statistics no row of them passes the filter.
        """

    @property
    def streamed(self) -> str:
        """
        Why there were windows; empty where the columns lay on the device together.
        """

    @property
    def disk(self) -> LevelProgress: ...

    @property
    def cpu(self) -> LevelProgress: ...

    @property
    def device(self) -> LevelProgress: ...

    @property
    def fetch_seconds(self) -> float:
        """Of the fetches; what scans hid of them is part of it."""

    @property
    def waited_seconds(self) -> float:
        """For columns."""

class FetchTable:
    """A table that is scanned on the device of its levels."""

    def __init__(self, levels: Levels, source: FetchSource, options: FetchOptions = ...) -> None: ...

    def close(self) -> None:
        """
        Gives back what its chunks and dictionaries take; nothing can be asked of it any more.
        """

    @property
    def levels(self) -> Levels: ...

    @property
    def options(self) -> FetchOptions: ...

    def scan(self, filter: ScanExpression | None, keys: Sequence[ScanExpression], aggregates: Sequence[tuple[Aggregate, ScanExpression | None]], values: Sequence[ScanExpression], order: Sequence[tuple[int, bool]], limit: int | None, watch: Callable[[FetchProgress], None] | None = None) -> tuple[list[ResultColumn], TableReport]:
        """
        Fetches what the query names, and runs it: `order` is (number of a value, whether descending), of `values` alone. `watch` is told how far a fetch is. Ctrl-C ends it.
        """

    def explain(self, filter: ScanExpression | None, keys: Sequence[ScanExpression], aggregates: Sequence[tuple[Aggregate, ScanExpression | None]], values: Sequence[ScanExpression], order: Sequence[tuple[int, bool]], limit: int | None) -> str:
        """
        What is fetched for a query and how it runs. Columns that fit the device are brought there.
        """

    def windows(self, columns: Sequence[int]) -> list[list[int]]:
        """
        The fragments of the windows in which columns would go through the device.
        """

class Fetch:
    """A fetch of columns, in threads of its own. Pins what it brought."""

    def __init__(self, levels: Levels, source: FetchSource, columns: Sequence[int], fragments: Sequence[int] = ..., *, to: str = ..., options: FetchOptions = ...) -> None:
        """
        Starts it. Columns and fragments by number, no fragments: all of them. `to` is cpu or device.
        """

    def wait(self) -> None:
        """
        Until every chunk is there. Raises the first failure. Ctrl-C cancels it.
        """

    def cancel(self) -> None: ...

    def wait_for(self, seconds: float) -> bool:
        """Waits for so long at most. Whether wait() would return at once."""

    @property
    def progress(self) -> FetchProgress: ...

    def timeline(self) -> tuple[list[tuple[int, int, int, str, float, float]], int]:
        """
        Waits for its end. What each thread did when, (fragment, column, thread, step, begin, end) with the source's numbers and seconds of time.monotonic(), and how many spans more there were than are kept.
        """

    def look(self) -> ScanReport:
        """
        Runs a kernel over all that has come, as a query of one pass does: the least and the greatest of each column. Waits for both.
        """

    @property
    def device(self) -> Device: ...

    def dictionary(self, column: int) -> StringDictionary | None:
        """By position in what was asked for; None for a column that has none."""

    @property
    def threads(self) -> int: ...

    def chunk(self, column: int, fragment: int) -> FetchedChunk:
        """By position in what was asked for. Waits for the fetch."""
