"""Converts indices of a column back to strings."""

import contextlib

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace import _core
from headrace.errors import DataError
from headrace.fetch import storage

_PIECE_BYTES = 1 << 30  # bytes per array of strings, whose offsets have 32 bits


def strings_of(
    dictionary: "_core.StringDictionary", indices: pa.Array, arrow: pa.DataType, name: str
) -> pa.ChunkedArray:
    """The values of `indices` (int32, possibly missing), in the column's type `arrow`.

    Strings that exceed one array are returned in several. A dictionary contains only the entries in use.

    Raises:
        DataError: for strings that are not text, naming the column.
    """
    if pa.types.is_dictionary(arrow):
        return pa.chunked_array([_as_dictionary(dictionary, indices, arrow, name)])
    pieces = [_as_type(piece, arrow) for piece in _pieces(dictionary, indices, name, _entry_type(arrow))]
    return pa.chunked_array(pieces, arrow)


def entries_of(dictionary: "_core.StringDictionary", arrow: pa.DataType, name: str) -> pa.Array:
    """All entries so far, by index; with 64-bit offsets if they exceed 2 GiB."""
    return _one_array(dictionary, pa.array(np.arange(dictionary.size, dtype=np.int32)), arrow, name)


def _entry_type(arrow: pa.DataType) -> pa.DataType:
    entries = storage.entry_type(arrow)
    assert entries is not None  # only columns of strings have a dictionary
    return entries


def _as_type(array: pa.Array, arrow: pa.DataType) -> pa.Array:
    if isinstance(arrow, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(arrow, _as_type(array, arrow.storage_type))
    return array.cast(arrow)


def _pieces(dictionary: "_core.StringDictionary", indices: pa.Array, name: str, kind: pa.DataType) -> list[pa.Array]:
    codes = indices.fill_null(-1).to_numpy()
    made: list[pa.Array] = []
    first = 0
    while first < len(codes) or not made:
        offsets, strings = dictionary.take(codes[first:], _PIECE_BYTES)
        length = len(offsets) // 4 - 1
        part = indices.slice(first, length)
        validity = pc.is_valid(part).buffers()[1] if part.null_count else None
        buffers = [validity, pa.py_buffer(offsets), pa.py_buffer(strings)]
        piece = pa.Array.from_buffers(kind, length, buffers, part.null_count)
        try:
            piece.validate(full=True)
        except pa.ArrowInvalid as error:
            raise DataError(f"column '{name}' has strings that are not text: {error}") from error
        made.append(piece)
        first += length
    return made


def _one_array(dictionary: "_core.StringDictionary", indices: pa.Array, arrow: pa.DataType, name: str) -> pa.Array:
    pieces = _pieces(dictionary, indices, name, _entry_type(arrow))
    if len(pieces) == 1:
        return pieces[0]
    large = pa.large_string() if pieces[0].type == pa.string() else pa.large_binary()
    return pa.concat_arrays([piece.cast(large) for piece in pieces])


def _as_dictionary(
    dictionary: "_core.StringDictionary", indices: pa.Array, arrow: pa.DictionaryType, name: str
) -> pa.DictionaryArray:
    used = indices.unique().drop_null().sort()
    entries = _one_array(dictionary, used, arrow, name)
    if len(entries) == 0 or entries.type in {pa.string(), pa.binary()}:  # otherwise the column's type has no room
        entries = _as_type(entries, arrow.value_type)
    places = pc.index_in(indices, value_set=used)
    with contextlib.suppress(pa.ArrowInvalid):  # the table may have more entries than the type can index
        places = places.cast(arrow.index_type)
    return pa.DictionaryArray.from_arrays(places, entries)
