"""`headrace index build`: a corpus to an index in one file."""

import json
from pathlib import Path
from typing import Annotated

import typer

from headrace import SystemError, UsageError  # noqa: A004
from headrace.cli.options import JsonOption
from headrace.cli.show import progress_bar, stdout
from headrace.corpus import Format, build_index, locate
from headrace.errors import Errc

app = typer.Typer(help="Boolean indexes.", no_args_is_help=False)

FormatOption = Annotated[Format, typer.Option("--format", help="auto goes by the name; a folder is WordNet.")]
FieldOption = Annotated[str, typer.Option("--field", help="JSON Lines and Parquet: where the text is.")]


@app.callback()
def index() -> None:
    """Boolean indexes over a corpus."""


@app.command("build")
def build(
    source: Annotated[str, typer.Argument(help="File; or a WordNet folder; or the word wordnet, for Debian's.")],
    output: Annotated[Path, typer.Argument(help="File to write; replaced whole or not at all.")],
    form: FormatOption = Format.auto,
    field: FieldOption = "text",
    as_json: JsonOption = False,
) -> None:
    """Build the Boolean index of a corpus: one document a line, a record or a gloss.

    Example: headrace index build wordnet wordnet.hridx
    """
    if output.is_dir():
        raise UsageError(f"{output} is a folder; name the file to write")
    if not output.absolute().parent.is_dir():
        raise SystemError(f"there is no folder {output.parent} to write {output.name} to", Errc.not_found)
    path = locate(source)
    with progress_bar(f"Reading {path}") as bar:
        made = build_index(path, form, field, bar)
    made.save(output)
    facts = {
        "output": str(output),
        "bytes": output.stat().st_size,
        "documents": made.document_count,
        "terms": made.term_count,
        "postings": made.posting_count,
    }
    if as_json:
        typer.echo(json.dumps(facts))
    else:
        stdout().print(
            f"{output}: {made.document_count:,} documents, {made.term_count:,} terms, {made.posting_count:,} postings, "
            f"{output.stat().st_size / (1 << 20):.1f} MiB",
            soft_wrap=True,
            markup=False,
        )
