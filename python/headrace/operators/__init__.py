"""Operators: those that ship with Headrace (mlp, topk, lookup, retrieval, ...), Python functions, shared objects.

>>> from headrace import operators
>>> index = operators.Index.build(["an apple", "an apple pie"])
>>> index.query("apple AND NOT pie").ids
[0]
>>> operators.retrieval(index).name
'retrieval'

A function that answers one query is an operator too; see operator():

>>> @operators.operator(query=("f4", 2), answer="f4")
... def score(group, query, answer, weights):
...     answer[0] = query[0] * weights[0] + query[1] * weights[1]
>>> score.answer_in_python([[2, 3]], weights=[0.5, 2.0])
array([7.], dtype=float32)

So is a function in C++ source, which from_source() compiles, one that another compiler has made LTO-IR of, which
from_ltoir() takes, and a shared object built by CMake from a C++ file, which load_library() loads.
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
    load_library,
    reference,
    retrieval,
)
from headrace.dtypes import RETRIEVAL_ANSWER, answer_dtype, typed_answers
from headrace.operators.dense import mlp, topk
from headrace.operators.group import Group
from headrace.operators.lookup_operator import lookup
from headrace.operators.ltoir_operator import LtoirOperator, from_ltoir
from headrace.operators.python_operator import PythonOperator, operator
from headrace.operators.source_operator import SourceOperator, from_source

__all__ = [
    "RETRIEVAL_ANSWER",
    "BruteForce",
    "CsrMatrix",
    "CsrPart",
    "Group",
    "Hits",
    "Index",
    "IndexBuilder",
    "LtoirOperator",
    "PythonOperator",
    "Ranking",
    "RetrievalSampler",
    "SourceOperator",
    "answer_dtype",
    "from_ltoir",
    "from_source",
    "light",
    "load_library",
    "lookup",
    "mlp",
    "operator",
    "reference",
    "retrieval",
    "topk",
    "typed_answers",
]
