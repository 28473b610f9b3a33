"""`headrace query`: runs one query on an index."""

import json
import re
import sys
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer
from rich.cells import cell_len

from headrace import Device, Index, UsageError
from headrace.cli.errors import STATUS_USAGE, report
from headrace.cli.index import FieldOption, FormatOption
from headrace.cli.options import DeviceOption, JsonOption, find_device
from headrace.corpus import Format, as_text, documents, locate
from headrace.text import harmless

_SHOWN = 15
_K1, _B = 1.2, 0.75


def _caret(text: str, error: UsageError) -> list[str]:
    """The query with a caret under the character at fault; nothing if the error concerns the whole query."""
    match = re.match(r"query, position (\d+)", str(error))
    if match is None or not text.isprintable():
        return []
    column = cell_len(text[: int(match[1]) - 1])
    return [f"  {text}", f"  {' ' * column}^"]


def _texts(corpus: str, form: Format, field: str, ids: list[int]) -> dict[int, str]:
    """The documents with these ids, by id."""
    if not ids:
        return {}
    wanted = set(ids)
    found = {}
    path = locate(corpus)
    for number, document in enumerate(islice(documents(path, form, field), max(wanted) + 1)):
        if number in wanted:
            found[number] = as_text(document, path, number)
    if found.keys() != wanted:
        raise UsageError(
            f"{corpus} has fewer documents than the index: it is not the corpus that the index was made from"
        )
    return found


def _check(corpus: str, index: Index, text: str, texts: dict[int, str]) -> None:
    """Raises UsageError if a document to be printed does not match the query."""
    if not texts or index.words != "unicode":
        return
    again = Index.build(texts.values(), fold_diacritics=index.fold_diacritics, stem=index.stem).matches(text)
    if len(again) != len(texts):
        wrong = next(number for place, number in enumerate(texts) if place not in set(again.tolist()))
        raise UsageError(
            f"document {wrong} of {corpus} does not match: it is not the corpus that the index was made from"
        )


@dataclass(frozen=True)
class _Page:
    """The matching documents to print."""

    hits: int
    ids: list[int]
    scores: list[float] | None


def _find(index: Index, text: str, device: Device, offset: int, limit: int, bm25: tuple[float, float] | None) -> _Page:
    if bm25 is not None:
        ranking = index.rank(text, offset=offset, limit=limit, k1=bm25[0], b=bm25[1])
        return _Page(ranking.hits, ranking.ids.tolist(), ranking.scores.tolist())
    hits = index.query(text, device=device, offset=offset, limit=limit)
    return _Page(hits.hits, hits.ids, None)


def _print_page(index: Index, page: _Page, texts: dict[int, str] | None, offset: int) -> None:
    typer.echo(f"{page.hits:,} of {index.document_count:,} documents")
    for place, number in enumerate(page.ids):
        score = f"  {page.scores[place]:8.3f}" if page.scores is not None else ""
        typer.echo(f"{number:>10}{score}  {harmless(texts[number])}" if texts is not None else f"{number:>10}{score}")
    behind = page.hits - offset - len(page.ids)
    if behind > 0:
        typer.echo(
            f"       ... and {behind:,} more (continue with --offset {offset + len(page.ids)}, or list all with --all)"
        )
    elif not page.ids and page.hits:
        typer.echo(f"       no matches from --offset {offset} on")


def _check_options(*, everything: bool, limit: int | None, offset: int, rank: bool, parameters: bool) -> None:
    if everything and (limit is not None or offset != 0):
        raise UsageError("--all lists every document that matches: leave out --offset and --limit")
    if parameters and not rank:
        raise UsageError("--k1 and --b need --rank")


def query(
    index: Annotated[Path, typer.Argument(readable=False, help="Index file made by headrace index build.")],
    text: Annotated[str, typer.Argument(help="Query: words, AND, OR, NOT and parentheses.")],
    device: DeviceOption = "best",
    corpus: Annotated[
        str | None, typer.Option("--corpus", help="Print the text of the documents, from this corpus.")
    ] = None,
    form: FormatOption = Format.auto,
    field: FieldOption = "text",
    everything: Annotated[
        bool, typer.Option("--all", help="List all matching documents, instead of the first 15.")
    ] = False,
    offset: Annotated[int, typer.Option("--offset", min=0, help="Start the list at this match, counted from 0.")] = 0,
    limit: Annotated[
        int | None, typer.Option("--limit", min=0, help="Maximum length of the list. [default: 15]")
    ] = None,
    rank: Annotated[
        bool, typer.Option("--rank", help="List the most relevant documents first, by BM25, computed on the host.")
    ] = False,
    k1: Annotated[float | None, typer.Option("--k1", help="BM25: weight of repeated words. [default: 1.2]")] = None,
    b: Annotated[
        float | None, typer.Option("--b", help="BM25: weight of a document's length, 0 to 1. [default: 0.75]")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Run one Boolean query: count the matching documents, and list a page of them, or all.

    Example: headrace query wordnet.hridx "apple AND NOT pie" --corpus wordnet
    """
    _check_options(
        everything=everything, limit=limit, offset=offset, rank=rank, parameters=k1 is not None or b is not None
    )
    loaded = Index.load(index)
    chosen = find_device(device)
    if rank and device != "best" and not str(chosen).startswith("cpu"):
        raise UsageError(f"--rank is computed on the host, not on {chosen}: leave out --device")
    try:
        loaded.compile(text)
    except UsageError as error:
        report(str(error))
        for line in _caret(text, error):
            print(line, file=sys.stderr)
        raise typer.Exit(STATUS_USAGE) from None
    most = loaded.document_count if everything else _SHOWN if limit is None else limit
    bm25 = (_K1 if k1 is None else k1, _B if b is None else b) if rank else None
    page = _find(loaded, text, chosen, offset, most, bm25)
    texts = _texts(corpus, form, field, page.ids) if corpus is not None else None
    if texts is not None:
        _check(corpus or "", loaded, text, texts)
    if not as_json:
        _print_page(loaded, page, texts, offset)
        return
    answer: dict[str, object] = {"query": text, "hits": page.hits, "offset": offset, "ids": page.ids}
    if page.scores is not None:
        answer["scores"] = page.scores
    if texts is not None:
        answer["documents"] = [texts[number] for number in page.ids]
    typer.echo(json.dumps(answer))
