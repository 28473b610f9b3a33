"""Documents from files: text lines, JSON Lines, Parquet, WordNet."""

import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

from headrace._core import Index, IndexBuilder, host_memory
from headrace.errors import DataError, Errc, MissingFileError, UsageError
from headrace.text import READ_BYTES_MAX, parse_json, too_long

WORDNET = Path("/usr/share/wordnet")

_WORDNET_FILES = ("data.noun", "data.verb", "data.adj", "data.adv")
_BATCH = 4096
_GZIP = b"\x1f\x8b"
_DOCUMENTS_BETWEEN = 1 << 16  # between two looks at memory: some 20 ms of short documents
_BYTES_BETWEEN = 16 << 20
_SPARE_BYTES = 64 << 20

Document = str | bytes
#: Called now and then with the share that has been read, 0 to 1.
Progress = Callable[[float], None]


class Format(StrEnum):
    """Format of a corpus."""

    auto = "auto"
    text = "text"
    jsonl = "jsonl"
    parquet = "parquet"
    wordnet = "wordnet"


def locate(source: str) -> Path:
    """The path of a corpus; "wordnet" stands for Debian's, unless there is a file of that name.

    Raises:
        MissingFileError: naming the corpus, and for WordNet the package that provides it.
    """
    path = Path(source)
    if path.exists():
        return path
    if source == "wordnet" or path == WORDNET:
        if WORDNET.exists():
            return WORDNET
        raise MissingFileError(f"there is no {WORDNET}: install the Debian package wordnet-base")
    raise MissingFileError(f"there is no file or folder {source}")


def guess(path: Path) -> Format:
    """Guesses the format from the name of a file; a folder is WordNet."""
    if path.is_dir():
        return Format.wordnet
    return {
        ".parquet": Format.parquet,
        ".jsonl": Format.jsonl,
        ".ndjson": Format.jsonl,
    }.get(path.suffix.lower(), Format.text)


def _lines(path: Path, progress: Progress) -> Iterator[bytes]:
    size = max(path.stat().st_size, 1)
    read = 0
    with path.open("rb") as file:
        if file.peek(len(_GZIP)).startswith(_GZIP):  # no UTF-8 text begins with these bytes
            raise DataError(f"{path} is compressed with gzip: unpack it first")
        for number, line in enumerate(iter(partial(file.readline, READ_BYTES_MAX + 1), b"")):
            if len(line) > READ_BYTES_MAX:
                raise too_long(path, f"line {number + 1} has")
            read += len(line)
            if number % _BATCH == 0:
                progress(read / size)
            yield line.rstrip(b"\r\n")


def _json_lines(path: Path, field: str, progress: Progress) -> Iterator[Document]:
    for number, line in enumerate(_lines(path, progress), start=1):
        record = parse_json(line, f"{path}, line {number}")
        if not isinstance(record, dict) or not isinstance(record.get(field), str):
            raise DataError(f"{path}, line {number}: no text in field '{field}'; name the field with --field")
        yield record[field]


def _is_text(kind: Any) -> bool:  # noqa: ANN401 - of pyarrow, which is not loaded for other formats
    """Whether a type holds strings, or bytes that may be UTF-8."""
    return str(kind) in {"string", "large_string", "string_view", "binary", "large_binary", "binary_view"}


def _parquet(path: Path, field: str, progress: Progress) -> Iterator[Document]:
    import pyarrow as pa  # noqa: PLC0415 - takes longer to load than all of Headrace
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        file = pq.ParquetFile(path)
        names = file.schema_arrow.names
        if field not in names:
            raise UsageError(f"{path} has no field '{field}'; it has {', '.join(names)}", Errc.not_found)
        if names.count(field) > 1:
            raise UsageError(f"{path} has {names.count(field)} fields called '{field}'")
        kind = file.schema_arrow.field(field).type
        if not _is_text(kind.value_type if pa.types.is_dictionary(kind) else kind):
            raise UsageError(f"{path}: field '{field}' holds {kind}, not text")
        row = 0
        for batch in file.iter_batches(batch_size=_BATCH, columns=[field]):
            for text in batch.column(0).to_pylist():
                if text is None:
                    raise DataError(f"{path}, row {row}: field '{field}' is null")
                row += 1
                yield text
            progress(row / max(file.metadata.num_rows, 1))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: not Parquet that can be read: {error}") from None


def _part(progress: Progress, number: int, count: int) -> Progress:
    return lambda share: progress((number + share) / count)


