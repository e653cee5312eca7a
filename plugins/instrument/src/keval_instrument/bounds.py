"""The bounds of a config: what figures of examinations must be."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence

import attrs

from keval.config.source import Source
from keval.errors import ConfigError, suggestion
from keval_instrument.examinations import figures_of
from keval_instrument.findings import BoundResult, Examined, Figure
from keval_report.words import one_line

_FORM = re.compile(r"\s*(?P<figure>\w+)(?:\s+of\s+(?P<labels>.+?))?\s*(?P<op>>=|<=)\s*(?P<limit>-?\d+(?:\.\d+)?)\s*")
_OPERATORS: Mapping[str, Callable[[float, float], bool]] = {">=": operator.ge, "<=": operator.le}


@attrs.frozen
class Bound:
    """One bound. It is about the most general figures of its name, or about those of all of its `labels`."""

    text: str
    figure: str
    op: str
    limit: float
    labels: tuple[str, ...] = ()

    def decide(self, examined: Sequence[Examined], *, complete: bool) -> BoundResult:
        """Return whether every figure that the bound is about meets it.

        A figure without a value does not, unless the check is not `complete`, as it is of a run alone.
        """
        lacking = False if complete else None
        named = [figure for each in examined for figure in each.figures if figure.name == self.figure]
        about = [figure for figure in named if self._is_about(figure)]
        about = [figure for figure in about if len(figure.of) == min(len(each.of) for each in about)]
        if not about:
            known = dict.fromkeys(label for figure in named for label in figure.of.values())
            hint = next(filter(None, (suggestion(label, known) for label in self.labels if label not in known)), "")
            undone = (each.reason for each in examined if self.figure in figures_of([each.examination]))
            return BoundResult(self.text, lacking, next(filter(None, undone), f"no such figure was found{hint}"))
        if unknown := [figure for figure in about if figure.value is None]:
            return BoundResult(self.text, lacking, "; ".join(map(_told, unknown)))
        holds = _OPERATORS[self.op]
        failing = [figure for figure in about if not holds(figure.value or 0.0, self.limit)]
        shown = failing or [min(about, key=lambda figure: abs((figure.value or 0.0) - self.limit))]
        return BoundResult(self.text, not failing, "; ".join(map(_told, shown)))

    def _is_about(self, figure: Figure) -> bool:
        values = figure.of.values()
        return all(any(value == label or value.startswith(f"{label}-") for value in values) for label in self.labels)


def read_bounds(source: Source, texts: Sequence[str], figures: Mapping[str, str]) -> list[Bound]:
    """Read the bounds of a config. Raises ConfigError: one is no bound, or of no known figure."""
    found = [_read(text, figures) for text in texts]
    places = (("check", "bounds", place) for place in range(len(found)))
    problems = [source.problem(at, each) for at, each in zip(places, found, strict=True) if isinstance(each, str)]
    if problems:
        raise ConfigError(problems)
    return [each for each in found if isinstance(each, Bound)]


def _read(text: str, figures: Mapping[str, str]) -> Bound | str:
    """Return a bound, or what is wrong with it."""
    match = _FORM.fullmatch(text)
    if match is None:
        return f"expected a bound such as 'detection >= 0.8' or 'detection of number <= 0.1', got {text!r}"
    figure = match["figure"]
    if figure not in figures:
        return f"no figure named {figure!r}{suggestion(figure, figures) or suggestion('', figures, 'figures')}"
    labels = tuple(label.strip() for label in (match["labels"] or "").split(",") if label.strip())
    return Bound(text.strip(), figure, match["op"], float(match["limit"]), labels)


def _told(figure: Figure) -> str:
    of = ", ".join(map(one_line, figure.of.values()))
    value = figure.told if figure.value is not None else f"no value: {figure.reason}"
    return f"{of} {value}" if of else value
