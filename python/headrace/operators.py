"""The operators that ship with Headrace: retrieval over an index, sparse matrices, and light().

>>> from headrace import operators
>>> index = operators.Index.build(["an apple", "an apple pie"])
>>> index.query("apple AND NOT pie").ids
[0]
>>> operators.retrieval(index).name
'retrieval'
"""

from headrace._core import (
    BruteForce,
    CsrMatrix,
    CsrPart,
    Hits,
    Index,
    IndexBuilder,
    Ranking,
    RetrievalSampler,
    light,
    reference,
    retrieval,
)
from headrace.dtypes import RETRIEVAL_ANSWER, answer_dtype, typed_answers

__all__ = [
    "RETRIEVAL_ANSWER",
    "BruteForce",
    "CsrMatrix",
    "CsrPart",
    "Hits",
    "Index",
    "IndexBuilder",
    "Ranking",
    "RetrievalSampler",
    "answer_dtype",
    "light",
    "reference",
    "retrieval",
    "typed_answers",
]
