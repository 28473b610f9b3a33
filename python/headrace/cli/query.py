"""`headrace query`: one query to an index."""

import json
import re
import sys
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer
from rich.cells import cell_len

from headrace import Index, UsageError
from headrace.cli.errors import STATUS_USAGE, report
from headrace.cli.index import FieldOption, FormatOption
from headrace.cli.options import DeviceOption, JsonOption, find_device
from headrace.corpus import Format, documents, locate


def _caret(text: str, error: UsageError) -> list[str]:
    """The query with a caret under the character that the error is about; nothing where it is about all of it."""
    match = re.match(r"query, position (\d+)", str(error))
    if match is None or not text.isprintable():
        return []
    column = cell_len(text[: int(match[1]) - 1])
    return [f"  {text}", f"  {' ' * column}^"]


def _texts(corpus: str, form: Format, field: str, ids: list[int]) -> dict[int, str]:
    """The documents of these ids, by id."""
    if not ids:
        return {}
    wanted = set(ids)
    found = {}
    for number, document in enumerate(islice(documents(locate(corpus), form, field), max(wanted) + 1)):
        if number in wanted:
            found[number] = document.decode() if isinstance(document, bytes) else document
    if found.keys() != wanted:
        raise UsageError(f"{corpus} has fewer documents than the index: it is not the corpus it was made from")
    return found


def _check(corpus: str, index: Index, text: str, texts: dict[int, str]) -> None:
    """Raises UsageError where one of the documents that are to be printed does not match the query after all."""
    if not texts or index.words != "unicode":
        return
    again = Index.build(texts.values(), fold_diacritics=index.fold_diacritics).matches(text)
    if len(again) != len(texts):
        wrong = next(number for place, number in enumerate(texts) if place not in set(again.tolist()))
        raise UsageError(
            f"document {wrong} of {corpus} does not match: it is not the corpus that the index was made from"
        )


def query(
    index: Annotated[Path, typer.Argument(readable=False, help="Made by headrace index build.")],
    text: Annotated[str, typer.Argument(help="Words, AND, OR, NOT and parentheses.")],
    device: DeviceOption = "best",
    corpus: Annotated[str | None, typer.Option("--corpus", help="Print the documents themselves, from here.")] = None,
    form: FormatOption = Format.auto,
    field: FieldOption = "text",
    everything: Annotated[bool, typer.Option("--all", help="List all that match, instead of the first 15.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Ask an index one Boolean query: how many documents match, and the first of them, or all.

    Example: headrace query wordnet.hridx "apple AND NOT pie" --corpus wordnet
    """
    loaded = Index.load(index)
    chosen = find_device(device)
    try:
        loaded.compile(text)
    except UsageError as error:
        report(str(error))
        for line in _caret(text, error):
            print(line, file=sys.stderr)
        raise typer.Exit(STATUS_USAGE) from None
    hits = loaded.query(text, device=chosen)
    ids = loaded.matches(text).tolist() if everything else hits.ids
    texts = _texts(corpus, form, field, ids) if corpus is not None else None
    if texts is not None:
        _check(corpus or "", loaded, text, texts)
    if as_json:
        answer = {"query": text, "hits": hits.hits, "ids": ids}
        if texts is not None:
            answer["documents"] = [texts[number] for number in ids]
        typer.echo(json.dumps(answer))
        return
    typer.echo(f"{hits.hits:,} of {loaded.document_count:,} documents")
    for number in ids:
        typer.echo(f"{number:>10}  {texts[number]}" if texts is not None else f"{number:>10}")
    if hits.hits > len(ids):
        typer.echo(f"       ... and {hits.hits - len(ids):,} more (--all lists them)")
