"""`headrace index`: a corpus, or a made-up one, to an index in one file."""

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from headrace import Index, outputs
from headrace.cli.options import JsonOption, count
from headrace.cli.show import expect, progress_bar, stdout
from headrace.corpus import Format, build_index, locate

_FEW_POSTINGS = 10e6
_POSTINGS_PER_SECOND = 8e6  # of a thread

app = typer.Typer(help="Boolean indexes.", no_args_is_help=False)

FormatOption = Annotated[Format, typer.Option("--format", help="auto goes by the name; a folder is WordNet.")]
FieldOption = Annotated[str, typer.Option("--field", help="JSON Lines and Parquet: where the text is.")]


@app.callback()
def index() -> None:
    """Boolean indexes over a corpus."""


def _save(made: Index, output: Path, *, as_json: bool) -> None:
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


@app.command("build")
def build(
    source: Annotated[str, typer.Argument(help="File; or a WordNet folder; or the word wordnet, for Debian's.")],
    output: Annotated[Path, typer.Argument(readable=False, help="File to write; replaced whole or not at all.")],
    form: FormatOption = Format.auto,
    field: FieldOption = "text",
    fold_diacritics: Annotated[
        bool, typer.Option("--fold-diacritics", help="Words lose their accents, in queries as well.")
    ] = False,
    frequencies: Annotated[
        bool, typer.Option("--frequencies", help="Keep how often words come, for headrace query --rank.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Build the Boolean index of a corpus: one document a line, a record or a gloss.

    Example: headrace index build wordnet wordnet.hridx
    """
    outputs.check(output)
    path = locate(source)
    with progress_bar(f"Reading {path}") as bar:
        made = build_index(path, form, field, bar, fold_diacritics=fold_diacritics, frequencies=frequencies)
    _save(made, output, as_json=as_json)


@app.command("synthetic")
def synthetic(
    output: Annotated[Path, typer.Argument(readable=False, help="File to write; replaced whole or not at all.")],
    documents: Annotated[
        int, typer.Option("--documents", parser=count, metavar="N", help="Such as 10M, which takes 400 MB.")
    ] = "10M",  # type: ignore[assignment]
    terms: Annotated[int, typer.Option("--terms", parser=count, metavar="N", help="Of the vocabulary.")] = "1M",  # type: ignore[assignment]
    length: Annotated[float, typer.Option("--length", help="Mean number of words of a document, 2 to 500.")] = 10,
    exponent: Annotated[float, typer.Option("--exponent", help="Of Zipf's law, 0 to 4.")] = 1,
    seed: Annotated[int, typer.Option("--seed", min=0, max=(1 << 64) - 1, help="The same seed, the same file.")] = 1,
    threads: Annotated[int, typer.Option("--threads", min=0, max=1024, help="0 for all; changes nothing else.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Make the Boolean index of a synthetic corpus, whose words follow Zipf's law.

    Example: headrace index synthetic --documents 10M --terms 1M --length 10 --seed 1 zipf10m.hridx
    """
    outputs.check(output)
    workers = threads or len(os.sched_getaffinity(0))
    postings = documents * length
    if postings > _FEW_POSTINGS:
        # As Index.synthetic() says: 4 bytes a posting, about 36 a term and 4 a term and thread.
        expect(postings / _POSTINGS_PER_SECOND / workers, 4 * postings + (36 + 4 * workers) * terms)
    with progress_bar(f"Making {documents:,} documents") as bar:
        made = Index.synthetic(
            documents=documents,
            terms=terms,
            length=length,
            exponent=exponent,
            seed=seed,
            threads=threads,
            progress=bar,
        )
    _save(made, output, as_json=as_json)
