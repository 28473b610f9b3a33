"""Colours of the report. Plots are drawn in the colours of a light page; the page replaces each by its CSS variable."""

from headrace.profiles import STAGES

# name: (on light, on dark). Light colours are unique, because they identify the colours of a plot.
_NEUTRAL = {
    "ink": ("#1f2933", "#e4e9ee"),
    "faint": ("#66727f", "#9aa7b4"),
    "line": ("#d5dbe1", "#38434e"),
    "page": ("#fbfcfd", "#13181d"),
    "card": ("#ffffff", "#1a2127"),
    "bound": ("#c0262d", "#ff7b72"),
    "accent": ("#1769aa", "#6cb6ff"),
}
# The blocking rungs, first to eighth, are shades of one colour; each schedule has its own.
_RUNGS = {
    1: ("#a8b3bf", "#7d8995"),
    2: ("#97a8bb", "#7b8c9e"),
    3: ("#849db8", "#7a94b0"),
    4: ("#7192b5", "#769abd"),
    5: ("#5d87b2", "#7eaad4"),
    6: ("#487baf", "#87b7e6"),
    7: ("#326fab", "#92c4f4"),
    8: ("#1b5c99", "#a5d1ff"),
    9: ("#0f8a8a", "#4fc9c6"),
    10: ("#2f9e44", "#6bd67f"),
    11: ("#e07b00", "#ffae4a"),
    12: ("#8b5cd6", "#c3a5f7"),
    13: ("#c2478f", "#f291c6"),
    14: ("#d1342f", "#ff8078"),
}
_STAGES = {
    "queue": ("#b4bec8", "#66727e"),
    "host": ("#e8a33d", "#e0a64a"),
    "copy_in": ("#7fb8e6", "#79b8ec"),
    "kernel": ("#3a9d5d", "#5cc383"),
    "copy_out": ("#3f7cc4", "#4f93e0"),
    "notify": ("#a884d6", "#b998e8"),
}
# From the slowest strategy to Headrace's own.
_STRATEGIES = {
    "on-demand": ("#b8433a", "#f08a80"),
    "zero-copy": ("#d98324", "#f0ad5e"),
    "prefetched": ("#7c55c4", "#b596f0"),
    "interleaved": ("#2477b8", "#69b3ee"),
    "by-budget": ("#22915a", "#5fcf96"),
}

INK, FAINT, LINE, CARD = (_NEUTRAL[name][0] for name in ("ink", "faint", "line", "card"))
BOUND = _NEUTRAL["bound"][0]
STAGE_COLOURS = {stage: _STAGES[stage][0] for stage in STAGES}

STRATEGY_COLOURS = {strategy: pair[0] for strategy, pair in _STRATEGIES.items()}


def rung_colour(number: int) -> str:
    """Colour of a rung in every plot."""
    return _RUNGS[(number - 1) % len(_RUNGS) + 1][0]


def _named() -> dict[str, tuple[str, str]]:
    rungs = {f"rung{number:02d}": pair for number, pair in _RUNGS.items()}
    stages = {f"stage-{stage.replace('_', '-')}": pair for stage, pair in _STAGES.items()}
    strategies = {f"strategy-{name}": pair for name, pair in _STRATEGIES.items()}
    return {**_NEUTRAL, **rungs, **stages, **strategies}


def variables() -> dict[str, str]:
    """The CSS variable for each colour of a light page."""
    return {light: f"var(--{name})" for name, (light, _) in _named().items()}


def css_variables(*, dark: bool) -> str:
    """CSS declarations of all variables."""
    return " ".join(f"--{name}: {pair[1] if dark else pair[0]};" for name, pair in _named().items())
