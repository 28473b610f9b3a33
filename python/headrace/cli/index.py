"""`headrace index`: builds an index file from a corpus or from synthetic documents."""

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from headrace import Index, outputs
from headrace.cli.options import JsonOption, count
from headrace.cli.show import expect, progress_bar, stdout
from headrace.corpus import Format, build_index, locate
from headrace.units import bytes_text

_FEW_POSTINGS = 10e6
_POSTINGS_PER_SECOND = 8e6  # rate per thread

app = typer.Typer(help="Build Boolean indexes.", no_args_is_help=False)

FormatOption = Annotated[
    Format,
    typer.Option(
        "--format", help="Format of the corpus; auto decides by the file name and takes a folder for WordNet."
    ),
]
PackedOption = Annotated[
    bool,
    typer.Option(
        "--packed", help="Write a packed file of about a third of the size; it is unpacked into memory when loaded."
    ),
]
FieldOption = Annotated[str, typer.Option("--field", help="JSON Lines and Parquet: name of the field with the text.")]


@app.callback()
def index() -> None:
    """Boolean indexes over a corpus."""


def _save(made: Index, output: Path, *, packed: bool, as_json: bool) -> None:
    made.save(output, packed=packed)
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
            f"{bytes_text(output.stat().st_size)}",
            soft_wrap=True,
            markup=False,
        )


@app.command("build")
def build(
    source: Annotated[str, typer.Argument(help="Corpus: a file, a WordNet folder, or wordnet for Debian's copy.")],
    output: Annotated[Path, typer.Argument(readable=False, help="Index file to write, atomically.")],
    form: FormatOption = Format.auto,
    field: FieldOption = "text",
    fold_diacritics: Annotated[
        bool, typer.Option("--fold-diacritics", help="Ignore accents in documents and queries.")
    ] = False,
    frequencies: Annotated[
        bool, typer.Option("--frequencies", help="Store word frequencies, which headrace query --rank needs.")
    ] = False,
    stem: Annotated[
        str | None,
        typer.Option(
            "--stem",
            metavar="LANGUAGE",
            help="Stem the words of documents and queries by Snowball's rules for this language, such as english.",
        ),
    ] = None,
    packed: PackedOption = False,
    as_json: JsonOption = False,
) -> None:
    """Build the index of a corpus. Each line, record or WordNet gloss is a document.

    Example: headrace index build wordnet wordnet.hridx
    """
    outputs.check(output)
    path = locate(source)
    with progress_bar(f"Reading {path}") as bar:
        made = build_index(path, form, field, bar, fold_diacritics=fold_diacritics, frequencies=frequencies, stem=stem)
    _save(made, output, packed=packed, as_json=as_json)


@app.command("synthetic")
def synthetic(
    output: Annotated[Path, typer.Argument(readable=False, help="Index file to write, atomically.")],
    documents: Annotated[
        int,
        typer.Option("--documents", parser=count, metavar="N", help="Number of documents; 10M take 400 MB."),
    ] = "10M",  # type: ignore[assignment]
    terms: Annotated[int, typer.Option("--terms", parser=count, metavar="N", help="Size of the vocabulary.")] = "1M",  # type: ignore[assignment]
    length: Annotated[
        float, typer.Option("--length", min=2, max=500, help="Mean number of words per document, 2 to 500.")
    ] = 10,
    exponent: Annotated[float, typer.Option("--exponent", min=0, max=4, help="Exponent of Zipf's law, 0 to 4.")] = 1,
    seed: Annotated[
        int, typer.Option("--seed", min=0, max=(1 << 64) - 1, help="Seed; the same seed gives the same file.")
    ] = 1,
    threads: Annotated[
        int,
        typer.Option(
            "--threads",
            min=0,
            max=1024,
            help="Number of threads; 0 means one per core. The file is the same for any number.",
        ),
    ] = 0,
    packed: PackedOption = False,
    as_json: JsonOption = False,
) -> None:
    """Build the index of a synthetic corpus whose words follow Zipf's law.

    Example: headrace index synthetic --documents 10M --terms 1M --length 10 --seed 1 zipf10m.hridx
    """
    outputs.check(output)
    workers = threads or len(os.sched_getaffinity(0))
    postings = documents * length
    if postings > _FEW_POSTINGS:
        # Sizes as in Index.synthetic(): 4 bytes per posting, about 36 per term, and 4 per term and thread.
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
    _save(made, output, packed=packed, as_json=as_json)