def _wordnet(path: Path, progress: Progress) -> Iterator[Document]:
    for number, name in enumerate(_WORDNET_FILES):
        file = path / name
        if not file.exists():
            raise MissingFileError(f"there is no {file}: a WordNet folder has {', '.join(_WORDNET_FILES)}")
        for line in _lines(file, _part(progress, number, len(_WORDNET_FILES))):
            if line.startswith(b"  "):  # the licence at the head of each file
                continue
            _, bar, gloss = line.partition(b" | ")
            if not bar:
                raise DataError(f"{file}: not a WordNet data file: a line has no gloss")
            yield gloss.strip()


def documents(
    path: Path, form: Format = Format.auto, field: str = "text", progress: Progress = lambda _: None
) -> Iterator[Document]:
    """The documents of a corpus, in order.

    Text files have one document per line, and an empty line is an empty document, so document n is line n + 1. JSON
    Lines and Parquet have documents in `field`. WordNet's are the glosses of data.noun, .verb, .adj and .adv.

    Raises:
        DataError: naming the file and the line that cannot be read.
        UsageError: for a field that the Parquet file does not have.
    """
    form = guess(path) if form is Format.auto else form
    if (form is Format.wordnet) != path.is_dir():
        raise UsageError(f"{path} is {'a folder' if path.is_dir() else 'a file'}, which format {form} is not")
    readers: dict[Format, Callable[[], Iterator[Document]]] = {
        Format.text: lambda: iter(_lines(path, progress)),
        Format.jsonl: lambda: _json_lines(path, field, progress),
        Format.parquet: lambda: _parquet(path, field, progress),
        Format.wordnet: lambda: _wordnet(path, progress),
    }
    return readers[form]()


def _resident_bytes() -> int:
    """Resident memory of this process."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * resource.getpagesize()


def _within_memory(made: Iterator[Document], path: Path) -> Iterator[Document]:
    """Yields the documents while an index of them fits in memory: the length of a pipe is not known in advance.

    Building needs as much memory again as the documents hold: for the finished index, or when a table grows.

    Raises:
        DataError: naming the corpus, when less memory than that is left.
    """
    began = _resident_bytes()
    since = 0
    for number, document in enumerate(made, start=1):
        yield document
        since += len(document)
        if number % _DOCUMENTS_BETWEEN != 0 and since < _BYTES_BETWEEN:
            continue
        since = 0
        held = max(_resident_bytes() - began, 0)
        left = host_memory().free_bytes
        if left < held + _SPARE_BYTES:
            raise DataError(
                f"{path}: its index needs more memory than there is: {number:,} documents hold "
                f"{held >> 20:,} MiB, as much again is needed to build it, and {left >> 20:,} MiB are left",
                Errc.out_of_memory,
            )


@contextmanager
def _placed(path: Path, builder: IndexBuilder) -> Iterator[None]:
    """Adds the position in the corpus to the error for a document that the builder refuses."""
    try:
        yield
    except DataError as error:
        if str(error).startswith("document "):
            number = builder.document_count
            raise DataError(f"{path}, line or record {number + 1}: {error}", error.code) from None
        raise


def build_index(
    path: Path,
    form: Format = Format.auto,
    field: str = "text",
    progress: Progress = lambda _: None,
    *,
    fold_diacritics: bool = False,
    frequencies: bool = False,
    stem: str | None = None,
) -> Index:
    """Builds the index of a corpus.

    With `fold_diacritics`, words lose their accents, in queries too. With `frequencies`, the index can rank. With
    `stem`, one of Index.stem_languages(), words become their stems.

    Raises:
        DataError: for an empty corpus, for one whose index exceeds memory, or naming the line that is not UTF-8.
        UsageError: for an unknown language.
    """
    builder = IndexBuilder(fold_diacritics=fold_diacritics, frequencies=frequencies, stem=stem)
    with _placed(path, builder):
        builder.add_many(_within_memory(documents(path, form, field, progress), path))
    if builder.document_count == 0:
        raise DataError(f"{path} is empty: an index needs at least one document")
    return builder.build()


def as_text(document: Document, path: Path, number: int) -> str:
    """A document as text.

    Raises:
        DataError: when its bytes are not UTF-8; the error names the document by its number, from 0.
    """
    try:
        return document.decode() if isinstance(document, bytes) else document
    except UnicodeDecodeError as error:
        raise DataError(f"{path}, document {number}: not UTF-8 at byte {error.start}") from None


def read_text(path: Path, form: Format = Format.auto, field: str = "text") -> list[str]:
    """All documents of a corpus as text."""
    return [as_text(document, path, number) for number, document in enumerate(documents(path, form, field))]
