import enum


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
