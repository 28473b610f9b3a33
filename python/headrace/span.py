"""Data larger than a device: spans, whose pages lie on devices and the host, and advice on their placement.

>>> from headrace import span
>>> data = span.Span("cpu", 2 * span.PAGE_BYTES, span.Placement.all("host"))
>>> data.places
[headrace.span.Place.parse('host'), headrace.span.Place.parse('host')]
"""

from headrace._core import (
    PAGE_BYTES,
    SPARE_PAGES,
    AccessProfile,
    Advice,
    AdviceConstants,
    FaultRates,
    MemoryRates,
    OperationRates,
    Place,
    Placement,
    Right,
    SharedPages,
    Span,
    SpanStatistics,
    SpanUse,
    StrategyForecast,
    access_operations,
    access_patterns,
    access_strategies,
    advise,
    find_memory_rates,
    known_memory_rates,
    memory_rates_of,
)

__all__ = [
    "PAGE_BYTES",
    "SPARE_PAGES",
    "AccessProfile",
    "Advice",
    "AdviceConstants",
    "FaultRates",
    "MemoryRates",
    "OperationRates",
    "Place",
    "Placement",
    "Right",
    "SharedPages",
    "Span",
    "SpanStatistics",
    "SpanUse",
    "StrategyForecast",
    "access_operations",
    "access_patterns",
    "access_strategies",
    "advise",
    "find_memory_rates",
    "known_memory_rates",
    "memory_rates_of",
]
