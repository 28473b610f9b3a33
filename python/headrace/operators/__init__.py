"""Operators written in Python: a function that answers one query, compiled for the device that serves it.

>>> import headrace
>>> @headrace.operators.operator(query=("f4", 2), answer="f4")
... def score(group, query, answer, weights):
...     answer[0] = query[0] * weights[0] + query[1] * weights[1]
>>> engine = headrace.Engine("cpu", score(weights=[0.5, 2.0]))
"""

from headrace.operators.group import Group
from headrace.operators.python_operator import PythonOperator, operator

__all__ = ["Group", "PythonOperator", "operator"]
