"""Reads the description of kernels in a cubin, as documented for the CUDA Binary Utilities."""

import struct
from dataclasses import dataclass, field

_FRAME_SIZE = 0x11
_REGISTERS = 0x2F
_SIZED = 4  # a form of attributes: 16 bits with their size follow


@dataclass
class Cubin:
    """Its contents, by the name of a kernel or of a called function."""

    functions: set[str] = field(default_factory=set)
    stack_bytes: dict[str, int] = field(default_factory=dict)
    registers: dict[str, int] = field(default_factory=dict)


def read(code: bytes) -> Cubin:
    """Reads the sections of a 64-bit ELF file."""
    assert code[:5] == b"\x7fELF\x02"
    (table,) = struct.unpack_from("<Q", code, 0x28)
    size, count, names_index = struct.unpack_from("<HHH", code, 0x3A)
    sections = []
    for index in range(count):
        name, _, _, _, offset, length, link = struct.unpack_from("<IIQQQQI", code, table + index * size)
        sections.append((name, offset, length, link))
    strings = sections[names_index][1]

    def text(at: int) -> str:
        return code[at : code.index(b"\0", at)].decode()

    by_name = {text(strings + name): (offset, length, link) for name, offset, length, link in sections}
    symbols, _, link = by_name[".symtab"]
    symbol_strings = sections[link][1]

    def symbol(index: int) -> str:
        return text(symbol_strings + struct.unpack_from("<I", code, symbols + 24 * index)[0])

    found = Cubin()
    found.functions = {name.removeprefix(".text.") for name in by_name if name.startswith(".text.")}
    at, length, _ = by_name[".nv.info"]
    end = at + length
    while at < end:
        form, attribute, value = struct.unpack_from("<BBH", code, at)
        at += 4
        if form != _SIZED:
            continue
        if attribute in {_FRAME_SIZE, _REGISTERS}:
            index, number = struct.unpack_from("<II", code, at)
            (found.stack_bytes if attribute == _FRAME_SIZE else found.registers)[symbol(index)] = number
        at += value
    return found
