"""The names of metrics as the report shows them: short, and told apart."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping

from keval.report.lines import one_line
from keval.scores import Scale, Scorer

__all__ = ["display_names", "with_units"]


def display_names(scorers: Iterable[Scorer]) -> Mapping[Scorer, str]:
    """Return each scorer's name: the last part of the metric's with spaces in place of underscores.

    Two metrics with the same last part keep their full names, and a rubric that several judges grade by has the judge.
    """
    known = list(dict.fromkeys(scorers))
    graded = Counter(metric for metric, _ in known)
    last = {metric: one_line(metric.rpartition("/")[2].replace("_", " ")) or one_line(metric) for metric in graded}
    shared = Counter(last.values())
    names = {}
    for metric, judge in known:
        name = last[metric] if shared[last[metric]] == 1 else one_line(metric)
        names[metric, judge] = f"{name} by {one_line(judge)}" if judge and graded[metric] > 1 else name
    return names


def with_units(name: str, scale: Scale) -> str:
    """Return a metric's name with what its figures are in: `tone (1-5)`, `time (s)`; nothing for one from 0 to 1."""
    usual = (scale.low, scale.high) == (0.0, 1.0) or math.isinf(scale.high)
    told = " ".join(filter(None, ("" if usual else f"{scale.low:g}-{scale.high:g}", one_line(scale.unit))))
    return f"{name} ({told})" if told and told != name else name
